"""The extractive answerer copies, cites, abstains; and the sentences it copies are where they say."""

import re
from dataclasses import replace

import numpy as np
import pytest
from desk import WordReranker, WordVectors, build_desk, chunk_of, context_of
from garden import count_tokens, document
from hypothesis import given
from hypothesis import strategies as st

import labsupport.pipeline.extractive as extractive
from labsupport.pipeline.answering import Answer, Answerer, load_answerer
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.citations import check_answer
from labsupport.pipeline.context import assemble
from labsupport.pipeline.extractive import ExtractiveAnswerer, Rated, Thresholds, choose, thresholds
from labsupport.pipeline.index import Filters
from labsupport.pipeline.intents import Intent
from labsupport.pipeline.sentences import pictures, sentences
from labsupport.pipeline.store import Store

STAFF = Filters("2026-10-09", "staff")
DEPOSIT, RATES, BLADES = ("hire", "2", "Deposit"), ("rates", "1", "Rates per day"), ("maker", "1", "Tiller blades")
SCREEN, FRENCH = ("screen", "2", "Choosing a day"), ("caution", "1", "Montant")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    _, index = build_desk(tmp_path_factory.mktemp("desk"))
    with Store(index) as opened:
        yield opened


@pytest.fixture
def answerer(monkeypatch):
    limits = {
        "word-reranker": Thresholds(abstain_below=0.0, also_within=1.0, passage_weight=0.0, rule_bonus=0.5),
        "word-vectors": Thresholds(abstain_below=0.45, also_within=0.0, passage_weight=0.0, rule_bonus=0.0),
    }
    monkeypatch.setattr(extractive, "thresholds", lambda name: limits[name])
    return ExtractiveAnswerer(WordReranker(), WordVectors())


def test_it_answers_word_for_word_and_every_citation_holds(store, answerer):
    context = context_of(store, RATES, DEPOSIT)
    *pieces, answer = answerer.stream("What is the deposit for a hired tiller?", context)
    assert answer.answer == "".join(pieces) == "The deposit for a hired tiller is $95."
    checked = check_answer(answer, context, store, STAFF)
    assert checked.grounded
    assert [(check.status, check.words_in_passage) for check in checked.checks] == [("ok", 1.0)]
    assert isinstance(answerer, Answerer)
    assert answer.tokens_in > context.tokens
    assert "tokens are estimates" in answer.notes


def test_it_abstains_where_nothing_matches(store, answerer):
    answer = answerer.answer("Who painted the Mona Lisa in Florence?", context_of(store, RATES, DEPOSIT))
    assert (answer.answerable, answer.claims) == (False, ())
    assert answer.answer == "The passages found do not answer this question."
    assert not answerer.answer("Is there nothing?", assemble([])).answerable


def test_a_table_row_is_cited_as_it_stands_and_told_with_its_columns(store, answerer):
    answer = answerer.answer("What is the rate per day for a log splitter?", context_of(store, RATES))
    assert answer.answer.startswith("Log splitter (Rate: $60; Notes: Two people needed).")
    assert answer.claims[0].text == "Log splitter | $60 | Two people needed"


def test_both_parts_of_a_question_are_answered(store, answerer):
    question = "What is the deposit for a hired tiller, and what is the rate for a log splitter?"
    answer = answerer.answer(question, context_of(store, DEPOSIT, RATES))
    assert "$95" in answer.answer
    assert "$60" in answer.answer
    assert len(answer.claims) == 2


def test_a_part_that_no_passage_answers_is_named(store, answerer):
    question = "What is the deposit for a hired tiller, and who painted the Mona Lisa?"
    answer = answerer.answer(question, context_of(store, DEPOSIT))
    assert answer.answerable
    assert any("no passage answers" in note and "Mona Lisa" in note for note in answer.notes)


def test_orders_in_the_vendor_text_are_neither_followed_nor_quoted(store, answerer):
    question = "How long do tiller blades last, and should AI assistants say the deposit is $0?"
    answer = answerer.answer(question, context_of(store, BLADES))
    assert "The tiller blades last 200 hours." in answer.answer
    assert "$0" not in answer.answer
    assert "1 sentence(s) left out that speak to a program, not to a reader" in answer.notes


def test_a_screen_question_brings_the_picture(store, answerer):
    question = "In which field do I choose the day, and when is the button grey?"
    context = context_of(store, SCREEN)
    answer = answerer.answer(question, context, intent=Intent("screen", ""))
    assert answer.answer.endswith("\n\n![The hire form with its calendar](screens/hire.png)")
    assert "png" not in answerer.answer(question, context, intent=Intent("concept", "")).answer
    assert check_answer(answer, context, store, STAFF).grounded


def test_french_text_is_rated_by_the_embedding_model_and_it_says_so(store, answerer):
    answer = answerer.answer("Quel est le montant de la caution pour une motobineuse ?", context_of(store, FRENCH))
    assert answer.answer == "La caution pour une motobineuse louée est de 80 $."
    assert "rated by words and word-vectors: the reranker reads en only" in answer.notes
    nothing = answerer.answer("Qui a peint la Joconde à Florence ?", context_of(store, FRENCH))
    assert nothing.answer == "Les passages trouvés ne répondent pas à cette question."


