"""How well each method finds what the questions need: recall@k and mean reciprocal rank.

A fact is found at the rank of the first passage of its document version that holds its quotation word for word. A
quotation cut in two by the chunker is never found, as it would never be sent whole. Questions the corpus does not
answer have no facts and take no part here.

- recall@k: the share of a question's facts found among the first k passages, averaged over the questions.
- MRR: 1 / rank of the first passage that holds any of a question's facts (0 if none does), averaged likewise
  (Voorhees 1999).
- seconds: of one question that nobody has asked before, with the models loaded, averaged likewise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.corpus import Fact, Question
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import METHODS, Retriever

KS = (1, 3, 5, 10)


@dataclass(frozen=True)
class Outcome:
    """One question by one method: the rank of each of its facts (None: not among the passages looked at)."""

    question: Question
    method: str
    ranks: tuple[int | None, ...]
    seconds: float

    def recall(self, k: int) -> float:
        return sum(rank is not None and rank <= k for rank in self.ranks) / len(self.ranks)

    @property
    def reciprocal_rank(self) -> float:
        return max((1 / rank for rank in self.ranks if rank), default=0.0)


@dataclass(frozen=True)
class Evaluation:
    """All outcomes, and the table made of them."""

    outcomes: tuple[Outcome, ...]
    ks: tuple[int, ...]

    def table(self, split: str | None = None) -> list[dict[str, str | int | float]]:
        """One row per method: method, questions, facts, recall@k, MRR, seconds a question. `split`: tune or test."""
        rows = []
        for method in dict.fromkeys(outcome.method for outcome in self.outcomes):
            chosen = [o for o in self.outcomes if o.method == method and split in (None, o.question.split)]
            if not chosen:
                continue
            row = {"method": method, "questions": len(chosen), "facts": sum(len(o.ranks) for o in chosen)}
            row |= {f"recall@{k}": _mean(o.recall(k) for o in chosen) for k in self.ks}
            rows.append(row | {
                "MRR": _mean(o.reciprocal_rank for o in chosen), "seconds": _mean(o.seconds for o in chosen),
            })
        return rows

    def missed(self, method: str, k: int) -> list[Outcome]:
        """The questions of which `method` does not find every fact among the first `k` passages."""
        return [o for o in self.outcomes if o.method == method and o.recall(k) < 1]


def evaluate(retriever: Retriever, questions: Sequence[Question], methods: Sequence[str] = METHODS,
             ks: Sequence[int] = KS, rewriting: bool = True,
             progress: Callable[[int, int], None] | None = None) -> Evaluation:
    """Ask every question that has facts with every method, as its asker: with that date, audience and conversation.

    Raises LabError if no question has facts, and for an unknown method.
    """
    asked = [question for question in questions if question.facts]
    if not asked:
        raise LabError("None of the questions has facts to look for; nothing can be evaluated.")
    outcomes = []
    for method in methods:
        _warm_up(retriever, method)
        for question in asked:
            _forget(retriever, method)
            started = time.perf_counter()
            filters = filters_of(question)
            results = retriever.search(question.text, method, max(ks), filters, question.history, rewriting)
            seconds = time.perf_counter() - started
            outcomes.append(Outcome(question, method, fact_ranks(question, results.chunks), seconds))
            if progress:
                progress(len(outcomes), len(asked) * len(methods))
    return Evaluation(tuple(outcomes), tuple(ks))


def _warm_up(retriever: Retriever, method: str) -> None:
    """Models and vectors load with the first search; this one is not measured, so no method pays for the others."""
    retriever.search("warm-up", method, filters=Filters(audience="staff"))
    if method == "rerank":
        retriever.reranker.score("warm-up", ["warm-up"])  # whatever the search found


def _forget(retriever: Retriever, method: str) -> None:
    """The vector of a question is remembered; each method has to make it anew, as for a question nobody asked yet."""
    if method != "bm25" and hasattr(retriever.embedder, "forget"):
        retriever.embedder.forget()


def filters_of(question: Question) -> Filters:
    return Filters(as_of=question.as_of, audience=question.audience)


def fact_ranks(question: Question, chunks: Sequence[Chunk]) -> tuple[int | None, ...]:
    """For each fact the rank (from 1) of the first chunk that holds it, or None."""
    return tuple(
        next((rank for rank, chunk in enumerate(chunks, start=1) if holds_fact(chunk, fact)), None)
        for fact in question.facts
    )


def holds_fact(chunk: Chunk, fact: Fact) -> bool:
    return (chunk.doc_id, chunk.version) == (fact.doc_id, fact.version) and fact.quotation in chunk.body


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return round(sum(values) / len(values), 4)
