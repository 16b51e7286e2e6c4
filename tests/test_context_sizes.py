"""The measured sizes of contexts that the notebook quotes: of these documents, and repeatable."""

import shutil
from pathlib import Path

import pytest

from labsupport.lab import open_module
from labsupport.lab.context_sizes import METHOD, as_json, corpus_hash, reranked_sizes, size_row
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.costs import Measured, measure

CORPUS = Path(__file__).parents[1] / "corpus"
AGAIN = "documents or questions have changed: run python benchmarks/context_sizes.py, then notebooks/execute.py 04"


def test_were_measured_on_these_documents_and_questions():
    measured = reranked_sizes(CORPUS)
    assert [one.k for one in measured] == [5, 10], AGAIN
    assert all(len(one.tokens) == 67 and one.maximum <= 1500 for one in measured)


def test_do_not_speak_for_other_documents(tmp_path):
    shutil.copytree(CORPUS, tmp_path / "corpus")
    document = tmp_path / "corpus/documents/gift-cards.md"
    document.write_bytes(document.read_bytes().replace(b"\n", b"\r\n"))  # as Git may do on Windows: no change
    assert reranked_sizes(tmp_path / "corpus")
    document.write_bytes(document.read_bytes().replace(b"never expires", b"expires"))
    assert reranked_sizes(tmp_path / "corpus") == []


def test_are_written_as_they_are_read(tmp_path):
    kept = [Measured(5, {"Q01": 12, "Q02": 30}, ("Q01",), ())]
    file = tmp_path / "sizes.json"
    file.write_text(as_json(CORPUS, kept), encoding="utf-8")
    assert reranked_sizes(CORPUS, file) == kept and corpus_hash(CORPUS) in file.read_text(encoding="utf-8")
    row = size_row("rerank", kept[0])
    assert (row["questions"], row["median tokens"], row["most tokens"], row["lose a near-duplicate"]) == (2, 21, 30, 1)


@pytest.mark.model
def test_come_out_the_same_again():
    with open_module("04") as lab:
        kept = reranked_sizes(lab.corpus)
        # Both that lose a near-duplicate, one that loses a passage to the budget, a follow-up, and one in French.
        some = [one for one in read_questions(lab.corpus) if one.qid in ("Q30", "Q59", "Q20", "Q10", "Q35")]
        for before in kept:
            now = measure(lab.retriever, some, before.k, METHOD)
            assert now.tokens == {qid: before.tokens[qid] for qid in now.tokens}, AGAIN
            assert now.lost_near_duplicate == tuple(q for q in before.lost_near_duplicate if q in now.tokens)
            assert now.lost_to_budget == tuple(q for q in before.lost_to_budget if q in now.tokens)
