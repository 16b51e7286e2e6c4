"""PostgreSQL with pgvector as an index engine, for collections and crowds that outgrow one file on one machine.

    python -m labsupport ingest --index postgresql://user@host/database

One index lives in one database, in a schema of its own. docs/engines.md compares it with SQLite and says how it spreads
over machines.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from labsupport.pipeline import LabError
from labsupport.pipeline.index import Entry, Notify
from labsupport.pipeline.sqlite_file import Replaceable

from .address import Address, here, psycopg
from .postgres_rows import change, transaction
from .postgres_schema import OF_SEARCH, SCHEMA, NoIndex, check_format, create, look_at
from .postgres_search import EXACT_UP_TO
from .postgres_store import PostgresStore

__all__ = ["PostgresEngine", "PostgresStore"]

WAIT_SECONDS = 600  # for another writer
LOOK_SECONDS = 0.5  # between two looks whether it has finished
TIDY_SECONDS = 2  # for readers of an older state, when deleted text is wiped
FULL_UP_TO = EXACT_UP_TO  # chunks: tables up to this size are written anew to wipe what was deleted
WITH_TEXT = ("documents", "chunks", "postings")
WRITER = (0x47414C31, 1)  # the advisory lock of who writes; one for each database


class PostgresEngine:
    """An index in the database at `url`, there already or not."""

    memo = None  # what `ingest` remembers of the folder belongs to a machine, the index to many

    def __init__(self, url: str):
        self.url = url
        self.address = Address(url)

    def open(self) -> PostgresStore | None:
        """The index, or None where there is none yet."""
        try:
            return PostgresStore(self.url)
        except NoIndex:
            return None

    @contextmanager
    def writing(self, notify: Notify) -> Iterator[None]:
        """One writer at a time, on whichever machine. Who has to wait says so, and for whom.

        The lock is the server's and ends with its connection, however that ends. Raises LabError after ten minutes.
        """
        with closing(self.address.connect(f"labsupport ingest, {here()}"[:63])) as connection:
            self._wait(connection, notify)
            yield

    def _wait(self, connection: psycopg.Connection, notify: Notify) -> None:
        until = time.monotonic() + WAIT_SECONDS
        said = None
        while True:
            with self.address.errors():
                if connection.execute("SELECT pg_try_advisory_lock(%s, %s)", WRITER).fetchone()[0]:
                    return
                by = f"Another ingest is running ({_holder(connection)})"
            if time.monotonic() > until:
                raise LabError(f"Nothing changed in the index. {by} and did not finish in {WAIT_SECONDS // 60} "
                               "minutes. Wait for it or end it, then run ingest again.")
            if by != said:
                said = by
                notify(f"{by}; waiting for it to finish", 0, 0)
            time.sleep(LOOK_SECONDS)

    def rebuild(self, add: Sequence[Entry], meta: dict[str, str]) -> None:
        """Put a new index in the place of the old, in one transaction: who is reading sees the old one to the end.

        The rows are replaced within the tables. Where vectors have another length now, or the tables are of an older
        format, the tables are, and that waits until nobody reads.
        """
        dimensions = int(meta["dimensions"])
        with closing(self.address.connect()) as connection, transaction(connection, self.address):
            if look_at(connection, self.address) == "none":
                create(connection, self.address, dimensions)
            elif not self._fits(connection, dimensions):
                connection.execute(f"LOCK TABLE {SCHEMA}.state IN ACCESS EXCLUSIVE MODE")
                connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
                create(connection, self.address, dimensions)
            keys = connection.execute(f"SELECT doc_id, version FROM {SCHEMA}.documents").fetchall()
            connection.execute(f"DELETE FROM {SCHEMA}.meta")
            change(connection, keys, add, {}, meta)
            for table in WITH_TEXT:
                connection.execute(f"ANALYZE {SCHEMA}.{table}")  # or the first searches are planned blindly

    def _fits(self, connection: psycopg.Connection, dimensions: int) -> bool:
        try:
            check_format(connection, self.address)
        except Replaceable:
            return False
        there = "SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest(%s::text[]) AS name"
        whole = connection.execute(there, [[f"{SCHEMA}.{table}" for table in OF_SEARCH]]).fetchone()[0]
        return whole and connection.execute(f"SELECT dimensions FROM {SCHEMA}.state").fetchone()[0] == dimensions

    def check(self) -> None:
        """Nothing: the server looks after its own pages (initdb --data-checksums, pg_amcheck)."""

    def untidy(self, index: PostgresStore) -> bool:
        return index.untidy()

    def tidy(self) -> list[str]:
        """Wipe what was deleted from the tables' files. Gives a note when that has to wait, or is left to the server.

        PostgreSQL marks deleted rows and fills their space later; VACUUM FULL writes a table anew, with readers locked
        out. So large tables get a plain VACUUM. The server's log of changes, its replicas' and its backups keep
        deleted text until they are recycled, as their owner has set it.
        """
        kept: list[int] = []
        try:
            with closing(self.address.connect()) as connection, self.address.errors():
                connection.add_notice_handler(lambda notice: kept.append(_not_removed(notice.message_detail)))
                connection.execute(f"SET lock_timeout = '{TIDY_SECONDS}s'")
                small = connection.execute(f"SELECT chunks FROM {SCHEMA}.state").fetchone()[0] <= FULL_UP_TO
                for table in WITH_TEXT:
                    connection.execute(f"VACUUM ({'FULL, VERBOSE, ' if small else ''}ANALYZE) {SCHEMA}.{table}")
                if any(kept):
                    raise LabError("another transaction in the server still sees an older state")
                connection.execute(f"UPDATE {SCHEMA}.state SET untidy = false")
        except LabError as error:
            return [f"deleted text is no longer found, but not yet wiped from the tables ({error}); the next ingest "
                    "does it"]
        return [] if small else ["deleted text is no longer found; in the tables' files its space is reused bit by bit "
                                 f"(at once with: VACUUM FULL {SCHEMA}.chunks, which locks readers out)"]


def _not_removed(detail: str | None) -> int:
    """How many dead rows a VACUUM FULL had to keep: the first number of its detail, in whatever language."""
    number = re.search(r"\d+", detail or "")
    return int(number.group()) if number else 0


def _holder(connection: psycopg.Connection) -> str:
    """Who has the lock, in the words `writing` connects with."""
    row = connection.execute(
        "SELECT application_name, pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE locktype = 'advisory' "
        "AND granted AND l.database = a.datid AND datname = current_database() AND classid = %s AND objid = %s",
        WRITER).fetchone()
    if row is None:
        return "another process"
    return row[0].removeprefix("labsupport ingest, ") or f"process {row[1]} of the server"
