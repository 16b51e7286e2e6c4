import json
from pathlib import Path

import pytest
from desk import WordReranker, WordVectors, build_desk
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.context import estimate_tokens, format_passage
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.costs import HOSTED_REFERENCE_RUN, Price, costs, measure, price_table, whole_collection
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store

SMALL = Price("small", 0.15, 0.60)


def test_the_price_of_a_request():
    assert Price("m", 2.0, 10.0).of(1_000_000, 500_000) == 7.0
    assert SMALL.of(1000, 100) == pytest.approx(0.00021)


def test_costs_per_question_and_per_day_for_every_price_and_way_of_asking():
    rows = costs({"five passages": 500, "whole collection": 18_000}, [SMALL, Price("free", 0, 0)], 100, 40)
    assert [(row.model, row.sent) for row in rows] == [
        ("small", "five passages"), ("small", "whole collection"),
        ("free", "five passages"), ("free", "whole collection"),
    ]  # fmt: skip
    assert rows[0].usd_per_question == pytest.approx(500 * 0.15e-6 + 100 * 0.6e-6)
    assert rows[1].usd_per_day == pytest.approx(40 * (18_000 * 0.15e-6 + 100 * 0.6e-6))
    assert rows[2].usd_per_day == 0


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 1000))
def test_more_tokens_never_cost_less(few, more, questions):
    low, high = costs({"few": few, "both": few + more}, [SMALL], questions_per_day=questions)
    assert low.usd_per_day <= high.usd_per_day


def test_negative_numbers_are_refused():
    for wrong in ({"tokens_out": -1}, {"questions_per_day": -1}):
        with pytest.raises(LabError, match="negative"):
            costs({"five": 1}, [SMALL], **wrong)
    with pytest.raises(LabError, match="negative"):
        costs({"five": -1}, [SMALL])


def test_any_price_table():
    rows = [{"model": "a", "input_per_million": "0.5", "output_per_million": 2}]
    assert price_table(rows) == [Price("a", 0.5, 2.0)]


@pytest.mark.parametrize(
    "row",
    [
        {"model": "a", "input_per_million": "0.5"},
        {"model": "a", "input_per_million": "cheap", "output_per_million": "1"},
        {"model": "a", "input_per_million": "", "output_per_million": None},
    ],
)
def test_a_price_table_that_cannot_be_read_names_the_row(row):
    with pytest.raises(LabError, match="Row 2 of the price table"):
        price_table([{"model": "b", "input_per_million": 1, "output_per_million": 1}, row])


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), True])
def test_a_price_that_is_no_amount_is_refused(amount):
    with pytest.raises(LabError, match="no amount"):
        Price("a", amount, 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    _, index = build_desk(tmp_path_factory.mktemp("costs"))
    with Store(index) as store:
        yield store


def question(qid, text, audience="public"):
    return Question(qid, text, "en", "2026-08-01", audience, True, "one fact", "tune")


def test_what_the_questions_really_send(store):
    questions = [question("C1", "What is the deposit for a tiller?"), question("C2", "What is the log splitter rate?")]
    measured = measure(Retriever(store, WordVectors(), WordReranker()), questions, k=2, method="bm25")
    assert set(measured.tokens) == {"C1", "C2"} and measured.lost_to_budget == ()
    assert measured.maximum == max(measured.tokens.values()) >= measured.median > 0
    tight = measure(Retriever(store, WordVectors(), WordReranker()), questions, k=2, method="bm25", budget=80)
    assert tight.maximum <= 80 and "C1" in tight.lost_to_budget


def test_the_whole_collection_holds_what_nobody_should_be_sent(store):
    chunks = store.all_chunks()
    collection = whole_collection(store, "2026-08-01")
    assert collection.passages == len(chunks)
    assert collection.staff_passages == 1 and collection.several_versions == ("hire",)
    assert collection.not_in_force == len(store.chunks("hire", "1"))
    separate = sum(estimate_tokens(format_passage(chunk)) for chunk in chunks)
    assert abs(collection.tokens - separate) <= len(chunks)


def test_the_hosted_run_is_quoted_as_given():
    figures = json.loads((Path(__file__).parent / "figures.json").read_text(encoding="utf-8"))["hosted_reference_run"]

    def spelled(value):
        return {k.replace("_", " "): spelled(v) for k, v in value.items()} if isinstance(value, dict) else value

    for key, value in HOSTED_REFERENCE_RUN.items():
        assert spelled({key: value}) == spelled({key: figures[key]})
