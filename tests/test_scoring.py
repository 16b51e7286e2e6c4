"""Verdicts on answers: a fact stands in an answer or it does not, and the table counts what there is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline.answering import Answer, Claim
from labsupport.pipeline.corpus import Fact, Question
from labsupport.pipeline.recordings import RecordedCheck, Recording
from labsupport.pipeline.scoring import covers, markdown_table, score, table, verdict


@pytest.mark.parametrize(
    ("fact", "stands", "does_not"),
    [
        ("5 business days", "It takes 5 business days.", "It takes 3 to 5 business days."),
        ("5 business days", "Au plus 5 jours ouvrables.", "It takes 15 business days."),
        ("1 to 2 hours", "That is 1-2 hours of work.", "One hour, or 2."),
        ("30 days", "a thirty… well, 30 day window", "13 days and 30 hours"),
        ("$45", "a second trip costs $45.", "it costs $450 or $4.50"),
        ("$2,000", "on at most $2,000 a year", "on $2,000.50"),
        ("HT-2400-07", "order ht-2400-07; it fits", "order HT-2400-071"),
        ("photo ID and the order number", "Bring your order number and a photo ID", "Bring a photo ID"),
        ("above 0 °C", "store it above 0°C", "store it below 0 °C"),
        ("20% off everything except oil", "everything except oil is 20% off", "everything except oil is 25% off"),
        ("3 years", "three years", "thirty years"),
        ("desk@larkfield.example", "Write to desk@larkfield.example.", "Write to helpdesk@larkfield.example"),
        ("never rusts", "The blades never rust.", "The blades rust."),
        ("vend des extensions de garantie", "Yes, Larkfield sells extended warranties.", "Yes, it sells mowers."),
        ("the red box", "Tick the box that is red", "Tick the blue box"),
    ],
)
def test_a_fact_stands_in_a_text_or_not(fact, stands, does_not):
    assert covers(stands, fact)
    assert not covers(does_not, fact)


FILLING = st.text("xyz .", max_size=20)


@given(st.sampled_from(["5 business days", "HT-2400-07", "a photo ID"]), FILLING, FILLING)
def test_a_fact_stands_in_any_text_that_holds_it_apart(fact, before, after):
    assert covers(f"{before} {fact} {after}", fact)


def question(qid="G01", answerable=True, *facts):
    return Question(qid, "?", "en", "2026-10-09", "public", answerable, "one fact", "test", (),
                    tuple(Fact(fact, fact, "hire", "1", "Deposit") for fact in facts))


RIGHT = Answer(True, "It is $95.", (Claim("The deposit is paid back on the same day.", ("7839ded2d52b",)),))


@pytest.mark.parametrize(
    ("answer", "asked", "outcome", "missing"),
    [
        (RIGHT, question("G01", True, "$95"), "right", ()),
        (RIGHT, question("G01", True, "$95", "same day"), "right", ()),  # the second one stands in a claim
        (RIGHT, question("G01", True, "$95", "$15"), "wrong", ("$15",)),
        (RIGHT, question("G01", False), "wrong", ()),
        (replace(RIGHT, answerable=False), question("G01", False), "abstained rightly", ()),
        (replace(RIGHT, answerable=False), question("G01", True, "$95"), "abstained wrongly", ()),
    ],
)
def test_verdicts(answer, asked, outcome, missing):
    assert verdict(answer, asked) == (outcome, missing)


def recording(qid, answer, answerer="chat", method="bm25", *statuses):
    checks = tuple(RecordedCheck(0, "x", "x", status) for status in statuses)
    return Recording(qid, "?", "2026-10-09", "2026-10-09", "public", answerer, method, 5, (), "answer_v1", "explaining",
                     answer, checks, "2026-11-30", {})


def test_the_table_counts_per_answerer_and_method():
    questions = [question("G01", True, "$95"), question("G02", False)]
    recordings = [
        recording("G01", RIGHT, "chat", "bm25", "ok", "missing_id"),
        recording("G02", RIGHT, "chat", "bm25", "not_in_context"),
        recording("G02", replace(RIGHT, answerable=False), "extractive", "bm25"),
        recording("G99", RIGHT),  # no such question any more
    ]
    rows = table(score(recordings, questions))
    assert [(row.answerer, row.questions, row.right, row.wrong, row.abstained_rightly, row.abstained_wrongly,
             row.citations, row.invalid, row.grounded) for row in rows] == [
        ("chat", 2, 1, 1, 0, 0, 3, 2, 1), ("extractive", 1, 0, 0, 1, 0, 0, 0, 0),
    ]
    lines = markdown_table(rows).splitlines()
    assert lines[2] == "| chat | bm25 | 2 | 1 | 1 | 0 | 0 | 3 | 2 | 1 |"
    assert len({line.count("|") for line in lines}) == 1
