"""The router: how a question is put decides, one word alone never does, and a wrong route loses no passage."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.intents import EXTRA_SCREENS, Intent, favour, route

CONCEPT = [
    "What does store credit mean?",
    "How long is the warranty on a hedge trimmer?",
    "Quel est le délai pour rendre un article ?",
    "Vend-on des extensions de garantie ?",
    "Which form of payment do you take?",  # "form" is a trap
    "Screen door parts: what is the price?",  # so is "screen"
    "Can I mow a wet field?",
    "Is the concept mower still sold?",
    "Which button on the mower stops the blade?",  # a button of a machine
    "Screenwash: any rules for returning it?",
]
SCREEN = [
    "Where do I click to cancel my order?",
    "Which field takes the serial number?",
    "The Submit button stays grey, why?",
    "In the return form, what goes into Order number?",
    "What does the 'Reason' field mean?",
    "I cannot find the Track button on My orders. Where is it?",
    "Sur quelle page puis-je suivre ma commande ?",
]
AMBIGUOUS = [
    "Explain how refunds are paid and which page shows them",
    "How do I start a return?",
    "Combien de jours ai-je pour un retour et où cliquer ?",
    "qwzx",
    "And the other one?",
    "???",
]


@pytest.mark.parametrize(
    ("label", "question"),
    [("concept", q) for q in CONCEPT] + [("screen", q) for q in SCREEN] + [("ambiguous", q) for q in AMBIGUOUS],
)
def test_label(label, question):
    assert route(question).label == label, route(question)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Where is the spare key?", "asks where something is or goes"),
        ("So where is my parcel?", "asks where something is or goes"),
        ("Où est-ce que la clé est gardée ?", "asks where something is or goes"),
        ("How is the deposit paid back?", "asks how something is or is done"),
        ("Is the spare key with the shift lead?", "asks whether something holds"),
        ("Peut-on rendre un article ?", "asks whether something holds"),
    ],
)
def test_the_reason_says_what_is_asked(question, reason):
    assert str(route(question)) == f"concept ({reason}; explaining)"


def test_postures():
    assert {label: Intent(label, "").posture for label in ("concept", "screen", "ambiguous")} == {
        "concept": "explaining", "screen": "pointing", "ambiguous": "explaining",
    }


@pytest.mark.parametrize("word", ["screen", "concept"])
def test_the_word_alone_changes_nothing(word):
    asked = "Is there a {} shop near the garden centre?"
    assert route(asked.format(word)) == route(asked.format("coffee"))


@pytest.mark.parametrize("empty", ["", "   ", "\n\t"])
def test_an_empty_question_is_refused(empty):
    with pytest.raises(LabError, match="question is empty"):
        route(empty)


def test_spaces_before_a_question_do_not_hide_it():
    assert route(" " * 5_000 + CONCEPT[0]) == route(CONCEPT[0])


@given(st.text(min_size=1).filter(str.strip))
def test_any_text_gets_one_label_and_a_reason_twice_the_same(question):
    first = route(question)
    assert first.label in ("concept", "screen", "ambiguous")
    assert first.reason
    assert route(question) == first


def test_a_huge_question_is_routed_at_once():
    assert route("which the button " * 10_000).label in ("concept", "screen", "ambiguous")


@dataclass(frozen=True)
class Passage:
    chunk_id: str
    content_kind: str


FOUND = [Passage("a", "prose"), Passage("b", "screen"), Passage("c", "prose"), Passage("d", "screen")]
MORE = [Passage("e", "screen"), Passage("f", "prose"), Passage("b", "screen"), Passage("g", "screen"),
        Passage("h", "screen")]


def ids(intent):
    return "".join(passage.chunk_id for passage in favour(Intent(intent, ""), FOUND, MORE))


def test_the_other_kind_is_moved_down_and_never_left_out():
    assert ids("concept") == "acbd"
    assert ids("screen") == "bdegac"
    assert ids("ambiguous") == "abcdeg"
    assert EXTRA_SCREENS == 2


@given(
    st.lists(st.sampled_from(FOUND + MORE), unique_by=lambda p: p.chunk_id),
    st.sampled_from(["concept", "screen", "ambiguous"]),
)
def test_favouring_keeps_every_passage_found(found, label):
    kept = favour(Intent(label, ""), found, MORE)
    assert {p.chunk_id for p in found} <= {p.chunk_id for p in kept}
    assert len({p.chunk_id for p in kept}) == len(kept)
