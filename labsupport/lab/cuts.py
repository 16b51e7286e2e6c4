"""The whole collection cut another way, searched by keywords only: to compare ways of cutting without any model.

An index needs vectors; here they are all zeros, and nothing asks for them. Each index lies in a temporary folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from labsupport.lab.panels.chunks import Counter, torn
from labsupport.pipeline.chunking import Chunk, make_chunker
from labsupport.pipeline.corpus import Document, Question
from labsupport.pipeline.evaluation import evaluate, holds_fact
from labsupport.pipeline.index import Entry
from labsupport.pipeline.markdown import to_plain
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store


def cut_all(documents: Sequence[Document], cut: str, counter: Counter) -> dict[Document, list[Chunk]]:
    """The chunks of each document under one cut: "structure", "paragraphs" or such as "fixed_48_16"."""
    chunker = make_chunker(cut, counter)
    return {document: chunker.chunk(document) for document in documents}


@contextmanager
def keyword_retriever(cut: dict[Document, list[Chunk]]) -> Iterator[Retriever]:
    """A retriever over these chunks for the method bm25."""
    entries = [Entry(document, chunks, np.zeros((len(chunks), 1), np.float32)) for document, chunks in cut.items()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, \
            Store(Path(folder) / "index.sqlite", create=True) as store:
        store.replace(remove=[], add=entries)
        yield Retriever(store)


def compare_cuts(documents: Sequence[Document], questions: Sequence[Question], cuts: Sequence[str],
                 counter: Counter, k: int = 5) -> list[dict[str, str | int | float]]:
    """One row per cut.

    `chunks`; `words`: in a chunk, on average; `torn`: borders inside a block; `facts torn`: facts whose quotation no
    chunk holds whole; `recall@k` of bm25 over the questions that have facts (scored as evaluation.py says).
    """
    rows = []
    for cut in cuts:
        made = cut_all(documents, cut, counter)
        chunks = [chunk for each in made.values() for chunk in each]
        facts = [fact for question in questions for fact in question.facts]
        with keyword_retriever(made) as retriever:
            found = evaluate(retriever, questions, ["bm25"], [k]).table()[0]
        plain = {document: to_plain(document) for document in made}
        rows.append({
            "cut": cut,
            "chunks": len(chunks),
            "words": round(sum(len(chunk.body.split()) for chunk in chunks) / len(chunks)),
            "torn": sum(bool(torn(plain[document], chunk.start)) for document, each in made.items() for chunk in each),
            "facts torn": sum(not any(holds_fact(chunk, fact) for chunk in chunks) for fact in facts),
            f"recall@{k}": round(found[f"recall@{k}"], 2),
        })
    return rows
