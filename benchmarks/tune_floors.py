"""Choose the floors of the narrowed search (labsupport/pipeline/narrowing.py) for a pair of models.

    python benchmarks/tune_floors.py --corpus corpus --index index.sqlite

Only questions marked "tune" choose; those marked "test" are reported and change nothing. Embedding model: that of the
index. A wanted passage is one that holds the quotation of a fact.

- similarity: below the lowest cosine of a wanted passage, by half the distance from there to the median.
- reranker: the floor that keeps most wanted passages and leaves most unanswerable questions with nothing (Youden's J),
  in the middle of the range where that holds.
- unread: the same for passages in a language the reranker does not read; against such passages of questions whose
  answer does not stand in one.
"""

import argparse
from pathlib import Path
from statistics import mean, median

from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.evaluation import filters_of, holds_fact
from labsupport.pipeline.narrowing import NEAREST, Floors, narrow
from labsupport.pipeline.reranking import DEFAULT_RERANKER, load_reranker
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store

OPEN = Floors(similarity=-1.0, reranker=-1000.0, unread=-1.0, cap=NEAREST)


def candidates(retriever, questions):
    """For each question its nearest passages: (question, chunk, scores, holds every translated word, is wanted)."""
    for question in questions:
        found = narrow(retriever, question.text, filters_of(question), question.history, floors=OPEN)
        for chunk in retriever.store.get(list(found.parts)):
            wanted = any(holds_fact(chunk, fact) for fact in question.facts)
            yield question, chunk, found.parts[chunk.chunk_id], chunk.chunk_id in found.covered, wanted


def best_cut(good, bad):
    """The middle of the range of floors that keeps most of `good` and least of `bad`, rated by share."""
    values = sorted({*good, *bad})
    cuts = [values[0] - 1, *((a + b) / 2 for a, b in zip(values, values[1:], strict=False)), values[-1] + 1]

    def rating(cut):
        return mean(value >= cut for value in good) - (mean(value >= cut for value in bad) if bad else 0)

    highest = max(map(rating, cuts))
    return mean(cut for cut in cuts if rating(cut) == highest)


def choose(rows):
    wanted = [parts for _, _, parts, _, is_wanted in rows if is_wanted]
    cosines = [parts["cosine"] for parts in wanted]
    similarity = min(cosines) - (median(cosines) - min(cosines)) / 2

    best_of_unanswerable = {}
    for question, _, parts, _, _ in rows:
        if not question.answerable and "reranker" in parts:
            best = best_of_unanswerable.get(question.qid, parts["reranker"])
            best_of_unanswerable[question.qid] = max(best, parts["reranker"])
    reranker = best_cut([p["reranker"] for p in wanted if "reranker" in p], list(best_of_unanswerable.values()))

    unread = [(q.qid, p["cosine"], w) for q, _, p, covered, w in rows if "reranker" not in p and not covered]
    answered_there = {qid for qid, _, is_wanted in unread if is_wanted}
    good = [cosine for _, cosine, is_wanted in unread if is_wanted]
    bad = [cosine for qid, cosine, _ in unread if qid not in answered_there]
    return Floors(round(similarity, 2), round(reranker, 1) + 0.0, round(best_cut(good, bad), 2))  # no -0.0


def report(retriever, questions, floors):
    facts = kept = empty = 0
    sizes = []
    for question in questions:
        found = narrow(retriever, question.text, filters_of(question), question.history, floors=floors)
        chunks = retriever.store.get(found.hits)
        facts += len(question.facts)
        kept += sum(any(holds_fact(chunk, fact) for chunk in chunks) for fact in question.facts)
        empty += not question.answerable and not chunks
        sizes.append(len(chunks))
    unanswerable = sum(not question.answerable for question in questions)
    return (f"{kept} of {facts} facts kept, {empty} of {unanswerable} unanswerable questions left with nothing, "
            f"{mean(sizes):.1f} passages a question")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("corpus"))
    parser.add_argument("--index", type=Path, default=Path("index.sqlite"))
    parser.add_argument("--reranker", default=DEFAULT_RERANKER)
    options = parser.parse_args()
    questions = read_questions(options.corpus)
    splits = {name: [q for q in questions if q.split == name] for name in ("tune", "test")}
    with Store(options.index) as store:
        retriever = Retriever(store, reranker=load_reranker(options.reranker))
        floors = choose(list(candidates(retriever, splits["tune"])))
        print(f"{retriever.embedder.name} with {retriever.reranker.name}: {floors}")
        for name, chosen in splits.items():
            print(f"{name}: {report(retriever, chosen, floors)}")


if __name__ == "__main__":
    main()
