"""Two lists made one in different ways, measured on the same questions: why scores are not to be added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labsupport.pipeline.corpus import Question
from labsupport.pipeline.evaluation import Evaluation, Outcome, fact_ranks, filters_of
from labsupport.pipeline.search import DEPTH, Ranked, Retriever

KS = (1, 3, 5, 10)


def compare_fusions(retriever: Retriever, questions: Sequence[Question],
                    fusions: Mapping[str, Callable[[list[Ranked]], Ranked]]) -> list[dict[str, str | float]]:
    """One row each for bm25, dense, and every fusion of their two lists: recall@k and MRR. No question is rewritten."""
    outcomes = []
    for question in (one for one in questions if one.facts):
        lists = {}
        for method in ("bm25", "dense"):
            found = retriever.search(question.text, method, DEPTH, filters_of(question), rewriting=False)
            lists[method] = [(one.chunk.chunk_id, one.score) for one in found]
        ranked = lists | {name: fusion(list(lists.values())) for name, fusion in fusions.items()}
        for name, order in ranked.items():
            chunks = retriever.store.get([chunk_id for chunk_id, _ in order[: max(KS)]])
            outcomes.append(Outcome(question, name, fact_ranks(question, chunks), 0.0))
    rows = Evaluation(tuple(outcomes), KS).table()
    return [{name: row[name] for name in ("method", *(f"recall@{k}" for k in KS), "MRR")} for row in rows]
