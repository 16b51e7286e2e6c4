"""How PostgreSQL ranks: BM25 over the words of the chunks, and cosines by pgvector. Filters come before any limit.

PostgreSQL's own ts_rank knows neither how rare a word is nor how long the texts are. So BM25 is computed here, with the
formula and the constants of SQLite's FTS5 (k1 = 1.2, b = 0.75, a weight of 0.000001 for words in half of all chunks or
more), step by step in its order: both engines give the same scores, and ties are ties in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labsupport.pipeline.index import Filters

from .postgres_schema import NEAREST, SCHEMA
from .words import cut, number

if TYPE_CHECKING:
    import numpy as np

# Up to here every vector that passes the filters is compared: nothing is missed, and it takes milliseconds. Above, the
# HNSW index is asked, which may miss a neighbour. docs/engines.md has the measurements.
EXACT_UP_TO = 10_000
ASKED_OF_HNSW = 100  # neighbours it looks for at a time, at least: more finds more and takes longer

# How often a chunk holds a word, or a phrase: it begins at `origin` where each of its words stands in its place.
OF_WORDS = f"""
    SELECT doc_id, chunk_id, term, cardinality(places)::float8 AS times
    FROM unnest(%s::int[], %s::bigint[]) AS asked (term, word) JOIN {SCHEMA}.postings USING (word)"""
OF_PHRASES = f"""
    SELECT doc_id, chunk_id, term, count(*)::float8 AS times FROM (
        SELECT doc_id, chunk_id, term, at - place AS origin
        FROM unnest(%s::int[], %s::int[], %s::int[], %s::bigint[]) AS asked (term, size, place, word)
        JOIN {SCHEMA}.postings USING (word), unnest(places) AS at
        GROUP BY doc_id, chunk_id, term, origin, size HAVING count(*) = size) AS begins
    GROUP BY doc_id, chunk_id, term"""

# How many chunks hold it is counted before the filters, as FTS5 counts.
BM25 = f"""
WITH found AS MATERIALIZED ({{found}}),
counted AS (
    SELECT term, count(*) AS holding, (SELECT chunks FROM {SCHEMA}.state)::float8 AS n FROM found GROUP BY term),
weights AS MATERIALIZED (
    SELECT term, ln((n - holding + 0.5::float8) / (holding + 0.5::float8)) AS idf,
        (SELECT words / chunks::float8 FROM {SCHEMA}.state) AS mean FROM counted)
SELECT chunk_id, sum(
    CASE WHEN idf > 0 THEN idf ELSE 1e-6::float8 END
    * ((times * (1.2::float8 + 1)) / (times + 1.2::float8 * (1 - 0.75::float8 + 0.75::float8 * length / mean)))
    ORDER BY term) AS score
FROM found JOIN weights USING (term) JOIN {SCHEMA}.chunks USING (doc_id, chunk_id) WHERE {{where}}
GROUP BY doc_id, chunk_id ORDER BY score DESC, chunk_id LIMIT %s"""

# Cosines are rounded as in pipeline/memory.py: what is equal must compare as equal. Sorted by the rounded number,
# which no index holds, so every row is compared.
EXACT = f"""
SELECT chunk_id, round(-1e6::float8 * (embedding <#> %s::vector)) / 1e6::float8 AS cosine FROM {SCHEMA}.chunks
WHERE {{where}} ORDER BY cosine DESC, chunk_id LIMIT %s"""

APPROXIMATE = f"""
WITH near AS MATERIALIZED (
    SELECT chunk_id, embedding <#> %s::vector AS distance FROM {SCHEMA}.chunks
    WHERE {{where}} ORDER BY distance LIMIT %s)
SELECT chunk_id, round(-1e6::float8 * distance) / 1e6::float8 AS cosine FROM near
ORDER BY cosine DESC, chunk_id LIMIT %s"""

# Goes on through the index until enough rows have passed the filters, in the order of their distance.
SETTINGS = "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', %s, true)"


def passing(filters: Filters | None) -> tuple[str, list[str]]:
    """The filters as a condition on documents or chunks; the last day in force is inclusive."""
    parts, values = ["true"], []
    if filters and filters.as_of:
        parts.append("effective_from <= %s::date AND (effective_to IS NULL OR effective_to >= %s::date)")
        values += [filters.as_of, filters.as_of]
    if filters and filters.audience == "public":
        parts.append("audience = 'public'")
    for name in ("language", "doc_type"):
        if filters and getattr(filters, name):
            parts.append(f"{name} = %s")
            values.append(getattr(filters, name))
    return " AND ".join(parts), values


def keyword_query(terms: Sequence[str], filters: Filters, limit: int) -> tuple[str, list] | None:
    """SQL and values for the best chunks that hold any of `terms`; None where these have no word."""
    asked = list(enumerate(words for words in cut(terms) if words))
    single = [(term, number(words[0])) for term, words in asked if len(words) == 1]
    phrases = [(term, len(words), place, number(word)) for term, words in asked if len(words) > 1
               for place, word in enumerate(words)]
    if not asked or limit < 1:
        return None
    parts = [(sql, rows) for sql, rows in ((OF_WORDS, single), (OF_PHRASES, phrases)) if rows]
    columns = [list(column) for _, rows in parts for column in zip(*rows, strict=True)]
    where, values = passing(filters)
    return BM25.format(found=" UNION ALL ".join(sql for sql, _ in parts), where=where), [*columns, *values, limit]


def exact_query(vector: np.ndarray, filters: Filters, limit: int) -> tuple[str, list]:
    where, values = passing(filters)
    return EXACT.format(where=where), [literal(vector), *values, limit]


def approximate_query(vector: np.ndarray, filters: Filters, limit: int) -> tuple[str, list]:
    """Some more than `limit` are fetched, so that ties at the cut are decided by the id and not by the index."""
    where, values = passing(filters)
    return APPROXIMATE.format(where=where), [literal(vector), *values, limit + limit // 2 + 10, limit]


def sizes_query(filters: Filters) -> tuple[str, list]:
    """How many chunks pass the filters, and whether there is an HNSW index."""
    where, values = passing(filters)
    sql = f"SELECT coalesce(sum(chunks), 0), to_regclass('{NEAREST}') IS NOT NULL FROM {SCHEMA}.documents WHERE {where}"
    return sql, values


def literal(vector: np.ndarray) -> str:
    """A vector as pgvector writes it; nine digits give back the same float32."""
    return f"[{','.join(f'{number:.9g}' for number in vector.tolist())}]"
