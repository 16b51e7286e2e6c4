"""What only an index in PostgreSQL has to show. What both engines have to show is in test_engines.py."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbedder
from garden import front_matter, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_state import check, opened, state
from test_store import STAFF, make_entry
from test_update_sequences import Sequence
from test_updates import Course

from labsupport import cli
from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

psycopg = pytest.importorskip("psycopg")

from test_engines import empty_index  # noqa: E402

from labsupport.engines import postgres, postgres_search  # noqa: E402
from labsupport.engines.address import shown  # noqa: E402
from labsupport.engines.postgres import PostgresEngine, PostgresStore  # noqa: E402
from labsupport.engines.words import number  # noqa: E402

REAL = Path(__file__).parents[1] / "corpus"


@pytest.fixture
def url(pg_server):
    return pg_server.emptied()


@pytest.fixture
def store(url):
    with empty_index(url) as opened_store:
        yield opened_store


@pytest.fixture
def course(tmp_path, url, embedder):
    made = Course(tmp_path, PostgresEngine(url), embedder)
    made.ingest()
    return made


# Both engines side by side


@pytest.fixture(scope="module")
def pair(pg_server, tmp_path_factory):
    """The course's own corpus in both engines, and the reports of filling them."""
    engine, path = PostgresEngine(pg_server.another()), tmp_path_factory.mktemp("pair") / "index.sqlite"
    reports = [ingest(REAL, index, FakeEmbedder()) for index in (engine, path)]
    with engine.open() as ours, Store(path) as theirs:
        yield ours, theirs, reports


def test_the_same_rows_and_report_lines(pair):
    ours, theirs, reports = pair
    assert reports[0].lines == reports[1].lines
    assert ours.documents() == theirs.documents() and ours.all_chunks() == theirs.all_chunks()
    assert ours.meta() == theirs.meta()
    ids = [chunk.chunk_id for chunk in ours.all_chunks()]
    mine, other = ours.vectors(ids), theirs.vectors(ids)
    assert mine.keys() == other.keys() and all((mine[one] == other[one]).all() for one in ids)


@pytest.mark.parametrize("filters", [
    Filters(), STAFF, Filters(as_of="2026-10-09"), Filters("2026-10-31", "staff"), Filters("2026-11-01", "staff"),
    Filters(language="fr"), Filters("2026-10-09", "staff", "en", "policy"), Filters("1990-01-01")])
def test_the_same_ranking_under_all_filters(pair, filters):
    ours, theirs, _ = pair
    assert ours.all_chunks(filters) == theirs.all_chunks(filters)
    for question in ("return window days", "garantie prolongée", "pw 2400 pump", "the a of to", "screen"):
        for limit in (1, 5, 50, 500):
            terms = [question, *question.split()]
            found = ours.keyword(terms, filters, limit)
            assert found == theirs.keyword(terms, filters, limit)  # the scores to their last bit
            vector = FakeEmbedder()._vector(question)
            mine, other = ours.dense(vector, filters, limit), theirs.dense(vector, filters, limit)
            assert dict(mine) == pytest.approx(dict(other), abs=2e-6)
            assert [one for one, _ in mine] == [one for one, _ in other]


@pytest.mark.parametrize("method", ["bm25", "dense", "hybrid"])
def test_the_same_results_for_every_question(pair, method):
    """With a fake model; benchmarks/engines.py does the same with the course's own, and prints how far they agree."""
    retrievers = [Retriever(store, FakeEmbedder()) for store in pair[:2]]
    for question in read_questions(REAL):
        filters = Filters(question.as_of, question.audience)
        mine, other = (one.search(question.text, method, 10, filters, question.history) for one in retrievers)
        assert [result.chunk for result in mine] == [result.chunk for result in other]
        assert [result.score for result in mine] == pytest.approx([result.score for result in other], abs=2e-6)
        assert (mine.searched, mine.notes) == (other.searched, other.notes)


words = st.text(st.sampled_from("aàbBé 12-.'\\:&|!🏡İßœ\u0301中"), max_size=25)


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_and_terms_give_the_same_bm25(twins, bodies, terms):
    entry = make_entry("mowers", *bodies)
    for one in twins:
        one.replace(remove=[("mowers", "2")], add=[entry])
    ours, theirs = (one.keyword(terms + bodies[:2], STAFF, 9) for one in twins)
    assert ours == theirs


