from dataclasses import replace

import pytest
from desk import WordReranker, WordVectors, build_desk

from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import Fact, Question
from labsupport.pipeline.embedding import OneByOne
from labsupport.pipeline.evaluation import Evaluation, Outcome, evaluate, fact_ranks, holds_fact
from labsupport.pipeline.search import METHODS, Retriever
from labsupport.pipeline.store import Store

NEW_DEPOSIT = Fact("$95", "The deposit for a hired tiller is $95.", "hire", "2", "Deposit")
OLD_DEPOSIT = Fact("$80", "The deposit for a hired tiller is $80.", "hire", "1", "Deposit")
RATE = Fact("$45", "Tiller | $45", "rates", "1", "Rates per day")
WAIVER = Fact("a shift lead", "A shift lead may waive the tiller deposit", "till", "3", "Waiving the deposit")


def question(qid, text, *facts, as_of="2026-08-01", audience="public", split="tune", history=()):
    return Question(qid, text, "en", as_of, audience, bool(facts), "one fact", split, history, facts)


QUESTIONS = [
    question("E1", "What is the deposit for a hired tiller?", NEW_DEPOSIT),
    question("E2", "What is the deposit for a hired tiller?", OLD_DEPOSIT, as_of="2026-05-01", split="test"),
    question("E3", "What are the deposit and the rate of a tiller?", NEW_DEPOSIT, RATE),
    question("E4", "Who may waive the tiller deposit?", WAIVER, audience="staff", split="test"),
    question("E5", "Do you sell tractors?"),
]


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    _, index = build_desk(tmp_path_factory.mktemp("evaluation"))
    with Store(index) as store:
        yield Retriever(store, WordVectors(), WordReranker())




def outcome(ranks, method="bm25", split="tune"):
    return Outcome(question("Q", "?", *[NEW_DEPOSIT] * len(ranks), split=split), method, ranks, 0.5)


def test_recall_and_reciprocal_rank_of_one_question():
    two_facts = outcome((4, None))
    assert [two_facts.recall(k) for k in (1, 3, 5)] == [0, 0, 0.5]
    assert two_facts.reciprocal_rank == 0.25 and outcome((None,)).reciprocal_rank == 0
    assert outcome((3, 2)).reciprocal_rank == 0.5


def test_the_table_averages_over_questions_not_over_facts():
    evaluation = Evaluation((outcome((1, None)), outcome((2,)), outcome((1,), split="test")), (1, 3))
    (row,) = evaluation.table("tune")
    assert row == {
        "method": "bm25", "questions": 2, "facts": 3, "recall@1": 0.25, "recall@3": 0.75, "MRR": 0.75, "seconds": 0.5,
    }  # fmt: skip
    assert evaluation.table()[0]["questions"] == 3 and evaluation.table("test")[0]["MRR"] == 1
    assert [o.ranks for o in evaluation.missed("bm25", 3)] == [(1, None)] and evaluation.missed("dense", 3) == []


def test_every_method_is_asked_every_question_that_has_facts(retriever):
    seen = []
    evaluation = evaluate(retriever, QUESTIONS, ks=(1, 3), progress=lambda done, total: seen.append((done, total)))
    assert [row["method"] for row in evaluation.table()] == list(METHODS)
    assert all(row["questions"] == 4 and row["facts"] == 5 for row in evaluation.table())
    assert seen == [(n, 16) for n in range(1, 17)]
    assert {o.question.qid for o in evaluation.outcomes} == {"E1", "E2", "E3", "E4"}


class Slow(OneByOne):
    """Counts its work, and takes a tick of the clock for a question and a thousand for loading."""

    name, fingerprint = WordVectors.name, WordVectors.fingerprint
    max_tokens, dimensions = 10_000, WordVectors.dimensions

    def __init__(self, clock):
        super().__init__()
        self.clock, self.loaded = clock, False

    def count_tokens(self, text):
        return len(text.split())

    def _vectors(self, texts, *, query):
        self.clock[0] += 1 if self.loaded else 1_000
        self.loaded = True
        yield from WordVectors().embed(texts, query=query)


def test_no_method_pays_for_the_loading_or_finds_what_another_remembers(retriever, monkeypatch):
    clock = [0]
    monkeypatch.setattr("labsupport.pipeline.evaluation.time.perf_counter", lambda: clock[0])
    slow = Retriever(retriever.store, Slow(clock), WordReranker())
    rows = {row["method"]: row["seconds"] for row in evaluate(slow, QUESTIONS[:1] * 3).table()}
    assert rows == {"bm25": 0, "dense": 1, "hybrid": 1, "rerank": 1}


def test_each_question_is_asked_with_its_own_date_audience_and_conversation(retriever):
    (old,) = evaluate(retriever, [QUESTIONS[1]], ["bm25"]).outcomes
    (staff,) = evaluate(retriever, [QUESTIONS[3]], ["bm25"]).outcomes
    assert old.ranks == (1,) and staff.ranks == (1,)
    (public,) = evaluate(retriever, [replace(QUESTIONS[3], audience="public")], ["bm25"]).outcomes
    assert public.ranks == (None,)
    follow_up = question("E6", "And how much is it?", RATE, history=("What is the rate of a tiller?",))
    (alone,) = evaluate(retriever, [replace(follow_up, history=())], ["bm25"], ks=(1,)).outcomes
    (asked,) = evaluate(retriever, [follow_up], ["bm25"], ks=(1,)).outcomes
    assert asked.ranks == (1,) and alone.ranks == (None,)


def test_a_fact_counts_only_in_its_own_document_version_and_word_for_word(retriever):
    chunks = retriever.store.all_chunks()
    (holder,) = [chunk for chunk in chunks if holds_fact(chunk, NEW_DEPOSIT)]
    assert holder.label == "hire v2"
    assert not holds_fact(holder, replace(NEW_DEPOSIT, version="1"))
    assert not holds_fact(holder, replace(NEW_DEPOSIT, quotation="The deposit for a hired tiller is $95,"))
    assert fact_ranks(QUESTIONS[2], [chunks[0], holder]) == (2, None)


def test_questions_without_facts_cannot_be_evaluated(retriever):
    with pytest.raises(LabError, match="None of the questions has facts"):
        evaluate(retriever, QUESTIONS[4:])


def test_an_unknown_method_is_refused(retriever):
    with pytest.raises(LabError, match="Unknown method 'magic'"):
        evaluate(retriever, QUESTIONS, ["magic"])
