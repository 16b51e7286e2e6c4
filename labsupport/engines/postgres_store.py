"""An open index in PostgreSQL: what `Store` is for a SQLite file.

A search reads in one transaction, REPEATABLE READ and read-only, so it may run on a replica; so is a change one.
The vectors stay in the server, so nothing in the memory of this process can grow stale.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.index import DocumentRow, Entry, Filters, Key

from . import postgres_search as ranking
from .address import Address, psycopg
from .postgres_rows import CHUNK_COLUMNS, as_chunk, as_document, change, transaction
from .postgres_schema import FORMAT, SCHEMA, NoIndex, check_format, look_at

if TYPE_CHECKING:
    import numpy as np

CHUNK_ROWS = f"SELECT {CHUNK_COLUMNS} FROM {SCHEMA}.chunks"
TRIES = 5  # to begin a snapshot while tables are replaced


class PostgresStore:
    """The index at `url`, postgresql://user@host:port/database; closes as a context manager.

    May be shared between threads, which then take turns; for more at a time, open more. Raises LabError where there is
    no server, no database or no index, and where the user is not let in.
    """

    check_generation = True  # asked for by the protocol; there are no vectors in memory here

    def __init__(self, url: str):
        self.url = url
        self.address = Address(url)
        self._guard = threading.RLock()
        self._depth = 0  # of nested snapshots
        self._closed = False
        self._connection = self.address.connect()
        try:
            with self.address.errors():
                if look_at(self._connection, self.address) == "none":
                    raise NoIndex(f"No index at {self.address.shown}. Build it with: {self.address.build}")
                check_format(self._connection, self.address)
        except BaseException:
            self.close()
            raise

    @property
    def shown(self) -> str:
        """The address, fit for printing: without its password."""
        return self.address.shown

    def __enter__(self) -> PostgresStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    # Reading

    def _execute(self, sql: str, values: Sequence = ()) -> psycopg.Cursor:
        try:
            return self._connection.execute(sql, values or None)
        except psycopg.OperationalError:
            if self._depth or self._closed or not self._connection.closed:
                raise
        self._connection = self.address.connect()  # the server was started anew; nothing was under way
        return self._connection.execute(sql, values or None)

    def _rows(self, sql: str, values: Sequence = ()) -> list[tuple]:
        with self._guard, self.address.errors():
            return self._execute(sql, values).fetchall()

    def generation(self) -> str:
        """Differs after every change to the index, by whichever process on whichever machine; none comes twice."""
        return str(self._state("generation"))

    def untidy(self) -> bool:
        """Was something deleted whose text may still lie in free space of the tables' files?"""
        return bool(self._state("untidy"))

    def _state(self, column: str) -> object:
        for _ in range(TRIES):  # while the tables are replaced, the row may be missing for a moment
            if rows := self._rows(f"SELECT {column} FROM {SCHEMA}.state"):
                return rows[0][0]
        raise LabError(f"The index {self.address.shown} is being built anew; run the command again.")

    @contextmanager
    def snapshot(self) -> Iterator[str]:
        """One read transaction: all that is read inside is of one state. Gives its generation. May be nested."""
        with self._guard:
            if self._depth == 0:
                self._begin()
            self._depth += 1
            try:
                yield self.generation()
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._end()

    def _begin(self) -> None:
        """The first read fixes the state, and its lock holds off a rebuild that would replace the tables.

        Who had to wait for such a rebuild is left with a state older than the new tables, which then look empty; so
        this begins again.
        """
        for _ in range(TRIES):
            with self.address.errors():
                self._execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    if self._connection.execute(f"SELECT 1 FROM {SCHEMA}.state").fetchone():
                        return
                except BaseException:
                    self._end()
                    raise
                self._end()
        raise LabError(f"The index {self.address.shown} is being built anew; run the command again.")

    def _end(self) -> None:
        with suppress(psycopg.Error):  # with the connection its transaction is gone, too
            self._connection.execute("ROLLBACK")

    def meta(self) -> dict[str, str]:
        """What the index was made with: chunker, chunker_label, embedder, fingerprint, dimensions, format."""
        return dict(self._rows(f"SELECT key, value FROM {SCHEMA}.meta ORDER BY key")) | {"format": str(FORMAT)}

    def documents(self) -> list[DocumentRow]:
        """The document versions, by id and first day in force."""
        columns = ", ".join(DocumentRow.__dataclass_fields__)
        rows = self._rows(f"SELECT {columns} FROM {SCHEMA}.documents ORDER BY doc_id, effective_from, version")
        return [as_document(row) for row in rows]

    def chunks(self, doc_id: str, version: str | None = None) -> list[Chunk]:
        """The chunks of one document, in the order of its text; of all its versions where none is named."""
        where, values = "doc_id = %s", [_legal(doc_id)]
        if version is not None:
            where, values = where + " AND version = %s", [*values, _legal(version)]
        rows = self._rows(f"{CHUNK_ROWS} WHERE {where} ORDER BY effective_from, version, seq", values)
        return [as_chunk(row) for row in rows]

    def all_chunks(self, filters: Filters | None = None) -> list[Chunk]:
        """Every chunk the filters let through (without filters: every chunk), by document and place in it."""
        where, values = ranking.passing(filters)
        rows = self._rows(f"{CHUNK_ROWS} WHERE {where} ORDER BY doc_id, effective_from, version, seq", values)
        return [as_chunk(row) for row in rows]

    def get(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks with these ids, in the order given; what is not in the index is left out."""
        rows = self._rows(f"{CHUNK_ROWS} WHERE chunk_id = ANY(%s)", [_chunk_ids(ids)])
        found = {chunk.chunk_id: chunk for chunk in map(as_chunk, rows)}
        return [found[one] for one in ids if one in found]

    def keyword(self, terms: Sequence[str], filters: Filters, limit: int) -> list[tuple[str, float]]:
        """The best chunks that hold any of the plain words `terms`, as (chunk id, BM25 score above 0), ties by id."""
        query = ranking.keyword_query(terms, filters, limit)
        return self._rows(*query) if query else []

    def dense(self, vector: np.ndarray, filters: Filters, limit: int) -> list[tuple[str, float]]:
        """The chunks nearest to `vector` (length 1), as (chunk id, cosine), ties by id.

        Every chunk that passes the filters is compared, unless there are more than `EXACT_UP_TO` of them.
        """
        if limit < 1:
            return []
        with self.snapshot():
            passing, indexed = self._rows(*ranking.sizes_query(filters))[0]
            if indexed and passing > ranking.EXACT_UP_TO:
                self._rows(ranking.SETTINGS, [str(min(1000, max(ranking.ASKED_OF_HNSW, 2 * limit)))])
                found = self._rows(*ranking.approximate_query(vector, filters, limit))
                if len(found) == min(limit, passing):
                    return found  # else it gave up: the filters let little through where the question points
            return self._rows(*ranking.exact_query(vector, filters, limit))

    def vectors(self, ids: Sequence[str]) -> dict[str, np.ndarray]:
        """The stored vectors of these chunks, float32."""
        sql = f"SELECT chunk_id, embedding::real[] FROM {SCHEMA}.chunks WHERE chunk_id = ANY(%s)"
        return _arrays(self._rows(sql, [_chunk_ids(ids)]))

    def vectors_of_texts(self, hashes: Sequence[str]) -> dict[str, np.ndarray]:
        """Vectors by `text_hash` of the text they stand for: no text is embedded twice."""
        sql = (f"SELECT DISTINCT ON (text_sha256) encode(text_sha256, 'hex'), embedding::real[] FROM {SCHEMA}.chunks "
               "WHERE text_sha256 = ANY(%s)")
        return _arrays(self._rows(sql, [[bytes.fromhex(one) for one in hashes]]))

    # Writing

    def replace(self, remove: Sequence[Key] = (), add: Sequence[Entry] = (), paths: dict[Key, str] | None = None,
                meta: dict[str, str] | None = None) -> None:
        """In one transaction: remove these document versions, add those, note new `paths` of others, and `meta`."""
        with self._guard, transaction(self._connection, self.address):
            change(self._connection, remove, add, paths or {}, meta or {})


def _chunk_ids(ids: Sequence[str]) -> list[str]:
    return [one for one in ids if re.fullmatch("[0-9a-f]{12}", one)]


def _legal(text: str) -> str:
    """`text` without what PostgreSQL cannot even be asked for; no id has such characters."""
    return text.replace("\0", "?").encode("utf-8", "replace").decode()


def _arrays(rows: list[tuple[str, list[float]]]) -> dict[str, np.ndarray]:
    import numpy as np

    return {one: np.array(values, dtype=np.float32) for one, values in rows}
