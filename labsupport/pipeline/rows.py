"""How documents, chunks and filters are put into SQL, and chunks got out of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from .chunking import Chunk
from .index import Filters

OF_DOCUMENT = ("title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner")
OF_CHUNK = ("doc_id", "version", "seq", "start", "end", "section", "breadcrumb", "parent", "kind", "content_kind",
            "part", "parts", "section_start", "table_header", "body")
CHUNK_COLUMNS = ", ".join(f'"{name}"' for name in ("chunk_id", *OF_CHUNK, *OF_DOCUMENT))
CHUNK_ROWS = f"SELECT {CHUNK_COLUMNS} FROM chunks JOIN documents USING (doc_id, version)"


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def row_number(chunk_id: str) -> int | None:
    return int(chunk_id, 16) if re.fullmatch("[0-9a-f]{12}", chunk_id) else None


def marks(values: Sequence) -> str:
    return ", ".join("?" * len(values))


def chunk_of(row: tuple) -> Chunk:
    values = dict(zip(("chunk_id", *OF_CHUNK, *OF_DOCUMENT), row, strict=True))
    return Chunk(**values | {"breadcrumb": tuple(json.loads(values["breadcrumb"]))})


def condition(filters: Filters | None) -> tuple[str, list[str]]:
    """The filters as a condition on `documents`. ISO dates compare as text; the last day is inclusive."""
    parts, values = ["1"], []
    if filters and filters.as_of:
        parts.append("effective_from <= ? AND (effective_to IS NULL OR effective_to >= ?)")
        values += [filters.as_of, filters.as_of]
    if filters and filters.audience == "public":
        parts.append("audience = 'public'")
    for name in ("language", "doc_type"):
        if filters and getattr(filters, name):
            parts.append(f"{name} = ?")
            values.append(getattr(filters, name))
    return " AND ".join(parts), values
