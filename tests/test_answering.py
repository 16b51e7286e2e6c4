"""The answer and the protocol: what any answerer must give, and how a new one is found."""

import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import (
    Answer,
    Answerer,
    Claim,
    StreamingAnswerer,
    answer_from,
    in_words,
    load_answerer,
)
from labsupport.pipeline.context import assemble

CLAIMS = st.lists(st.builds(Claim, st.text(), st.lists(st.text()).map(tuple))).map(tuple)


@given(st.booleans(), st.text(), CLAIMS)
def test_an_answer_reads_back_as_it_was(answerable, text, claims):
    answer = Answer(answerable, text, claims, "garden-1", 5, 7, 0.5)
    assert Answer.from_dict(answer.as_dict(), model="garden-1", tokens_in=5, tokens_out=7, seconds=0.5) == answer


@given(st.text())
def test_words_joined_are_the_text(text):
    assert "".join(in_words(text)) == text


def test_a_stream_without_an_answer_is_an_error():
    with pytest.raises(LabError, match="stopped before"):
        answer_from(iter(["some ", "text"]))


def test_a_new_answerer_is_one_file(monkeypatch):
    class Shouting(StreamingAnswerer):
        name = model = "shouting"

        def stream(self, question, context, *, prompt=None, intent=None):
            yield from in_words(question.upper())
            yield Answer(False, question.upper())

    module = types.ModuleType("labsupport.pipeline.shouting")
    module.make_answerer = lambda **needs: Shouting()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    who = load_answerer("shouting", reranker=None)
    assert isinstance(who, Answerer)
    assert who.answer("how long?", assemble([])).answer == "HOW LONG?"
