"""The index as one SQLite file: documents, chunks, an FTS5 keyword index, vectors, and a meta table.

A chunk's row number is its id read as a number, so the same folder gives the same rows whatever happened before. Rows
hang together by foreign keys: with a document go its chunks and vectors. The keyword index holds no text of its own.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import LabError
from .chunking import Chunk
from .index import DocumentRow, Entry, Filters, Key
from .rows import CHUNK_ROWS, OF_CHUNK, OF_DOCUMENT, chunk_of, condition, marks, row_number, text_hash
from .sqlite_file import APPLICATION_ID, BUILD, FORMAT, SCHEMA, check_format, connect, frozen, look_at, sql_errors

if TYPE_CHECKING:
    import numpy as np

    from .memory import Matrix

class Store:
    """The index at `path`; closes as a context manager. May be shared between threads, which then take turns.

    `create` makes an empty index where there is none. Raises LabError where there is none, or a file that is not one.
    """

    check_generation = True

    def __init__(self, path: Path | str, create: bool = False):
        self.path = Path(path)
        self._guard = threading.RLock()
        self._depth = 0  # of nested snapshots
        self._writes = 0
        self._matrix: Matrix | None = None
        state = look_at(self.path)
        if state == "none" and not create:
            raise LabError(f"No index at {self.path.as_posix()}. Build it with: {BUILD}")
        self._frozen = None if create else frozen(self.path)
        self._connection = connect(self.path, create)
        try:
            with sql_errors(self.path):
                if state == "none":
                    self._create()
                check_format(self._connection, self.path)
        except BaseException:
            self._connection.close()
            raise

    def _create(self) -> None:
        self._connection.execute("PRAGMA page_size = 4096")  # a rebuild copies pages: all our files have one size
        with self._transaction() as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            for statement in SCHEMA.split(";\n"):
                connection.execute(statement)
        self._connection.execute("PRAGMA journal_mode = WAL")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let go of the vectors in memory."""
        self._matrix = None
        self._connection.close()

    # Reading

    def _rows(self, sql: str, values: Sequence = ()) -> list[tuple]:
        with self._guard, sql_errors(self.path):
            if self._frozen and self._depth == 0 and self._frozen != frozen(self.path):
                self._connection.close()
                self._frozen, self._connection = frozen(self.path), connect(self.path)
            return self._connection.execute(sql, values).fetchall()

    def generation(self) -> Hashable:
        """Differs after every change to the index: SQLite counts those of other connections, we count our own.

        Comparable within one open Store only.
        """
        return self._rows("PRAGMA data_version")[0][0], self._writes, self._frozen

    @contextmanager
    def snapshot(self) -> Iterator[Hashable]:
        """One read transaction: all that is read inside is of one state. Gives its generation. May be nested."""
        with self._guard:
            if self._depth == 0:
                self._rows("BEGIN")
            self._depth += 1
            try:
                yield self.generation()  # the first read, which fixes the state
            finally:
                self._depth -= 1
                if self._depth == 0 and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if self._frozen and self._frozen != frozen(self.path):
                raise LabError(f"The index {self.path.as_posix()} was changed while it was read. Ask again.")

    def meta(self) -> dict[str, str]:
        """What the index was made with: chunker, chunker_label, embedder, fingerprint, dimensions, format."""
        rows = self._rows("SELECT key, value FROM meta WHERE key != 'untidy' ORDER BY key")
        return dict(rows) | {"format": str(FORMAT)}

    def untidy(self) -> bool:
        """Was something deleted whose text may still lie in free space of the file?"""
        return bool(self._rows("SELECT 1 FROM meta WHERE key = 'untidy'"))

    def documents(self) -> list[DocumentRow]:
        """The document versions, by id and first day in force."""
        columns = ", ".join(DocumentRow.__dataclass_fields__)
        order = "ORDER BY doc_id, effective_from, version"
        return [DocumentRow(*row) for row in self._rows(f"SELECT {columns} FROM documents {order}")]

    def chunks(self, doc_id: str, version: str | None = None) -> list[Chunk]:
        """The chunks of one document, in the order of its text; of all its versions where none is named."""
        where, values = "doc_id = ?", [doc_id]
        if version is not None:
            where, values = where + " AND version = ?", [doc_id, version]
        rows = self._rows(f"{CHUNK_ROWS} WHERE {where} ORDER BY effective_from, version, seq", values)
        return [chunk_of(row) for row in rows]

    def all_chunks(self, filters: Filters | None = None) -> list[Chunk]:
        """Every chunk the filters let through (without filters: every chunk), by document and place in it."""
        where, values = condition(filters)
        rows = self._rows(f"{CHUNK_ROWS} WHERE {where} ORDER BY doc_id, effective_from, version, seq", values)
        return [chunk_of(row) for row in rows]

    def get(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks with these ids, in the order given; what is not in the index is left out."""
        found = []
        for row in map(row_number, ids):
            found += self._rows(f"{CHUNK_ROWS} WHERE id = ?", [row]) if row is not None else []
        return [chunk_of(row) for row in found]

    def keyword(self, terms: Sequence[str], filters: Filters, limit: int) -> list[tuple[str, float]]:
        """The best chunks that hold any of the plain words `terms`, as (chunk id, BM25 score above 0), ties by id.

        Each term is quoted, so none of it is read as FTS5's query language.
        """
        words = [term.encode("utf-8", "ignore").decode().replace("\0", " ").replace('"', '""') for term in terms]
        query = " OR ".join(f'"{word}"' for word in words if word.strip())
        if not query or limit < 1:
            return []
        where, values = condition(filters)
        return self._rows(
            "SELECT chunk_id, -bm25(keywords) AS score FROM keywords JOIN chunks ON id = keywords.rowid "
            f"JOIN documents USING (doc_id, version) WHERE keywords MATCH ? AND {where} "
            "ORDER BY score DESC, id LIMIT ?",
            [query, *values, limit])

    def dense(self, vector: np.ndarray, filters: Filters, limit: int) -> list[tuple[str, float]]:
        """The chunks nearest to `vector` (length 1), as (chunk id, cosine), ties by id; every chunk is compared."""
        with self.snapshot() as generation:
            matrix = self._in_memory(generation)
            where, values = condition(filters)
            mask = matrix.mask(filters, lambda: [row[0] for row in self._rows(
                f"SELECT id FROM chunks JOIN documents USING (doc_id, version) WHERE {where}", values)])
            return [(f"{row:012x}", cosine) for row, cosine in matrix.nearest(vector, mask, limit)]

    def _in_memory(self, generation: Hashable) -> Matrix:
        if self._matrix is not None and (self._matrix.generation == generation or not self.check_generation):
            return self._matrix
        import numpy as np

        from .memory import Matrix

        self._matrix = None  # the old one is let go before the new one is read
        rows = self._rows("SELECT id, vector FROM vectors ORDER BY id")
        blob = b"".join(vector for _, vector in rows)
        vectors = np.frombuffer(blob, dtype="<f4").reshape(len(rows), -1) if rows else np.empty((0, 0), np.float32)
        self._matrix = Matrix([row[0] for row in rows], vectors, generation)
        return self._matrix

    def vectors(self, ids: Sequence[str]) -> dict[str, np.ndarray]:
        """The stored vectors of these chunks, float32."""
        import numpy as np

        wanted = {one: row_number(one) for one in ids}
        found = {one: self._rows("SELECT vector FROM vectors WHERE id = ?", [row]) for one, row in wanted.items()}
        return {one: np.frombuffer(rows[0][0], dtype="<f4") for one, rows in found.items() if rows}

    def vectors_of_texts(self, hashes: Sequence[str]) -> dict[str, np.ndarray]:
        """Vectors by `text_hash` of the text they stand for: no text is embedded twice."""
        import numpy as np

        sql = "SELECT vector FROM vectors WHERE text_sha256 = ? LIMIT 1"
        found = {one: self._rows(sql, [bytes.fromhex(one)]) for one in hashes}
        return {one: np.frombuffer(rows[0][0], dtype="<f4") for one, rows in found.items() if rows}

    # Writing

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. IMMEDIATE: a transaction that read first and writes later could not wait for its turn."""
        with self._guard, sql_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._writes += 1

    def replace(self, remove: Sequence[Key] = (), add: Sequence[Entry] = (), paths: dict[Key, str] | None = None,
                meta: dict[str, str] | None = None) -> None:
        """In one transaction: remove these document versions, add those, note new `paths` of others, and `meta`."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM documents WHERE doc_id = ? AND version = ?", remove)
            for entry in add:
                self._add(connection, entry)
            renamed = [(path, *key) for key, path in (paths or {}).items()]
            connection.executemany("UPDATE documents SET path = ? WHERE doc_id = ? AND version = ?", renamed)
            # Deleted words stay in FTS5's segments until these are merged; made anew, it holds what the table holds.
            if remove or add or meta:
                connection.execute("INSERT INTO keywords (keywords) VALUES ('rebuild')")
            notes = dict(meta or {}) | ({"untidy": "1"} if remove else {})
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", notes.items())

    def _add(self, connection: sqlite3.Connection, entry: Entry) -> None:
        document, chunks = entry.document, entry.chunks
        if entry.vectors.ndim != 2 or len(entry.vectors) != len(chunks):
            raise ValueError(f"{document.path}: {len(chunks)} chunks but vectors of shape {entry.vectors.shape}")
        fields = ("doc_id", "version", *OF_DOCUMENT, "path", "sha256")
        values = [*(getattr(document, name) for name in fields), len(chunks)]
        connection.execute(f"INSERT INTO documents VALUES ({marks(values)})", values)
        names = ", ".join(f'"{name}"' for name in ("id", *OF_CHUNK))
        for chunk, vector in zip(chunks, entry.vectors, strict=True):
            breadcrumb = json.dumps(chunk.breadcrumb, ensure_ascii=False)
            values = [breadcrumb if name == "breadcrumb" else getattr(chunk, name) for name in OF_CHUNK]
            row = row_number(chunk.chunk_id)
            connection.execute(f"INSERT INTO chunks ({names}) VALUES ({marks(['', *values])})", [row, *values])
            digest = bytes.fromhex(text_hash(chunk.text))
            connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", [row, digest, vector.astype("<f4").tobytes()])