@pytest.fixture(scope="module")
def twins(pg_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("twins") / "index.sqlite"
    with empty_index(pg_server.another()) as ours, Store(path, create=True) as theirs:
        yield ours, theirs


def test_very_long_words_and_texts_can_be_found(store):
    long, body = "x" * 5000, "the hedge " * 9000
    entry = make_entry("mowers", f"{long} blade", body + "trimmer")
    store.replace(add=[entry])
    assert store.keyword([long], STAFF, 9)[0][0] == entry.chunks[0].chunk_id
    assert store.keyword(["hedge trimmer"], STAFF, 9)[0][0] == entry.chunks[1].chunk_id
    assert store.keyword(["hedge"], STAFF, 9)[0][0] == entry.chunks[1].chunk_id


def test_any_sequence_of_changes_equals_a_new_index(pg_server):
    places = {name: pg_server.another() for name in ("index", "fresh")}

    class InServer(Sequence):
        def place(self, name):
            pg_server.run("DROP SCHEMA IF EXISTS lab_index CASCADE", url=places[name])
            return PostgresEngine(places[name])

    InServer.TestCase.settings = settings(max_examples=3, stateful_step_count=15, deadline=None,
                                          suppress_health_check=list(HealthCheck))
    InServer.TestCase().runTest()


@pytest.mark.parametrize("command", [["info"], ["chunks", "gift-cards"], ["chunks", "none"],
                                     ["search", "How long is the return window?", "--method", "bm25"]])
def test_the_same_lines_on_the_command_line(pair, capsys, command):
    ours, theirs, _ = pair
    outputs = []
    for index in (ours.url, str(theirs.path)):
        code = cli.run([*command, "--index", index])
        outputs.append((code, *[part.replace(index, "INDEX").replace(shown(ours.url), "INDEX")
                                for part in capsys.readouterr()]))
    assert outputs[0] == outputs[1] and outputs[0][1]


# Filters before ranking, also with the approximate index


@pytest.fixture
def many(store, pg_server, monkeypatch):
    """2,000 chunks behind an HNSW index; the exact search is confined to 100."""
    monkeypatch.setattr(postgres_search, "EXACT_UP_TO", 100)
    rng = np.random.default_rng(3)
    angles = rng.uniform(0, 2 * np.pi, (40, 50))
    angles[:3] = rng.uniform(3.0, 3.2, (3, 50))  # far from where the question will point
    add = [make_entry(f"d{n}", *(f"part {m}" for m in range(50)), vectors=np.stack([np.cos(row), np.sin(row)], axis=1),
                      audience="public" if n < 3 else "staff", language="fr" if n == 0 else "en")
           for n, row in enumerate(angles)]
    store.replace(add=add)
    pg_server.run("ANALYZE lab_index.chunks")
    return store


def exactly(store, *query):
    return store._rows(*postgres_search.exact_query(*query))


def test_above_the_threshold_the_index_is_asked(many, monkeypatch):
    question = np.array([1, 0], dtype=np.float32)
    sql, values = postgres_search.approximate_query(question, STAFF, 10)
    plan = "\n".join(row[0] for row in many._rows(f"EXPLAIN {sql}", values))
    assert "chunks_nearest" in plan
    monkeypatch.setattr(postgres_search, "exact_query", None)
    found = many.dense(question, STAFF, 10)
    monkeypatch.undo()
    assert len(found) == 10 and len(dict(found).keys() & dict(exactly(many, question, STAFF, 10)).keys()) >= 9
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))


def test_what_few_chunks_pass_is_searched_exactly(many, monkeypatch):
    monkeypatch.setattr(postgres_search, "approximate_query", None)
    question, filters = np.array([1, 0], dtype=np.float32), Filters(language="fr")
    assert many.dense(question, filters, 10) == exactly(many, question, filters, 10)


