"""The tests of test_store.py and test_updates.py once more, with PostgreSQL for an engine.

A test written there joins here by itself, as long as it takes the index from a fixture; those about files are named.
"""

import inspect

import pytest
import test_store
import test_updates
from test_updates import course  # noqa: F401  a fixture

psycopg = pytest.importorskip("psycopg")

from labsupport.engines.address import Address  # noqa: E402
from labsupport.engines.postgres import PostgresEngine, PostgresStore  # noqa: E402
from labsupport.engines.postgres_rows import transaction  # noqa: E402
from labsupport.engines.postgres_schema import create  # noqa: E402

ABOUT_FILES = {
    "test_vectors_in_memory_follow_the_index_unless_told_not_to",  # here there are none in memory
    "test_another_format_is_refused", "test_a_damaged_index_says_so",  # and in test_updates:
    "test_a_damaged_page_of_the_index_is_noticed_when_asked_and_a_rebuild_mends_it",
    "test_nothing_is_parsed_or_embedded_when_nothing_changed",
    "test_a_rebuild_replaces_an_index_that_cannot_be_read", "test_a_rebuild_does_not_replace_what_is_not_ours",
    "test_a_log_left_by_a_deleted_index_is_not_applied_to_the_new_one", "test_what_was_deleted_is_gone_from_the_bytes",
    "test_text_that_could_not_be_wiped_is_wiped_by_the_next_ingest",
    "test_a_half_built_index_of_a_killed_rebuild_is_cleared_away",
    "test_files_at_rest_are_not_read_again_unless_asked", "test_a_file_that_may_still_be_changing_is_read",
    "test_an_edit_of_the_same_size_with_its_time_set_back_is_seen", "test_a_spoilt_memo_is_as_good_as_none",
    "test_the_memo_forgets_deleted_files", "test_an_index_in_a_folder_that_does_not_exist_yet",
}

PLACES = {"store", "one_store", "course", "index"}
for module in (test_store, test_updates):
    for name, function in inspect.getmembers(module, inspect.isfunction):
        takes = inspect.signature(function).parameters
        if name.startswith("test_") and name not in ABOUT_FILES and PLACES & set(takes):
            globals()[name] = function


def empty_index(url):
    address = Address(url)
    with address.connect() as connection, transaction(connection, address):
        create(connection, address, dimensions=2)
    return PostgresStore(url)


@pytest.fixture
def url(pg_server):
    return pg_server.emptied()


@pytest.fixture
def store(url):
    with empty_index(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def one_store(pg_server):
    with empty_index(pg_server.another()) as opened:
        opened.replace(add=[test_store.make_entry("mowers", "Sharpen the blade of 0 mowers & 1 hedge.")])
        yield opened


@pytest.fixture
def index(url):
    return PostgresEngine(url)
