"""What notebooks say of answers in a few lines: who asked, as of which day, what is cited, and what was refused."""

from dataclasses import replace

import pytest
from desk import WordReranker, WordVectors, build_desk
from test_recordings import recording_of
from test_replay import question

from labsupport.lab.asking import ask_question, in_brief, recorded_faults, recorded_in_brief
from labsupport.pipeline.answering import Answer, Claim, StreamingAnswerer
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store

QUESTIONS = {
    "G01": question("G01", "My tiller was delivered on 20 June. What is the deposit?", as_of="2026-07-09"),
    "G02": question("G02", "Who may waive the tiller deposit?", audience="staff"),
    "G03": question("G03", "And when it comes back late?", history=("Can I hire a tiller?",)),
}


class CitesFirst(StreamingAnswerer):
    """Cites the first passage it was sent, and an id that never was."""

    name = model = "cites-first"

    def stream(self, question, context, *, prompt=None, intent=None):
        yield "It is so."
        yield Answer(True, "It is so.", (Claim("It is so.", (context.ids[0], "0123456789ab")),))


class Desk:
    def __init__(self, folder):
        _, index = build_desk(folder)
        self.store = Store(index)
        self.retriever = Retriever(self.store, WordVectors(), WordReranker())

    def question(self, qid):
        return QUESTIONS[qid]


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.store.close()


def test_a_question_is_asked_with_its_own_date_audience_and_history(desk):
    staff = ask_question(desk, "G02", CitesFirst(), method="bm25")
    customer = ask_question(desk, "G02", CitesFirst(), "public", method="bm25")
    assert staff.found.filters.audience == "staff" and customer.found.filters.audience == "public"
    assert any(chunk.audience == "staff" for chunk in staff.found.context.kept)
    assert all(chunk.audience == "public" for chunk in customer.found.context.kept)
    assert ask_question(desk, "G03", CitesFirst(), method="bm25").found.history == ("Can I hire a tiller?",)


def test_in_brief_names_the_day_searched_and_every_status(desk):
    asked = ask_question(desk, "G01", CitesFirst(), method="bm25")
    first = asked.found.context.kept[0]
    assert first.label == "hire v1"
    assert in_brief(asked).splitlines() == [
        "G01 My tiller was delivered on 20 June. What is the deposit?",
        "  public, asked on 2026-07-09, documents as of 2026-06-20",
        "  It is so.",
        f"  [{first.chunk_id}] hire v1, {first.section}: ok",
        "  [0123456789ab] -: missing_id",
    ]
    assert "documents as of" not in in_brief(ask_question(desk, "G02", CitesFirst(), method="bm25"))


def test_recorded_faults_are_bad_citations_and_claims_with_none(desk):
    one = recording_of(desk.store, ("hire", "2", "Deposit"))
    answer = replace(one.answer, claims=(*one.answer.claims, Claim("It is free.")))
    about = {"question": "G01", "answerer": "chat", "method": "bm25"}
    assert recorded_faults([replace(one, answer=answer)]) == [
        about | {"claim": "1", "cites": "0123456789ab", "status": "missing_id"},
        about | {"claim": "2", "cites": "", "status": "uncited"},
    ]
    assert recorded_faults([replace(one, checks=one.checks[:1])]) == []
    long = replace(one.checks[1], cited="[" + "x" * 60 + "]")
    assert len(recorded_faults([replace(one, checks=(long,))])[0]["cites"]) == 30


def test_a_recording_in_brief(desk):
    one = recording_of(desk.store, ("hire", "2", "Deposit"))
    assert recorded_in_brief(one).splitlines() == [
        "chat, bm25: Sûr 🪴.", f"  [{one.checks[0].id}] hire v2: ok", "  [0123456789ab]: missing_id"]
