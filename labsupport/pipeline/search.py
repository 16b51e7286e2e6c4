"""Four ways to search the index, all with filters applied before ranking and ties broken by chunk id.

- bm25: the question's words. The score is BM25, made positive.
- dense: the question's vector. The score is the cosine.
- hybrid: both lists fused by rank (reciprocal rank fusion, Cormack, Clarke and Büttcher 2009): 1 / (60 + rank) from
  each list, added up. Where the glossary translates enough of the question, the documents in the other language are
  searched with the translation too; of these only passages that hold every translated word count.
- rerank: the best 20 of hybrid, in the order of the reranker's score. It reads English: a French passage keeps the
  place hybrid gave it, and English passages are read with the translation of a French question, if there is one.

The first k results are the same whatever k is asked for (up to 50). A question in two parts is searched part by part;
the results take turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk, Chunker
from labsupport.pipeline.embedding import Embedder, fit_question, load_embedder
from labsupport.pipeline.index import Filters, Index, check_chunker, check_identity
from labsupport.pipeline.reranking import Reranker, load_reranker
from labsupport.pipeline.rewriting import Query, Rewriting, as_it_stands, rewrite
from labsupport.pipeline.terms import holds

if TYPE_CHECKING:
    import numpy as np

METHODS = ("bm25", "dense", "hybrid", "rerank")
RRF_K = 60
DEPTH = 50  # passages each list contributes
RERANKED = 20
TRANSLATED_WEIGHT = 0.9  # at equal ranks the question's own language comes first
LANGUAGE_NAMES = {"en": "English", "fr": "French"}

Ranked = list[tuple[str, float]]  # (chunk id, score), best first


@dataclass(frozen=True)
class Result:
    """`score` is what `scored_by` names (bm25, cosine, rrf, reranker); `parts` holds every score the passage got."""

    rank: int
    chunk: Chunk
    score: float
    scored_by: str
    parts: dict[str, float]


class Results(list[Result]):
    """The results, best first, with what was searched and everything worth saying about it."""

    def __init__(self, results: Iterable[Result], searched: Sequence[str], notes: Sequence[str], method: str,
                 filters: Filters):
        super().__init__(results)
        self.searched, self.notes = tuple(searched), tuple(notes)
        self.method, self.filters = method, filters  # the filters as applied: `as_of` may be a day of delivery

    @property
    def chunks(self) -> list[Chunk]:
        return [result.chunk for result in self]


@dataclass
class Ranking:
    """The order of one search and the scores behind it."""

    order: list[str]
    scored_by: str
    parts: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, name: str, ranked: Ranked) -> None:
        for chunk_id, score in ranked:
            self.parts.setdefault(chunk_id, {})[name] = score


def fuse(lists: Sequence[Ranked], weights: Sequence[float] | None = None, k: int = RRF_K) -> Ranked:
    """Reciprocal rank fusion: each list adds weight / (k + rank), ranks from 1; equal sums in the order of the ids."""
    scores: dict[str, float] = {}
    for ranked, weight in zip(lists, weights or [1.0] * len(lists), strict=True):
        for rank, (chunk_id, _) in enumerate(ranked, start=1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight / (k + rank)
    # Rounded, because the order of adding shifts the last bit and would decide between equals.
    return sorted(((i, round(s, 12)) for i, s in scores.items()), key=lambda pair: (-pair[1], pair[0]))


class Retriever:
    """Searches one index. Models load on first use: for bm25 none does.

    Without `embedder`, the model the index was built with; without `chunker`, today's of the same label. Any other is
    refused when a vector is first needed.
    """

    def __init__(self, store: Index, embedder: Embedder | None = None, reranker: Reranker | None = None,
                 chunker: Chunker | None = None):
        self.store = store
        self._embedder, self._reranker, self._chunker = embedder, reranker, chunker

    @property
    def embedder(self) -> Embedder:
        meta = self.store.meta()
        if self._embedder is None:
            self._embedder = load_embedder(meta["embedder"]) if "embedder" in meta else load_embedder()
        check_identity(meta, embedder=self._embedder)
        check_chunker(meta, self._embedder, self._chunker)
        return self._embedder

    @property
    def reranker(self) -> Reranker:
        if self._reranker is None:
            self._reranker = load_reranker()
        return self._reranker

    def search(self, question: str, method: str = "rerank", k: int = 5, filters: Filters | None = None,
               history: Sequence[str] = (), rewriting: bool = True) -> Results:
        """The best `k` passages for any string. `history`: the earlier questions of the conversation, oldest first.

        Raises LabError for an unknown method, a `k` below 1, or an index built with another embedding model.
        """
        if method not in METHODS:
            raise LabError(f"Unknown method {method!r}; use one of: {', '.join(METHODS)}.")
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise LabError(f"k is {k!r}; give the number of passages wanted, 1 or more.")
        asked, filters = self.rewrite(question, filters or Filters(), history, rewriting)
        notes = list(asked.notes)
        vectors = {} if method == "bm25" else self.vectors(asked.queries, notes, translated=method != "dense")
        with self.store.snapshot():
            rankings = [self._rank(query, vectors, method, filters, max(DEPTH, k), notes) for query in asked.queries]
            wanted = dict.fromkeys(i for ranking in rankings for i in ranking.order[: max(RERANKED, k)])
            chunks = {chunk.chunk_id: chunk for chunk in self.store.get(list(wanted))}
        if method == "rerank":
            for query, ranking in zip(asked.queries, rankings, strict=True):
                self._rerank(query, ranking, chunks, notes)
        results = [
            Result(rank, chunks[i], *_score(ranking, i), ranking.parts[i])
            for rank, (i, ranking) in enumerate(_take_turns(rankings)[:k], start=1)
        ]
        return Results(results, [query.text for query in asked.queries], dict.fromkeys(notes), method, filters)

    def rewrite(self, question: str, filters: Filters, history: Sequence[str] = (),
                rewriting: bool = True) -> tuple[Rewriting, Filters]:
        """The question as it will be searched, and the filters with the day of delivery, if it names one."""
        if not rewriting:
            return as_it_stands(question), filters
        asked = rewrite(question, history, filters.as_of, lambda term: bool(self.store.keyword([term], filters, 1)))
        return asked, replace(filters, as_of=asked.as_of or filters.as_of)

    def vectors(self, queries: Sequence[Query], notes: list[str], translated: bool = True) -> dict[str, np.ndarray]:
        """The vector of each query's text and translation; a text longer than the model reads is cut, with a note."""
        texts = [query.text for query in queries] + [q.translated for q in queries if translated and q.translated]
        vectors = {}
        for text in texts:
            fitting, cut = fit_question(self.embedder, text)
            if cut:
                notes.append(f"For the vector the question is cut at {len(fitting)} characters, all the model reads.")
            vectors[text] = self.embedder.embed([fitting], query=True)[0]
        return vectors

    def _rank(self, query: Query, vectors: dict[str, np.ndarray], method: str, filters: Filters, depth: int,
              notes: list[str]) -> Ranking:
        if method == "bm25":
            return _single("bm25", self.store.keyword(query.terms, filters, depth))
        nearest = self.store.dense(vectors[query.text], filters, depth)
        if method == "dense":
            return _single("cosine", nearest)
        lists = {"bm25": self.store.keyword(query.terms, filters, depth), "cosine": nearest}
        lists |= self.translated(query, vectors, filters, notes)
        weights = [TRANSLATED_WEIGHT if name.startswith("translated") else 1.0 for name in lists]
        ranking = _single("rrf", fuse(list(lists.values()), weights))
        for name, ranked in lists.items():
            ranking.add(name, ranked)
        return ranking

    def translated(self, query: Query, vectors: dict, filters: Filters, notes: list[str]) -> dict[str, Ranked]:
        """Passages in the other language that hold every word of the translation, by BM25 and by cosine."""
        if not query.translated or filters.language == query.language:
            return {}
        elsewhere = replace(filters, language=query.other_language)
        ranked = self.store.keyword(query.translated_terms, elsewhere, DEPTH)
        texts = self.store.get([chunk_id for chunk_id, _ in ranked])
        whole = {c.chunk_id for c in texts if all(holds(c.text, forms) for forms in query.concepts)}
        if not whole:
            return {}
        notes.append(f"{LANGUAGE_NAMES[query.other_language]} documents searched with: {query.translated}")
        nearest = self.store.dense(vectors[query.translated], elsewhere, DEPTH)
        return {
            "translated bm25": [pair for pair in ranked if pair[0] in whole],
            "translated cosine": [pair for pair in nearest if pair[0] in whole],
        }

    def _rerank(self, query: Query, ranking: Ranking, chunks: dict[str, Chunk], notes: list[str]) -> None:
        if not query.text:
            return
        languages = self.reranker.languages
        top = [chunk_id for chunk_id in ranking.order[:RERANKED] if chunk_id in chunks]
        text = query.in_one_of(languages)
        readable = [chunk_id for chunk_id in top if text and chunks[chunk_id].language in languages]
        if len(readable) < len(top):
            notes.append(f"The reranker reads {names(languages)}: what it cannot read keeps its place in hybrid.")
        if readable and text != query.text:
            notes.append(f"Reranked with: {text}")
        scores = self.read(text, [chunks[chunk_id] for chunk_id in readable], notes)
        ranking.add("reranker", list(zip(readable, scores, strict=True)))
        best = iter(sorted(readable, key=lambda chunk_id: (-ranking.parts[chunk_id]["reranker"], chunk_id)))
        reranked = [next(best) if "reranker" in ranking.parts[chunk_id] else chunk_id for chunk_id in top]
        ranking.order = reranked + [chunk_id for chunk_id in ranking.order if chunk_id not in set(top)]


    def read(self, question: str, chunks: Sequence[Chunk], notes: list[str]) -> list[float]:
        """The reranker's scores, to four digits; a question longer than it reads is cut, with a note."""
        fit = getattr(self.reranker, "fit", None)
        text, cut = fit(question) if fit else (question, False)
        if cut:
            notes.append(f"The reranker reads the first {len(text)} characters of the question.")
        return [round(float(score), 4) for score in self.reranker.score(text, [chunk.text for chunk in chunks])]


def names(languages: Iterable[str]) -> str:
    return " and ".join(LANGUAGE_NAMES.get(language, language) for language in languages)


def _single(name: str, ranked: Ranked) -> Ranking:
    ranking = Ranking([chunk_id for chunk_id, _ in ranked], name)
    ranking.add(name, ranked)
    return ranking


def _score(ranking: Ranking, chunk_id: str) -> tuple[float, str]:
    parts = ranking.parts[chunk_id]
    scored_by = "reranker" if "reranker" in parts else ranking.scored_by
    return parts[scored_by], scored_by


def _take_turns(rankings: Sequence[Ranking]) -> list[tuple[str, Ranking]]:
    """The first of each part of the question, then the second of each, and so on; each passage once."""
    turns = [(place, part, i) for part, ranking in enumerate(rankings) for place, i in enumerate(ranking.order)]
    first: dict[str, Ranking] = {}
    for _, part, chunk_id in sorted(turns, key=lambda turn: turn[:2]):
        first.setdefault(chunk_id, rankings[part])
    return list(first.items())
