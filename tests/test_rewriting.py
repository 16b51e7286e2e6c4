import pytest
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline.delivery_dates import delivery_day
from labsupport.pipeline.rewriting import as_it_stands, rewrite, split


def searched(question, *history, **options):
    return [query.text for query in rewrite(question, history, "2026-11-05", **options).queries]


def test_a_question_that_needs_nothing_is_searched_as_it_is():
    rewriting = rewrite("How do I sharpen a hoe?")
    assert [query.text for query in rewriting.queries] == ["How do I sharpen a hoe?"]
    assert rewriting.notes == () and rewriting.as_of is None


@pytest.mark.parametrize("question", ["", "   ", "\0\n\t"])
def test_an_empty_question_has_no_terms_and_says_so(question):
    for rewriting in (rewrite(question), as_it_stands(question)):
        assert [(query.text, query.terms) for query in rewriting.queries] == [("", ())]
        assert rewriting.notes[0].startswith("The question is empty")


def test_a_follow_up_gets_the_topic_of_the_question_before():
    before = "What does it cost to rent a tiller?"
    assert searched("And for how long?", before) == ["cost rent tiller: for how long?"]
    assert searched("Must I clean it?", before) == ["cost rent tiller: Must I clean it?"]
    assert searched("Et pour combien de temps ?", "Louez-vous des tronçonneuses ?") == [
        "Louez tronçonneuses: pour combien de temps ?"
    ]
    assert "Follow-up" in rewrite("And for how long?", [before]).notes[0]


def test_a_chain_of_follow_ups_keeps_the_topic():
    assert searched("And why?", "Do you rent tillers?", "And on Sundays?") == ["rent tillers Sundays: why?"]


def test_another_product_takes_the_place_of_the_one_before():
    assert searched("And the HT-180?", "Which blade fits the LM-400?") == ["blade fits: the HT-180?"]


@pytest.mark.parametrize("question", ["Do gift cards expire?", "Is the serial number of the LM-400 on it?"])
def test_a_question_of_its_own_is_left_alone_in_a_conversation(question):
    assert searched(question, "Which blade fits the LM-400?") == [question]


def test_product_codes_are_written_as_the_index_has_them():
    assert searched("Is the lm400 loud?") == ["Is the LM-400 loud?"]
    assert searched("Is the LM 400 loud?", known=lambda term: term == "lm 400") == ["Is the LM-400 loud?"]
    assert searched("Is the LM-400 loud?", known=lambda term: term == "lm400") == ["Is the LM400 loud?"]


@pytest.mark.parametrize(
    "question, parts",
    [
        (
            "How often do I oil the chain, and where can I buy oil?",
            ["How often do I oil the chain?", "where can I buy oil?"],
        ),
        (
            "How do I charge the BT-18 and how long does it take?",
            ["How do I charge the BT-18?", "charge BT-18: how long does it take?"],
        ),
        (
            "My mower smokes. What do I do, and whom do I call?",
            ["My mower smokes. What do I do?", "My mower smokes. whom do I call?"],
        ),
        (
            "Quand livrez-vous et combien coûte la livraison ?",
            ["Quand livrez-vous?", "combien coûte la livraison?"],
        ),
        ("How are the PW-2200 and the PW-2400 stored?", ["How are the PW-2200 and the PW-2400 stored?"]),
        ("Where and when may I mow?", ["Where and when may I mow?"]),
        ("My mower smokes. What now?", ["My mower smokes. What now?"]),
    ],
)
def test_questions_in_two_parts(question, parts):
    assert split(question) == parts


DELIVERIES = [
    ("My hoe was delivered on 20 October. May I return it?", "2026-10-20", "My hoe was delivered. May I return it?"),
    ("It came on Oct. 20. It is blunt.", "2026-10-20", "It came. It is blunt."),
    ("It arrived October 20th, 2025, broken", "2025-10-20", "It arrived, broken"),
    ("It arrived on December 1st", "2025-12-01", "It arrived"),  # the latest one not after the day of asking
    ("It arrived on 5 November", "2026-11-05", "It arrived"),
    ("I received the mower on 2026-10-20", "2026-10-20", "I received the mower"),
    ("Ordered on 1 October and delivered on 9 October", "2026-10-09", "Ordered on 1 October and delivered"),
    ("On the 3rd of May the shed was delivered", "2026-05-03", "the shed was delivered"),
    ("It will be delivered on 1 December. Can I return it?", "2026-12-01", "It will be delivered. Can I return it?"),
    ("Delivered on 29 February", "2024-02-29", "Delivered"),
    ("Livrée le 1er mars, est-elle garantie ?", "2026-03-01", "Livrée, est-elle garantie ?"),
]


@pytest.mark.parametrize("question, day, rest", DELIVERIES)
def test_the_day_of_delivery_and_its_year(question, day, rest):
    assert delivery_day(question, "2026-11-05") == (day, rest)


@pytest.mark.parametrize(
    "question",
    [
        "I ordered on 20 October. When will it come?",
        "It was not delivered on 20 October",
        "Delivered on 31 February",
        "Is delivery free from $75?",
        "What has changed since 1 November 2026?",
        "delivered on 0000-00-00",
    ],
)
def test_no_day_of_delivery(question):
    assert delivery_day(question, "2026-11-05") is None


def test_the_day_of_delivery_is_shown():
    rewriting = rewrite("My hoe arrived on 20 October. May I return it?", asked="2026-11-05")
    assert rewriting.as_of == "2026-10-20"
    assert "Delivered on 2026-10-20" in rewriting.notes[0]


def test_a_translation_needs_two_words_the_glossary_knows():
    (query,) = rewrite("Do you sell extended warranties?").queries
    assert query.translated == "vendre extension de garantie"
    assert ("vendre", "vend", "vendez", "vendu", "vendus") in query.concepts
    (query,) = rewrite("Is the warranty any good?").queries
    assert query.translated == "" and query.concepts == ()
    (query,) = rewrite("Is the LM-400 heavy?").queries
    assert query.translated == ""


def test_a_translation_keeps_the_product_code():
    (query,) = rewrite("Où acheter une lame pour la LM400 ?").queries
    assert query.translated == "LM-400 buy blade" and query.language == "fr"
    assert ("lm 400", "lm400") in query.concepts


def test_a_query_for_a_reader_of_one_language():
    (english,) = rewrite("Do you sell gift cards?").queries
    (french,) = rewrite("Vendez-vous des cartes cadeaux ?").queries
    assert english.in_one_of(["en"]) == english.text and french.in_one_of(["en"]) == "sell gift card"
    assert french.in_one_of(["en", "fr"]) == french.text
    (untranslated,) = rewrite("Que faites-vous ?").queries
    assert untranslated.in_one_of(["en"]) == ""


@given(st.text(max_size=300), st.lists(st.text(max_size=60), max_size=3))
def test_any_string_is_rewritten_to_something_legal_and_always_the_same(question, history):
    first = rewrite(question, history, "2026-11-05")
    assert first == rewrite(question, history, "2026-11-05")
    assert first.queries
    for query in first.queries:
        assert "\0" not in query.text and query.text == query.text.encode("utf-8").decode()
