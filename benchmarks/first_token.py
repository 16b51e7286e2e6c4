"""How soon the first word of an answer comes, as a multiple of what search and reranking took for the same question.

The service's own parts: the extractive answerer, MiniLM, the reranker that remembers, method rerank, one question at a
time. All questions of the course in their order, follow-ups with the questions before them; answers that abstain count
too. Prints the median, the worst, and every question above 1.5 times. Exit code 1 if the median is above. What else the
machine does in the meantime falls on either part by chance, so run it several times.

A chat model's first word depends on that model; name it with --answerer endpoint.
"""

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from labsupport.pipeline.answering import load_answerer
from labsupport.pipeline.ask import Asked, Found, ask_stream
from labsupport.pipeline.corpus import Question, read_questions
from labsupport.pipeline.index import Filters
from labsupport.pipeline.reranking import load_reranker
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest
from labsupport.service.remembering import RememberingEmbedder, RememberingReranker

CORPUS = Path(__file__).parents[1] / "corpus"
MOST = 1.5


@dataclass
class Row:
    """Seconds until the passages are known, until the first word, and until the end."""

    question: Question
    found: float = 0.0
    first: float = 0.0
    end: float = 0.0
    answered: bool = False

    @property
    def ratio(self) -> float:
        return self.first / self.found


def parts_of_the_service(store: Store, answerer: str):
    """As `serve` puts them together, with nothing remembered yet."""
    retriever = Retriever(store, reranker=RememberingReranker(load_reranker()))
    embedder = RememberingEmbedder(retriever.embedder, store)
    return retriever, load_answerer(answerer, reranker=retriever.reranker, embedder=embedder)


def measure(question: Question, retriever: Retriever, answerer) -> Row:
    row, filters = Row(question), Filters(question.as_of, question.audience)
    started = time.perf_counter()
    for step in ask_stream(question.text, retriever, answerer, filters=filters, history=question.history):
        now = time.perf_counter() - started
        if isinstance(step, Found):
            row.found = now
        elif isinstance(step, Asked):
            row.end, row.answered = now, step.answer.answerable
        elif step and not row.first:
            row.first = now
    return row


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--questions", type=int, help="only the first so many")
    options.add_argument("--answerer", default="extractive")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as home:
        ingest(CORPUS, Path(home) / "index.sqlite")
        with Store(Path(home) / "index.sqlite") as store:
            questions = read_questions(CORPUS)
            first = replace(questions[0], text="Are tools hired out, et sont-ils entretenus ?")  # loads the models
            measure(first, *parts_of_the_service(store, asked.answerer))
            retriever, answerer = parts_of_the_service(store, asked.answerer)
            rows = [measure(question, retriever, answerer) for question in questions[: asked.questions]]
    median = statistics.median(row.ratio for row in rows)
    print(f"{asked.answerer}, medians: passages after {statistics.median(row.found for row in rows):.2f} s, first word "
          f"after {statistics.median(row.first for row in rows):.2f} s, end after "
          f"{statistics.median(row.end for row in rows):.2f} s")
    for name, some in (("all questions", rows), ("without history", [row for row in rows if not row.question.history]),
                       ("with history", [row for row in rows if row.question.history])):
        ratios = [row.ratio for row in some]
        if ratios:
            print(f"first word / passages, {name}: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}, "
                  f"{sum(ratio <= MOST for ratio in ratios)} of {len(ratios)} at most {MOST}")
    for row in sorted(rows, key=lambda row: -row.ratio):
        if row.ratio > MOST:
            print(f"  {row.question.qid} {row.ratio:.2f}: {row.found:.3f} s, then {row.first - row.found:.3f} s; "
                  f"{'answered' if row.answered else 'abstained'}: {row.question.text}")
    sys.exit(1 if median > MOST else 0)


if __name__ == "__main__":
    main()
