import pytest

from labsupport.pipeline import LabError
from labsupport.pipeline.reranking import QUESTION_TOKENS, load_reranker

QUESTION = "How long may I leave the trigger released?"
PASSAGES = [
    "Never run the machine with the trigger released for more than two minutes.",
    "Gift cards never expire and can be used in several purchases.",
    "Delivery takes three business days. " * 30,
]


@pytest.mark.model
def test_the_passage_that_answers_scores_highest():
    scores = load_reranker().score(QUESTION, PASSAGES)
    assert scores.argmax() == 0 and scores[0] > 0 > scores[1:].max()


@pytest.mark.model
def test_a_pair_scores_the_same_in_any_company():
    reranker = load_reranker()
    together = reranker.score(QUESTION, PASSAGES)
    assert [reranker.score(QUESTION, [text])[0] for text in PASSAGES] == together.tolist()
    assert reranker.score(QUESTION, PASSAGES[::-1]).tolist() == together[::-1].tolist()


@pytest.mark.model
def test_a_long_question_is_cut_where_the_reader_can_see_it():
    reranker = load_reranker()
    assert reranker.fit(QUESTION) == (QUESTION, False)
    text, cut = reranker.fit("pump " * 400)
    assert cut and text == ("pump " * QUESTION_TOKENS).strip()


@pytest.mark.model
def test_odd_strings_are_scored():
    scores = load_reranker().score("\0 ' OR * ☃", ["", "x" * 5000, "pump\0"])
    assert scores.shape == (3,)
    assert load_reranker().score("pump?", []).shape == (0,)


@pytest.mark.model
def test_an_unknown_reranker_is_one_clear_sentence(tmp_path):
    with pytest.raises(LabError, match="The reranker .* cannot be loaded"):
        load_reranker(str(tmp_path)).score("pump?", ["text"])
