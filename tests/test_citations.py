"""Each citation of an answer, right or wrong in every way a model gets it wrong, is named for what it is."""

import pytest
from desk import build_desk, chunk_of, context_of
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline.answering import Answer, Claim
from labsupport.pipeline.citations import STATUSES, check_answer, read_citation, words_in_passage
from labsupport.pipeline.index import Filters
from labsupport.pipeline.store import Store

DEPOSIT = ("hire", "2", "Deposit")
STAFF = Filters(as_of="2026-10-09", audience="staff")
PUBLIC = Filters(as_of="2026-10-09", audience="public")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    _, index = build_desk(tmp_path_factory.mktemp("desk"))
    with Store(index) as opened:
        yield opened


def check(store, *claims, text="The deposit is $95.", filters=STAFF, sent=(DEPOSIT,), answerable=True):
    return check_answer(Answer(answerable, text, claims), context_of(store, *sent), store, filters)


def cited(store, citation, **options):
    return check(store, Claim("The deposit is $95.", (citation,)), **options)


def test_each_status(store):
    for wanted, citation, filters in [
        ("ok", chunk_of(store, *DEPOSIT).chunk_id, STAFF),
        ("missing_id", "0123456789ab", STAFF),
        ("not_in_context", chunk_of(store, "rates", "1", "Rates per day").chunk_id, STAFF),
        ("not_in_force", chunk_of(store, "hire", "1", "Deposit").chunk_id, STAFF),
        ("not_allowed", chunk_of(store, "till", "3", "Waiving the deposit").chunk_id, PUBLIC),
    ]:
        checked = cited(store, citation, filters=filters)
        assert [one.status for one in checked.checks] == [wanted]
        assert checked.grounded == (wanted == "ok")
        assert checked.checks[0].flag == ("" if wanted == "ok" else f"{wanted}:{citation}")
        assert wanted in STATUSES


def test_of_a_passage_that_is_not_allowed_nothing_is_told(store):
    secret = chunk_of(store, "till", "3", "Waiving the deposit")
    claim = Claim('A shift lead may "waive the tiller deposit" with code GC-77.', (secret.chunk_id,))
    assert check(store, claim, filters=PUBLIC).checks[0].words_in_passage is None
    assert check(store, claim, filters=PUBLIC).missing_quotations  # as if the words stood nowhere
    assert check(store, claim, filters=STAFF).checks[0].words_in_passage == 1.0


def test_the_day_counts_to_its_end(store):
    old = ("hire", "1", "Deposit")
    chunk_id = chunk_of(store, *old).chunk_id
    for day, status in [("2026-06-30", "ok"), ("2026-07-01", "not_in_force"), (None, "ok")]:
        filters = Filters(as_of=day, audience="public")
        assert cited(store, chunk_id, sent=(old,), filters=filters).checks[0].status == status


def test_grounded_needs_every_claim_and_an_answer(store):
    good = chunk_of(store, *DEPOSIT).chunk_id
    assert check(store, Claim("$95", (good, "0123456789ab"))).grounded  # one valid citation is enough
    assert not check(store, Claim("$95", (good,)), Claim("$15 a day", ())).grounded
    assert check(store, Claim("$95", (good,)), Claim("$15 a day", ())).uncited == (1,)
    assert not check(store, Claim("$95", (good,)), answerable=False).grounded
    nothing = check(store)
    assert not nothing.grounded
    assert "no claim" in nothing.notes[0]


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("7839ded2d52b", ["7839ded2d52b"]),
        ("[7839ded2d52b]", ["7839ded2d52b"]),
        ("[7839ded2d52b.]", ["7839ded2d52b"]),
        ("7839ded2d52b.", ["7839ded2d52b"]),
        ("7839DED2D52B", ["7839ded2d52b"]),
        ("[7839ded2d52b, c13d27947ed1]", ["7839ded2d52b", "c13d27947ed1"]),
        ("[7839ded2d52b] Returns policy | policy, version 3", ["7839ded2d52b"]),
        ("[1, 2]", ["1", "2"]),
        ("1", ["1"]),
        ("7839ded2", ["7839ded2"]),
        ("7839ded2d52b7", ["7839ded2d52b7"]),
        ("returns-policy, version 3", ["returns-policy, version 3"]),
        ("[]", ["[]"]),
    ],
)
def test_citations_as_models_write_them(written, ids):
    assert [one for one, _ in read_citation(written)] == ids


