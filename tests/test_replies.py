"""Chat models' replies: the answer's text arrives whole, in pieces, and what is nearly JSON is read, not swallowed."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Claim
from labsupport.pipeline.replies import ReplyReader, read_reply


def read(raw, size=1):
    reader = ReplyReader()
    pieces = [reader.feed(raw[at : at + size]) for at in range(0, len(raw), size)]
    pieces.append(reader.finish())
    answer = read_reply(reader)
    if reader.text:
        assert "".join(pieces) == answer.answer
    return answer


TEXT = st.text(st.characters(codec="utf-8"))
EXTRA = st.dictionaries(st.text(max_size=30).filter(lambda k: k not in ("answer", "claims", "answerable")),
                        st.one_of(TEXT, st.integers(), st.lists(TEXT, max_size=2), st.none()), max_size=2)


@given(answer=TEXT, claim=TEXT, extra=EXTRA, order=st.permutations(["answerable", "answer", "claims"]),
       ascii_only=st.booleans(), indent=st.sampled_from([None, 2]), size=st.integers(1, 7))
@example(answer='"}', claim='", "answer": "no', extra={}, order=["claims", "answer", "answerable"],
         ascii_only=True, indent=None, size=1)
@example(answer="a garden 🪴, déjà vu \\u00e9", claim="", extra={"x answer": "no"},
         order=["answerable", "claims", "answer"], ascii_only=True, indent=None, size=1)
def test_valid_json_in_any_pieces_gives_exactly_the_answer(answer, claim, extra, order, ascii_only, indent, size):
    fields = {"answerable": True, "answer": answer, "claims": [{"text": claim, "citations": ["a" * 12]}]}
    raw = json.dumps({**extra, **{key: fields[key] for key in order}}, ensure_ascii=ascii_only, indent=indent)
    read_back = read(raw, size)
    assert read_back.answer == (answer or claim)
    assert read_back.claims == (Claim(claim, ("a" * 12,)),)
    assert not any("repaired" in note for note in read_back.notes)


@given(st.text(), st.integers(1, 9))
def test_any_reply_is_read_or_refused_in_one_sentence(raw, size):
    try:
        read(raw, size)
    except LabError as error:
        assert "not with the answer JSON" in str(error)


def test_pieces_come_while_the_reply_is_still_arriving():
    reader = ReplyReader()
    assert reader.feed('{"answerable": true, "answer": "Thirty ') == "Thirty "
    assert reader.feed("days") == "days"
    assert reader.feed('"') == ""  # may still be a mark inside the text
    assert reader.feed(', "claims": []}') == ""
    assert reader.closed


NEARLY = {
    "fenced": '```json\n{"answerable": true, "answer": "Thirty days.", "claims": []}\n```',
    "prose before": 'Sure, here it is: {"answerable": true, "answer": "Thirty days.", "claims": []}',
    "prose after": '{"answerable": true, "answer": "Thirty days.", "claims": []} Anything else?',
    "single quotes": "{'answerable': True, 'answer': 'Thirty days.', 'claims': []}",
    "bare keys": '{answerable: true, answer: "Thirty days.", claims: []}',
    "comma too many": '{"answerable": true, "answer": "Thirty days.", "claims": [],}',
    "no comma": '{"answerable": true, "answer": "Thirty days." "claims": []}',
    "doubled key": '{"answerable": true, "answer": "Thirty days.", "answer": "Forty.", "claims": []}',
    "cut off in the claims": '{"answerable": true, "answer": "Thirty days.", "claims": [{"text": "Thir',
    "cut off in the answer": '{"answerable": true, "answer": "Thirty days.',
}


@pytest.mark.parametrize("raw", NEARLY.values(), ids=NEARLY)
@pytest.mark.parametrize("size", [1, 5, 500])
def test_nearly_json_is_read(raw, size):
    answer = read(raw, size)
    assert (answer.answerable, answer.answer) == (True, "Thirty days.")


def test_quotation_marks_that_were_not_escaped_stay_in_the_answer():
    raw = '{"answerable": true, "answer": "Choose "Damaged", then "Send", not "Save".", "claims": []}'
    assert read(raw).answer == 'Choose "Damaged", then "Send", not "Save".'
    assert read("{'answer': 'The customer's receipt'}").answer == "The customer's receipt"


@pytest.mark.parametrize(
    ("citations", "read_as"),
    [
        ('["7839ded2d52b"]', ("7839ded2d52b",)),
        ('"7839ded2d52b"', ("7839ded2d52b",)),
        ("[[1, 2], 3]", ("1", "2", "3")),
        ('[{"id": "7839ded2d52b"}, null, ""]', ("7839ded2d52b",)),
        ("null", ()),
    ],
)
def test_citations_of_every_shape_become_strings(citations, read_as):
    raw = f'{{"answerable": true, "answer": "A.", "claims": [{{"text": "A.", "citations": {citations}}}]}}'
    assert read(raw).claims == (Claim("A.", read_as),)


def test_claims_of_other_shapes():
    assert read('{"answerable": "false", "answer": "No.", "claims": "none said"}').claims == (Claim("none said"),)
    assert read('{"answerable": "false", "answer": "No.", "claims": null}').answerable is False
    only_claims = read('{"claims": [{"text": "Thirty days.", "citations": []}]}')
    assert (only_claims.answerable, only_claims.answer) == (True, "Thirty days.")


@pytest.mark.parametrize(
    "raw", ["Thirty days.", "<html><h1>503</h1></html>", "", "null", "[1, 2]", '{"reply": "hello"}', "{" * 50_000]
)
def test_what_is_not_the_answer_is_refused_and_quoted(raw):
    with pytest.raises(LabError, match="not with the answer JSON") as caught:
        read(raw, 100)
    assert raw[:20] in str(caught.value)


def test_half_a_surrogate_pair_becomes_a_mark_that_can_be_written_to_a_file():
    answer = read(r'{"answerable": true, "answer": "mower \ud83d!", "claims": [{"text": "\udc00", "citations": []}]}')
    assert answer.answer == "mower \ufffd!"
    json.dumps(answer.as_dict(), ensure_ascii=False).encode("utf-8")