@pytest.mark.parametrize("patience", [20000, 1])
def test_a_filtered_search_finds_all_there_is(many, pg_server, monkeypatch, patience):
    """150 public chunks, all of them far away: the index goes on until it has them, or else the search is exact."""
    plain, exact = postgres_search.exact_query, []
    monkeypatch.setattr(postgres_search, "exact_query", lambda *query: exact.append(query) or plain(*query))
    settings = {"hnsw.max_scan_tuples": patience, "enable_seqscan": "off", "enable_sort": "off"}
    pg_server.run(*(f"ALTER DATABASE postgres SET {name} = {value}" for name, value in settings.items()))
    try:
        with PostgresStore(many.url) as other:
            question = np.array([1, 0], dtype=np.float32)
            for limit in (10, 150, 400):
                found = other.dense(question, Filters(), limit)
                assert len(found) == min(limit, 150)
                assert {chunk.audience for chunk in other.get([one for one, _ in found])} == {"public"}
    finally:
        pg_server.run(*(f"ALTER DATABASE postgres RESET {name}" for name in settings))
    assert len(exact) == (3 if patience == 1 else 0)


# One state at a time


def test_a_rebuild_does_not_disturb_who_is_reading(course):
    with opened(course.index) as reader:
        with reader.snapshot() as generation:
            write(course.corpus, "pump.md", front_matter(doc_id="pump", title="Pump") + "# Pump\n\nDrain it.\n")
            course.ingest(rebuild=True)
            assert len(reader.documents()) == 3 and reader.generation() == generation
            assert reader.keyword(["drain"], STAFF, 9) == []
        assert len(reader.documents()) == 4 and reader.generation() != generation


def test_readers_see_the_old_index_or_the_new_one_when_the_tables_are_replaced(course):
    """Models of 16 and 8 dimensions in turn, which takes new tables each time; readers never see an empty one."""
    small = FakeEmbedder("fake:8")
    small.dimensions, small._vector = 8, lambda text: np.eye(1, 8, dtype=np.float32)[0]
    faults, seen, stop = [], set(), threading.Event()

    def read():
        try:
            with opened(course.index) as reader:
                while not stop.is_set():
                    with reader.snapshot():
                        size = int(reader.meta()["dimensions"])
                        found = reader.dense(np.eye(1, size, dtype=np.float32)[0], STAFF, 99)
                        assert len(found) == len(reader.all_chunks()) == len(reader.get([one for one, _ in found])) == 6
                        seen.add(size)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for model in [small, course.embedder] * 4:
        ingest(course.corpus, course.index, model, rebuild=True)
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == [] and seen == {8, 16}


def test_who_is_reading_is_not_locked_out_while_new_tables_wait(course, pg_server):
    small = FakeEmbedder("fake:8")
    small.dimensions, small._vector = 8, lambda text: np.eye(1, 8, dtype=np.float32)[0]
    writer = threading.Thread(target=lambda: ingest(course.corpus, course.index, small, rebuild=True))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with opened(course.index) as reader:
        with reader.snapshot():
            writer.start()
            while pg_server.run(waiting) == [(0,)]:
                assert writer.is_alive()
            assert len(reader.documents()) == 3 and len(reader.all_chunks()) == 6
            assert reader.meta()["dimensions"] == "16"
        writer.join()
        assert reader.meta()["dimensions"] == "8"


def test_a_lost_connection_is_made_anew(course, pg_server):
    def cut_off():
        pg_server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'labsupport'")

    with opened(course.index) as reader:
        cut_off()
        assert len(reader.documents()) == 3
        cut_off()
        with reader.snapshot():
            assert len(reader.documents()) == 3
            cut_off()
            with pytest.raises(LabError, match="unchanged"):
                reader.documents()
        assert len(reader.documents()) == 3
    with pytest.raises(LabError):
        reader.documents()  # closed is closed


def test_connections_are_closed(course, pg_server):
    with opened(course.index) as reader, pytest.raises(ZeroDivisionError), reader.snapshot():
        1 / 0  # noqa: B018
    course.ingest(rebuild=True)
    course.embedder.fingerprint = "fake:2"
    course.refused("fake:2")
    assert pg_server.run("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'labsupport%'") == [(0,)]


# One writer at a time, and what is left of one that was killed


