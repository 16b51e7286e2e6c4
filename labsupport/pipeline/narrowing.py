"""The grounded path: few passages, each of them worth answering from, or none at all.

1. nearest: the twelve passages nearest to the question by cosine (also to its translation, see search.py).
2. similarity floor: what lies further away is dropped.
3. reranker: question and passage are read together.
4. strict floor and cap: only what the reranker is sure of stays, and at most a handful. A passage in a language the
   reranker does not read must be nearer than another floor, or hold every word of the translated question.
5. restored: a part of a long section that survived brings along the other parts, in order.

A search always finds something; this may find nothing, and an answerer that gets nothing says so. Cosines of two models
do not compare, so the floors belong to a pair of models: they were chosen with benchmarks/tune_floors.py on the
questions marked "tune" and are reported on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.index import Filters
from labsupport.pipeline.rewriting import Query
from labsupport.pipeline.search import Retriever, names

NEAREST = 12


@dataclass(frozen=True)
class Floors:
    """The lowest scores that stay: cosine before the reranker, its score, and the cosine of what it cannot read."""

    similarity: float
    reranker: float
    unread: float
    cap: int = 5


FLOORS = {
    ("all-MiniLM-L6-v2", "ms-marco-MiniLM-L-12-v2"): Floors(0.22, -0.6, 0.54),
    ("multilingual-e5-small", "ms-marco-MiniLM-L-12-v2"): Floors(0.83, 0.0, 0.89),
}


@dataclass(frozen=True)
class Step:
    """One step: the chunk ids that went on, in order, each with its score, and those dropped, with the reason.

    A score is the reranker's where it read the passage, else the cosine; None for a part that was only restored.
    """

    name: str
    kept: tuple[tuple[str, float | None], ...]
    dropped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Narrowing:
    """`chunks` is what to show, sections whole and in order; `hits` (ids, best first) is what was found.

    For the context: assemble(narrowing.chunks, budget, hits=narrowing.hits). `covered`: ids of passages that hold every
    word of the translated question.
    """

    steps: tuple[Step, ...]
    hits: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    parts: dict[str, dict[str, float]]  # of each of the nearest: its cosine, and the reranker's score if it was read
    covered: frozenset[str]
    notes: tuple[str, ...]
    filters: Filters
    floors: Floors

    @property
    def restored(self) -> tuple[str, ...]:
        return tuple(chunk.chunk_id for chunk in self.chunks if chunk.chunk_id not in self.hits)


def narrow(retriever: Retriever, question: str, filters: Filters | None = None, history: Sequence[str] = (),
           floors: Floors | None = None, nearest: int = NEAREST) -> Narrowing:
    """Search, drop what is not near or not to the point, restore the sections of what is left.

    Raises LabError for models without floors of their own and, as `search`, for an index built with another model.
    """
    asked, filters = retriever.rewrite(question, filters or Filters(), history)
    floors = floors or floors_of(retriever)
    notes = list(asked.notes)
    vectors = retriever.vectors(asked.queries, notes)
    near: dict[str, float] = {}
    covered: set[str] = set()  # passages that hold every word of the translation
    with retriever.store.snapshot():
        for query in asked.queries:
            translated = retriever.translated(query, vectors, filters, notes).get("translated cosine", [])
            covered.update(chunk_id for chunk_id, _ in translated)
            for chunk_id, cosine in [*retriever.store.dense(vectors[query.text], filters, nearest), *translated]:
                near[chunk_id] = max(cosine, near.get(chunk_id, -1.0))
        chunks = {c.chunk_id: c for c in retriever.store.get(sorted(near, key=lambda i: (-near[i], i))[:nearest])}
        siblings = {i: _siblings(retriever, chunk, filters) for i, chunk in chunks.items() if chunk.parts > 1}

    steps = [Step("nearest", tuple((i, near[i]) for i in chunks))]
    close = [i for i in chunks if near[i] >= floors.similarity]
    far = tuple((i, f"cosine {near[i]:.3f} is below {floors.similarity}") for i in chunks if i not in close)
    steps.append(Step("similarity floor", tuple((i, near[i]) for i in close), far))

    read = _read(retriever, asked.queries, {i: chunks[i] for i in close}, notes)
    if len(read) < len(close):
        notes.append(f"The reranker reads {names(retriever.reranker.languages)}: other passages are kept or dropped "
                     "by their cosine and the words they hold.")
    # Read passages stand in the order of their score, the others keep their places, as in search.
    best = iter(sorted(read, key=lambda i: (-read[i], i)))
    order = [next(best) if i in read else i for i in close]
    scores = {i: read.get(i, near[i]) for i in order}
    steps.append(Step("reranker", tuple(scores.items())))

    weak = {i: f"reranker score {read[i]:.2f} is below {floors.reranker}" for i in read if read[i] < floors.reranker}
    weak |= {i: f"not read by the reranker, and cosine {near[i]:.3f} is below {floors.unread}"
             for i in close if i not in read and i not in covered and near[i] < floors.unread}
    sure = [i for i in order if i not in weak]
    hits = sure[: floors.cap]
    dropped = weak | {i: f"over the cap of {floors.cap}" for i in sure[floors.cap :]}
    steps.append(Step("strict floor and cap", tuple((i, scores[i]) for i in hits),
                      tuple((i, dropped[i]) for i in order if i in dropped)))

    whole = _restore([chunks[i] for i in hits], siblings)
    steps.append(Step("restored", tuple((c.chunk_id, scores.get(c.chunk_id)) for c in whole)))
    parts = {i: {"cosine": near[i]} | ({"reranker": read[i]} if i in read else {}) for i in chunks}
    return Narrowing(tuple(steps), tuple(hits), tuple(whole), parts, frozenset(covered),
                     tuple(dict.fromkeys(notes)), filters, floors)


def floors_of(retriever: Retriever) -> Floors:
    pair = (retriever.embedder.name, retriever.reranker.name)
    if pair not in FLOORS:
        raise LabError(
            f"No floors are known for {pair[0]} with {pair[1]}: run benchmarks/tune_floors.py with these models and "
            "pass what it prints as floors=Floors(…)."
        )
    return FLOORS[pair]


def _read(retriever: Retriever, queries: Sequence[Query], chunks: dict[str, Chunk],
          notes: list[str]) -> dict[str, float]:
    """Reranker scores of what it can read, by chunk id; of several parts of a question the one that fits best."""
    languages = retriever.reranker.languages
    readable = {i: chunk for i, chunk in chunks.items() if chunk.language in languages}
    scores: dict[str, float] = {}
    for text in filter(None, (query.in_one_of(languages) for query in queries)):
        for i, score in zip(readable, retriever.read(text, list(readable.values()), notes), strict=True):
            scores[i] = max(score, scores.get(i, float("-inf")))
    return scores


def _siblings(retriever: Retriever, chunk: Chunk, filters: Filters) -> list[Chunk]:
    """The parts of the chunk's own section, as far as the index has them; what a filter hides stays hidden."""
    parts = [c for c in retriever.store.chunks(chunk.doc_id, chunk.version)
             if c.section_start == chunk.section_start and c.parts == chunk.parts]
    return [c for c in parts if c.audience == "public" or filters.audience == "staff"]


def _restore(hits: list[Chunk], siblings: dict[str, list[Chunk]]) -> list[Chunk]:
    """Each section once, at the place of its best part, its parts in order; a part that is gone is left out."""
    shown: dict[str, Chunk] = {}
    for hit in hits:
        for chunk in siblings.get(hit.chunk_id, [hit]):
            shown.setdefault(chunk.chunk_id, chunk)
    return list(shown.values())
