"""Rows of an index in PostgreSQL, and the one transaction in which they change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date

from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.index import DocumentRow, Entry, Key
from labsupport.pipeline.store import text_hash

from . import postgres_search as ranking
from .address import BUSY_SECONDS, Address, psycopg
from .postgres_schema import HNSW, INDEXABLE, NEAREST, SCHEMA
from .words import cut, places

OF_DOCUMENT = ("title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner")
OF_CHUNK = ("chunk_id", "doc_id", "version", "seq", "start", "end", "section", "breadcrumb", "parent", "kind",
            "content_kind", "part", "parts", "section_start", "table_header", "body", *OF_DOCUMENT)
CHUNK_COLUMNS = ", ".join(f'"{name}"' for name in OF_CHUNK)
DOCUMENT_COLUMNS = ", ".join(("doc_id", "version", *OF_DOCUMENT, "path", "sha256", "chunks", "words"))


def as_document(row: Sequence) -> DocumentRow:
    return DocumentRow(*(value.isoformat() if isinstance(value, date) else value for value in row))


def as_chunk(row: Sequence) -> Chunk:
    values = {name: value.isoformat() if isinstance(value, date) else value
              for name, value in zip(OF_CHUNK, row, strict=True)}
    return Chunk(**values | {"breadcrumb": tuple(values["breadcrumb"])})


@contextmanager
def transaction(connection: psycopg.Connection, address: Address) -> Iterator[None]:
    """All or nothing; who waits longer than `BUSY_SECONDS` for a lock gives up."""
    with address.errors():
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            connection.execute(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
            yield
            connection.execute("COMMIT")
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise


def change(connection: psycopg.Connection, remove: Sequence[Key], add: Sequence[Entry], paths: dict[Key, str],
           meta: dict[str, str]) -> None:
    """Remove, add and note, inside the caller's transaction."""
    # The generation first: it locks the row, so that a second writer waits for the end of this one.
    connection.execute(f"UPDATE {SCHEMA}.state SET generation = gen_random_uuid(), untidy = untidy OR %s",
                       [bool(remove)])
    with connection.cursor() as cursor:
        # With a document go its chunks and their vectors, and with these their postings, by foreign keys.
        cursor.executemany(f"DELETE FROM {SCHEMA}.documents WHERE doc_id = %s AND version = %s", remove)
        _add(cursor, add)
        cursor.executemany(f"UPDATE {SCHEMA}.documents SET path = %s WHERE doc_id = %s AND version = %s",
                           [(path, *key) for key, path in paths.items()])
        cursor.executemany(f"INSERT INTO {SCHEMA}.meta VALUES (%s, %s) "
                           "ON CONFLICT (key) DO UPDATE SET value = excluded.value", list(meta.items()))
    _count(connection)


def _add(cursor: psycopg.Cursor, entries: Sequence[Entry]) -> None:
    for entry in entries:
        if entry.vectors.ndim != 2 or len(entry.vectors) != len(entry.chunks):
            raise ValueError(f"{entry.document.path}: {len(entry.chunks)} chunks but vectors of shape "
                             f"{entry.vectors.shape}")
    words = [cut([chunk.text for chunk in entry.chunks]) for entry in entries]
    with cursor.copy(f"COPY {SCHEMA}.documents ({DOCUMENT_COLUMNS}) FROM STDIN") as copy:
        for entry, some in zip(entries, words, strict=True):
            document = entry.document
            copy.write_row([document.doc_id, document.version, *(getattr(document, name) for name in OF_DOCUMENT),
                            document.path, document.sha256, len(some), sum(map(len, some))])
    columns = f"{CHUNK_COLUMNS}, text_sha256, length, embedding"
    with cursor.copy(f"COPY {SCHEMA}.chunks ({columns}) FROM STDIN") as copy:
        for entry, some in zip(entries, words, strict=True):
            for chunk, vector, held in zip(entry.chunks, entry.vectors, some, strict=True):
                values = [list(chunk.breadcrumb) if name == "breadcrumb" else getattr(chunk, name) for name in OF_CHUNK]
                digest = bytes.fromhex(text_hash(chunk.text))
                copy.write_row([*values, digest, len(held), ranking.literal(vector)])
    with cursor.copy(f"COPY {SCHEMA}.postings FROM STDIN") as copy:
        for entry, some in zip(entries, words, strict=True):
            for chunk, held in zip(entry.chunks, some, strict=True):
                for word, at in places(held).items():
                    copy.write_row([chunk.doc_id, chunk.chunk_id, word, at])


def _count(connection: psycopg.Connection) -> None:
    """Note the sums that BM25 needs; make the HNSW index once there is much to search."""
    sums = f"SELECT coalesce(sum(chunks), 0), coalesce(sum(words), 0) FROM {SCHEMA}.documents"
    chunks, words = connection.execute(sums).fetchone()
    sql = f"UPDATE {SCHEMA}.state SET chunks = %s, words = %s RETURNING dimensions, to_regclass('{NEAREST}') IS NULL"
    dimensions, missing = connection.execute(sql, [chunks, words]).fetchone()
    if chunks > ranking.EXACT_UP_TO and dimensions <= INDEXABLE and missing:
        connection.execute(HNSW)