HOLD = """
import sys, time
from labsupport.engines.postgres import PostgresEngine
with PostgresEngine(sys.argv[1]).writing(print):
    print("held", flush=True)
    time.sleep(60)
"""
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from fakes import FakeEmbedder
from labsupport.engines import postgres_rows
from labsupport.engines.postgres import PostgresEngine
from labsupport.pipeline.updates import ingest
postgres_rows._count = lambda connection: os.kill(os.getpid(), signal.SIGKILL)  # all is written, nothing committed
ingest(sys.argv[1], PostgresEngine(sys.argv[2]), FakeEmbedder(), rebuild=sys.argv[4] == "rebuild")
"""


def test_who_waits_says_for_whom_and_a_killed_holder_does_not_block(course):
    write(course.corpus, "pump.md", front_matter(doc_id="pump", title="The pump") + "# The pump\n\nDrain it.\n")
    with subprocess.Popen([sys.executable, "-c", HOLD, course.index.url], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        said = []

        def progress(what, done, total):
            said.append(what)
            holder.kill()

        report = course.ingest(progress=progress)
    assert said[0].startswith(f"Another ingest is running (process {holder.pid} on ") and "; waiting for it" in said[0]
    assert report.added == ("documents/pump.md",)


def test_waiting_ends(course, monkeypatch):
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 0)
    write(course.corpus, "pump.md", front_matter(doc_id="pump", title="The pump") + "# The pump\n\nDrain it.\n")
    with course.index.writing(print):
        course.refused(rf"Another ingest is running \(process {os.getpid()} on .*did not finish in 0 minutes")


@pytest.mark.parametrize("how", ["update", "rebuild"])
def test_a_killed_ingest_leaves_the_old_index(course, how):
    before = state(course.index)
    (course.folder / "hedge.md").unlink()
    tests = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", KILLED, course.corpus, course.index.url, tests, how])
    assert done.returncode == -signal.SIGKILL
    assert state(course.index) == before
    assert course.ingest().removed == ("documents/hedge.md",)
    check(course.index)


def test_writers_in_threads_take_turns(course):
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(
        ingest(course.corpus, course.index, FakeEmbedder(), rebuild=True))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.chunks_added for report in reports] == [6, 6, 6]
    check(course.index)


# Deletion


def holds(pg_server, word):
    pg_server.run("CHECKPOINT")
    return any(word in path.read_bytes() for path in (Path(pg_server.folder) / "base").rglob("*") if path.is_file())


def test_what_was_deleted_is_gone_from_the_bytes_of_the_tables(course, pg_server):
    write(course.corpus, "pump.md", front_matter(doc_id="pump", title="The pump") + "# The pump\n\nXylophonic drain.\n")
    course.ingest()
    vector = course.embedder._vector("The pump\nXylophonic drain.").tobytes()[8:40]
    traces = b"Xylophonic", number("xylophonic").to_bytes(8, "little", signed=True), vector
    assert all(holds(pg_server, trace) for trace in traces)  # the text, the posting of the word, the vector
    (course.folder / "pump.md").unlink()
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 1 removed | chunks: +0 -1",
                              "  removed: documents/pump.md"]
    assert not any(holds(pg_server, trace) for trace in traces)


@pytest.mark.parametrize("begin", ["SELECT * FROM lab_index.chunks", "SELECT 1"])
def test_text_that_could_not_be_wiped_is_wiped_by_the_next_ingest(course, pg_server, monkeypatch, begin):
    """An older transaction holds its tables, or merely its state."""
    monkeypatch.setattr(postgres, "TIDY_SECONDS", 0.1)
    write(course.corpus, "pump.md", front_matter(doc_id="pump", title="The pump") + "# The pump\n\nXylophonic drain.\n")
    course.ingest()
    (course.folder / "pump.md").unlink()
    with psycopg.connect(course.index.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute(begin)
        report = course.ingest()
        assert "not yet wiped" in report.notes[0] and report.removed == ("documents/pump.md",)
    assert holds(pg_server, b"Xylophonic")
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"]
    assert not holds(pg_server, b"Xylophonic")


def test_large_tables_are_left_to_the_server(course, monkeypatch):
    monkeypatch.setattr(postgres, "FULL_UP_TO", 0)
    (course.folder / "hedge.md").unlink()
    assert "VACUUM FULL" in course.ingest().notes[0]
    assert course.ingest().notes == ()