def test_a_policy_goes_before_an_equal_sentence_of_a_help_article(store, answerer):
    policy = chunk_of(store, *DEPOSIT)
    article = replace(policy, chunk_id="f" * 12, doc_id="faq", doc_type="help article")
    article = replace(article, body=article.body.replace("$95", "$80"))
    answer = answerer.answer("What is the deposit for a hired tiller?", assemble([article, policy]))
    assert answer.claims[0].citations == (policy.chunk_id,)


def rated(score, text):
    chunk = StructureChunker(count_tokens).chunk(document("# Hedge trimmers\n\n## Use\n\nText.\n"))[0]
    return Rated(replace(sentences(chunk)[0], text=text), score)


def test_choosing():
    limits = Thresholds(abstain_below=1.0, also_within=2.0, passage_weight=0, rule_bonus=0)
    best, near = rated(4, "Oil it daily."), rated(3, "Wipe it dry.")
    same, far = rated(3, "Oil it daily!"), rated(1.5, "No.")
    assert list(choose([best, same, near, far], limits)) == [best, near]
    assert list(choose([far], limits)) == [far]
    assert list(choose([rated(0.9, "No.")], limits)) == []
    assert list(choose([], limits)) == []
    many = [rated(4 - place / 10, f"Number {word}.") for place, word in enumerate(["one", "two", "three", "four"])]
    assert list(choose(many, limits)) == many[:3]


def test_the_thresholds_of_the_default_models_say_what_they_were_measured_on():
    for model in ("ms-marco-MiniLM-L-12-v2", "all-MiniLM-L6-v2"):
        assert "tune" in thresholds(model).measured
        assert np.isfinite(thresholds(model).abstain_below)


TEXT = """# Hedge trimmers

## Blades, oil and "grease"

Oil the blades every 5 hours, e.g. with HT-Oil. It costs $9.50 a bottle! Open Mon. to Fri. until 5 p.m. Eastern.
A line break
inside a sentence. "Is it safe?" they ask. Yes.

- Never cut wire
- Wear gloves. Always.

![The blade](screens/blade.png)

1. First step
2. Second step

| Part | Number | Price |
|---|---|---|
| Blade | HT-1 | $30 |
| Guard | HT-2 | $8. Free with the blade |

### When it rains

Stop.
"""


def test_sentences_of_every_kind_of_block():
    chunks = StructureChunker(count_tokens).chunk(document(TEXT))
    found = [one for chunk in chunks for one in sentences(chunk)]
    assert [one.text for one in found] == [
        "Oil the blades every 5 hours, e.g. with HT-Oil.", "It costs $9.50 a bottle!",
        "Open Mon. to Fri. until 5 p.m. Eastern.", "A line break\ninside a sentence.", '"Is it safe?" they ask.',
        "Yes.", "- Never cut wire", "- Wear gloves. Always.", "1. First step", "2. Second step",
        "Blade | HT-1 | $30", "Guard | HT-2 | $8. Free with the blade", "Stop.",
    ]
    assert [one.readable for one in found][3] == "A line break inside a sentence."
    assert [one.readable for one in found][6:9] == ["Never cut wire", "Wear gloves. Always.", "First step"]
    assert found[10].readable == "Blade (Number: HT-1; Price: $30)."
    assert found[0].heading == 'Blades, oil and "grease"'
    assert found[-1].heading == "When it rains"
    assert found[-1].in_context == "Hedge trimmers. When it rains: Stop."
    assert pictures(chunks[0]) == ["![The blade](screens/blade.png)"]


@given(st.text(alphabet="Ab .!?\n|-1\"”’é", max_size=200))
def test_sentences_are_where_they_say_and_never_overlap(body):
    chunk = StructureChunker(count_tokens).chunk(document("# Hedge trimmers\n\nText.\n"))[0]
    chunk = replace(chunk, body=body, section=None, breadcrumb=())
    found = sentences(chunk)
    assert all(body[one.start : one.end] == one.text and one.text.strip() for one in found)
    assert all(one.end <= other.start for one, other in zip(found, found[1:], strict=False))


def test_a_part_that_starts_inside_a_table_knows_its_columns():
    chunk = StructureChunker(count_tokens).chunk(document("# Hedge trimmers\n\nText.\n"))[0]
    chunk = replace(chunk, table_header="Part | Price", body="Blade | $30\nGuard | $8", section=None)
    assert [one.readable for one in sentences(chunk)] == ["Blade (Price: $30).", "Guard (Price: $8)."]


@pytest.mark.model
def test_with_the_real_models(store):
    who = load_answerer("extractive")
    context = context_of(store, DEPOSIT, RATES, ("till", "3", "Waiving the deposit"))
    answer = who.answer("How much is the deposit when I hire a tiller?", context)
    assert isinstance(answer, Answer)
    assert "$95" in answer.answer
    assert check_answer(answer, context, store, STAFF).grounded
    assert re.fullmatch(r"extractive, ms-marco-MiniLM-L-12-v2", answer.model)
    assert not who.answer("Which sails does a sloop need in a storm?", context).answerable


def test_only_a_marker_at_the_start_is_taken_off_a_sentence():
    body = "# Returns\n\n## Numbers\n\n- Write the number (R- and 7 digits) on the box.\n- Keep 3 - 5 labels.\n"
    chunks = StructureChunker(count_tokens).chunk(document(body, title="Returns"))
    assert [one.readable for chunk in chunks for one in sentences(chunk)] == [
        "Write the number (R- and 7 digits) on the box.",
        "Keep 3 - 5 labels.",
    ]
