"""What 10,000 questions show in benchmarks/service.py, in small: nothing that a question leaves behind grows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from desk import WordReranker, WordVectors, build_desk

from labsupport.pipeline.store import Store
from labsupport.service.remembering import RememberingEmbedder, RememberingReranker

TOOL = Path(__file__).parent.parent / "benchmarks" / "service.py"


@pytest.mark.skipif(not TOOL.exists(), reason="the tool is not part of this copy")
def test_questions_and_ingests_leave_nothing_behind():
    command = [sys.executable, str(TOOL), "--questions", "400", "--reingests", "10", "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    found = json.loads(done.stdout)
    assert (found["questions"], found["reingests"], found["errors"]) == (400, 10, 0), found["first_error"]
    first, last = found["first"], found["last"]
    assert last["threads"] <= first["threads"]
    assert last["files"] <= first["files"] + 1
    assert last["objects"] < first["objects"] * 1.02, "320 questions left objects behind"
    assert last["megabytes"] < first["megabytes"] * 1.15


def test_a_passage_is_read_once_for_a_question_and_scores_stay_as_they_are():
    class Counting(WordReranker):
        read = 0

        def score(self, question, texts):
            self.read += len(texts)
            return super().score(question, texts)

    counting = Counting()
    remembering = RememberingReranker(counting, pairs=5)
    texts = ["the deposit", "a tiller", "the deposit", "rates"]
    for _ in range(2):
        scores = remembering.score("the deposit for a tiller", texts)
        assert scores.dtype == np.float32
        assert scores.tolist() == WordReranker().score("the deposit for a tiller", texts).tolist()
    assert counting.read == 3
    remembering.score("another question", [*texts, "more", "and more"])
    assert (counting.read, remembering.remembered) == (8, 5)
    assert remembering.score("nothing", []).shape == (0,)


def test_a_passage_of_the_index_is_not_embedded_again_and_vectors_stay_as_they_are(tmp_path):
    class Counting(WordVectors):
        read = ()

        def embed(self, texts, *, query=False, progress=None):
            self.read = (*self.read, *texts)
            return super().embed(texts, query=query)

    _, index = build_desk(tmp_path)
    counting = Counting()
    with Store(index) as store:
        remembering = RememberingEmbedder(counting, store, texts=2)
        passage = store.all_chunks()[0].text
        texts = [passage, "the deposit", "a tiller", "the deposit"]
        for _ in range(2):
            vectors = remembering.embed(texts)
            assert vectors.dtype == np.float32
            assert vectors.tolist() == WordVectors().embed(texts).tolist()
        assert counting.read == ("the deposit", "a tiller")
        remembering.embed(["rates"])
        assert remembering.remembered == 2
        assert remembering.embed([passage], query=True).tolist() == WordVectors().embed([passage]).tolist()
        assert counting.read[2:] == ("rates", passage), "a question is none of the index's texts"
        assert remembering.embed([]).shape == (0, remembering.dimensions)
        assert (remembering.name, remembering.count_tokens("two words")) == ("word-vectors", 2)