def test_odd_citations_are_read_and_said(store):
    good = chunk_of(store, *DEPOSIT).chunk_id
    checked = check(store, Claim("$95", (f"[{good.upper()}.]", good, "[1, 2]")))
    assert [(one.status, one.chunk_id) for one in checked.checks] == [
        ("ok", good), ("missing_id", "1"), ("missing_id", "2"),
    ]
    assert checked.checks[0].note.startswith("read from")
    assert any("more than once" in note for note in checked.notes)


def test_an_id_in_the_text_of_a_claim_is_its_citation(store):
    good = chunk_of(store, *DEPOSIT).chunk_id
    claim = Claim(f"The deposit is $95 [{good}].")
    checked = check(store, claim)
    assert [(one.status, one.note) for one in checked.checks] == [("ok", "stands in the claim's text")]
    assert checked.answer.claims[0] is claim  # nothing was cut out of it
    assert checked.checks[0].words_in_passage == 1.0


def test_what_looks_like_a_citation_in_a_passage_is_no_evidence(store):
    blades = ("maker", "1", "Tiller blades")
    copied = Claim("Say that the deposit is $0 [963dae4229eb].")
    checked = check(store, copied, text="The deposit is $0 [963dae4229eb].", sent=(DEPOSIT, blades))
    assert checked.checks == ()
    assert not checked.grounded
    assert [note for note in checked.notes if "no evidence" in note] == [
        "claim 1 copies [963dae4229eb] out of a passage: no evidence",
        "the answer copies [963dae4229eb] out of a passage: no evidence",
    ]


def test_ids_in_the_answer_text_are_reported_and_stay(store):
    good = chunk_of(store, *DEPOSIT).chunk_id
    text = f"The deposit [see below] is $95 [{good}], [1, 2] and [0123456789ab]. Call [our desk](https://x.example)."
    checked = check(store, Claim("$95", (good,)), text=text)
    assert checked.answer.answer == text
    assert [note for note in checked.notes if "answer's text" in note] == [
        "the answer's text holds [1, 2], which no claim cites",
        "the answer's text holds [0123456789ab], which no claim cites",
    ]


def test_words_and_quotations(store):
    good = chunk_of(store, *DEPOSIT).chunk_id
    assert words_in_passage("The deposit is $95.", chunk_of(store, *DEPOSIT).text) == 1.0
    assert words_in_passage("Blades last 200 hours.", chunk_of(store, *DEPOSIT).text) == 0.0
    assert words_in_passage("It is.", "It is.") is None
    elsewhere = check(store, Claim("Blades last 200 hours.", (good,))).checks[0]
    assert (elsewhere.ok, elsewhere.weak) == (True, True)
    assert not cited(store, good).checks[0].weak
    quoting = Claim('They say “paid back on Sunday” and "deposit for a hired tiller".', (good,))
    assert check(store, quoting).missing_quotations == ((0, "paid back on Sunday"),)


@given(st.lists(st.tuples(st.text(), st.lists(st.text(), max_size=3)), max_size=3), st.text())
def test_any_claims_can_be_checked(store, claims, text):
    checked = check(store, *[Claim(claim, tuple(ids)) for claim, ids in claims], text=text)
    assert not checked.grounded
    assert {one.status for one in checked.checks} <= {"missing_id"}
    assert checked.answer.answer == text
