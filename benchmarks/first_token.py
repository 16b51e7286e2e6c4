"""How soon the first word of an answer comes, as a multiple of what search and reranking took for the same question.

The service's own parts: the extractive answerer, MiniLM, the reranker, method rerank, one question at a time. Questions
of the course in their order; answers that abstain count too. Prints the median and the worst. Exit code 1 if the median
is above 1.5. A chat model's first word depends on that model; name it with --answerer endpoint.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from labsupport.pipeline.answering import load_answerer
from labsupport.pipeline.corpus import Question, read_questions
from labsupport.pipeline.index import Filters
from labsupport.pipeline.reranking import load_reranker
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest
from labsupport.service.access import PUBLIC
from labsupport.service.assistant import Assistant
from labsupport.service.conversations import Conversation
from labsupport.service.remembering import RememberingReranker

CORPUS = Path(__file__).parents[1] / "corpus"
MOST = 1.5


def times(assistant: Assistant, question: Question) -> tuple[float, float]:
    """Seconds until the passages are known and until the first word."""
    asked = Conversation(question.text, PUBLIC, {"filters": Filters(question.as_of, question.audience)})
    started, found = time.perf_counter(), 0.0
    events = assistant.events(asked)
    for name, _ in events:
        now = time.perf_counter() - started
        if name == "passages":
            found = now
        elif name == "token":
            events.close()
            return found, now
    raise SystemExit(f"{question.qid}: no word at all")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--questions", type=int, default=24)
    options.add_argument("--answerer", default="extractive")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as home:
        ingest(CORPUS, Path(home) / "index.sqlite")
        with Store(Path(home) / "index.sqlite") as store:
            retriever = Retriever(store, reranker=RememberingReranker(load_reranker()))
            answerer = load_answerer(asked.answerer, reranker=retriever.reranker, embedder=retriever.embedder)
            assistant = Assistant(retriever, answerer)
            questions = [question for question in read_questions(CORPUS) if not question.history]
            times(assistant, questions[-1])  # loads the models
            rows = [times(assistant, question) for question in questions[: asked.questions]]
    ratios = sorted(first / found for found, first in rows)
    median = statistics.median(ratios)
    print(f"{len(rows)} questions, {asked.answerer}: passages after {statistics.median(r[0] for r in rows):.2f} s, "
          f"first word after {statistics.median(r[1] for r in rows):.2f} s (medians)")
    print(f"first word / passages: median {median:.2f}, worst {ratios[-1]:.2f}, "
          f"{sum(ratio <= MOST for ratio in ratios)} of {len(ratios)} at most {MOST}")
    sys.exit(1 if median > MOST else 0)


if __name__ == "__main__":
    main()
