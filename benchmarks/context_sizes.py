"""Measure what the 67 questions send with the default method, and write labsupport/lab/context_sizes.json.

    python benchmarks/context_sizes.py        about two minutes

Run it again when a document, a question, the chunker or a model changes; tests/test_context_sizes.py says so.
"""

import tempfile
from pathlib import Path

from labsupport.lab.context_sizes import FILE, METHOD, as_json, size_row
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.costs import measure
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

CORPUS = Path(__file__).parents[1] / "corpus"


def main():
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index.sqlite"
        print(ingest(CORPUS, index).line)
        with Store(index) as store:
            retriever, questions = Retriever(store), read_questions(CORPUS)
            measured = [measure(retriever, questions, k, METHOD) for k in (5, 10)]
    FILE.write_text(as_json(CORPUS, measured), encoding="utf-8", newline="\n")
    for one in measured:
        print(", ".join(f"{name}: {value}" for name, value in size_row(METHOD, one).items()))


if __name__ == "__main__":
    main()
