"""From question to checked answer: stream, cache, dates, follow-ups, screens, and what the public never sees."""

import json
from contextlib import closing
from itertools import product

import pytest
from desk import WordReranker, WordVectors, build_desk, chunk_of

from labsupport.pipeline import LabError, narrowing
from labsupport.pipeline.answering import Answer, Claim, StreamingAnswerer, in_words
from labsupport.pipeline.ask import AnswerCache, Asked, Found, ask, ask_stream, find
from labsupport.pipeline.index import Filters
from labsupport.pipeline.rendering import render_asked
from labsupport.pipeline.search import METHODS, Retriever
from labsupport.pipeline.store import Store

PUBLIC, STAFF = Filters("2026-10-09", "public"), Filters("2026-10-09", "staff")
DEPOSIT = "What is the deposit for a hired tiller?"


class Parrot(StreamingAnswerer):
    """Says the first passage back, cites every passage it was shown, and counts how often it was asked."""

    name, model = "parrot", "parrot-1"

    def __init__(self):
        self.asked, self.closed = [], False

    def stream(self, question, context, *, prompt=None, intent=None):
        self.asked.append((question, prompt, context.ids))
        text = context.kept[0].body if context.kept else "Nothing found."
        try:
            yield from in_words(text)
            yield ""
            claims = tuple(Claim(chunk.body, (chunk.chunk_id,)) for chunk in context.kept)
            yield Answer(bool(claims), text, claims, self.model)
        finally:
            self.closed = True


@pytest.fixture
def retriever(tmp_path):
    _, index = build_desk(tmp_path)
    with Store(index) as store:
        yield Retriever(store, WordVectors(), WordReranker())


def test_the_stream_gives_passages_then_text_then_the_checked_answer(retriever):
    found, *pieces, asked = ask_stream(DEPOSIT, retriever, Parrot(), filters=PUBLIC)
    assert isinstance(found, Found)
    assert isinstance(asked, Asked)
    assert "".join(pieces) == asked.answer.answer
    assert asked.found is found
    assert asked.checked.grounded
    assert chunk_of(retriever.store, "hire", "2", "Deposit").chunk_id == found.context.ids[0]
    assert found.prompt.text.count("```passage") == len(found.context.ids)


def test_closing_the_stream_closes_the_answerer(retriever):
    parrot = Parrot()
    with closing(ask_stream(DEPOSIT, retriever, parrot, filters=PUBLIC)) as events:
        next(events)
        next(events)
    assert parrot.closed


def test_an_empty_question_is_refused(retriever):
    for empty in ("", "  \n"):
        with pytest.raises(LabError, match="question is empty"):
            ask(empty, retriever, Parrot(), filters=PUBLIC)
        with pytest.raises(LabError, match="question is empty"):
            ask(empty, retriever, Parrot(), filters=PUBLIC, history=["What is the deposit?"])


def test_the_day_of_delivery_decides_the_version(retriever):
    def versions(question, as_of):
        found = find(question, retriever, filters=Filters(as_of, "public"))
        return found.filters.as_of, {chunk.version for chunk in found.context.kept if chunk.doc_id == "hire"}

    assert versions("My tiller was delivered on 20 June. What is the deposit?", "2026-07-09") == ("2026-06-20", {"1"})
    assert versions("What is the deposit for a tiller?", "2026-07-09") == ("2026-07-09", {"2"})


def test_a_cited_version_is_checked_for_the_day_of_delivery(retriever):
    question = "My tiller was delivered on 20 June. What is the deposit?"
    asked = ask(question, retriever, Parrot(), filters=Filters("2026-07-09", "public"))
    assert {check.status for check in asked.checked.checks} == {"ok"}
    assert "documents as of 2026-06-20" in render_asked(asked)


def test_a_follow_up_reaches_the_answerer_with_its_topic(retriever):
    parrot = Parrot()
    late = "And how much is it when it comes back late?"
    ask(late, retriever, parrot, filters=PUBLIC, history=["Can I hire a tiller?"])
    question, prompt, _ = parrot.asked[0]
    assert "tiller" in question
    assert "Can I hire a tiller? And how much" in prompt.user


def test_another_subject_is_not_judged_by_the_question_before_it(retriever):
    before = ["Which button on the hire form sends the request?"]
    alone, later = (find(DEPOSIT, retriever, filters=PUBLIC, history=history) for history in ((), before))
    assert later.intent == alone.intent
    assert later.prompt == alone.prompt
    assert later.history == ()


def test_screens_come_first_for_a_screen_question_and_nothing_is_lost(retriever):
    asked = "In which field of the hire form do I choose the first day?"
    found = find(asked, retriever, filters=PUBLIC, k=4)
    assert found.intent.label == "screen"
    assert found.prompt.posture == "pointing"
    assert found.context.kept[0].content_kind == "screen"
    plain = retriever.search(asked, "rerank", 4, PUBLIC)
    assert {result.chunk.chunk_id for result in plain} <= set(found.context.ids) | {i for i, _ in found.context.dropped}


def test_the_cache_knows_question_passages_and_state_of_the_index(retriever, tmp_path):
    parrot, cache = Parrot(), AnswerCache()
    first = ask(DEPOSIT, retriever, parrot, filters=PUBLIC, cache=cache)
    again = ask(DEPOSIT, retriever, parrot, filters=PUBLIC, cache=cache)
    assert (first.cached, again.cached, len(parrot.asked)) == (False, True, 1)
    assert again.answer == first.answer
    assert "from the cache" in render_asked(again)
    ask(DEPOSIT, retriever, parrot, filters=STAFF, cache=cache)  # another audience
    ask(DEPOSIT + " Please.", retriever, parrot, filters=PUBLIC, cache=cache)  # another question
    assert len(parrot.asked) == 3
    retriever.store.replace(remove=[("maker", "1")])  # another state of the index
    assert not ask(DEPOSIT, retriever, parrot, filters=PUBLIC, cache=cache).cached


def test_the_cache_is_bounded_and_forgets_the_oldest():
    cache = AnswerCache(limit=2)
    for name in "abc":
        cache.put(name, Answer(True, name))
    assert len(cache) == 2
    assert cache.get("a") is None
    assert cache.get("c").answer == "c"


def test_a_broken_off_answer_is_not_cached(retriever):
    cache, parrot = AnswerCache(), Parrot()
    with closing(ask_stream(DEPOSIT, retriever, parrot, filters=PUBLIC, cache=cache)) as events:
        next(events)
        next(events)
    assert len(cache) == 0


def test_an_answerer_that_gives_no_answer_is_an_error(retriever):
    class Mute(Parrot):
        def stream(self, *args, **options):
            yield "so"

    with pytest.raises(LabError, match="stopped before"):
        ask(DEPOSIT, retriever, Mute(), filters=PUBLIC)


def test_json_holds_answer_checks_and_costs(retriever):
    data = json.loads(json.dumps(ask(DEPOSIT, retriever, Parrot(), filters=PUBLIC, qid="G07").as_dict()))
    assert data["qid"] == "G07"
    assert data["grounded"] is True
    assert data["checks"][0]["status"] == "ok"
    assert sum(passage["tokens"] for passage in data["passages"]) <= 1500


def test_the_text_names_the_fault_of_a_citation(retriever):
    class Liar(Parrot):
        def stream(self, question, context, **_):
            claims = (Claim("“Free of charge” on Sundays.", ("c13d27947ed1",)), Claim("Always."))
            yield Answer(True, "", claims, self.model, 10, 5, 0.5)

    text = render_asked(ask(DEPOSIT, retriever, Liar(), filters=PUBLIC))
    assert "CHECK: missing_id:c13d27947ed1" in text
    assert "CHECK: no citation" in text
    assert "CHECK: quotation in no passage cited: 'Free of charge'" in text
    assert "grounded: NO" in text
    assert text.endswith("parrot-1 | 10 tokens in, 5 out | 0.50 s")


QUESTIONS = [
    DEPOSIT, "Who may waive the tiller deposit for a garden club member?", "code GC-77", "GC-77 shift lead till",
    "Waiving the deposit", "Till routines?", "garden club", "How much is it?", "Et la caution ?", "Which button?",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_for_staff_reaches_the_public_on_any_path(retriever, question):
    secret = chunk_of(retriever.store, "till", "3", "Waiving the deposit")
    for method, history in product(METHODS, [(), ("Who may waive the deposit with code GC-77?",)]):
        parrot = Parrot()
        asked = ask(question, retriever, parrot, filters=PUBLIC, method=method, k=20, history=history)
        seen = json.dumps(asked.as_dict()) + render_asked(asked) + asked.found.prompt.text.split("# Question")[0]
        for word in (secret.chunk_id, "shift lead may waive", "Till routines |", "till v3"):
            assert word not in seen.replace(question, "")
        staff = ask(question, retriever, parrot, filters=STAFF, method=method, k=20)
        assert all(chunk.audience == "public" for chunk in asked.found.context.kept)
        if question == QUESTIONS[1]:
            assert secret.chunk_id in staff.found.context.ids  # staff do get it


def test_even_a_search_that_forgot_the_filter_gives_the_public_nothing(retriever):
    class Careless(Retriever):
        def search(self, question, method, k, filters, history=()):
            return super().search(question, method, k, STAFF, history)

    careless = Careless(retriever.store, WordVectors(), WordReranker())
    asked = ask(QUESTIONS[1], careless, Parrot(), filters=PUBLIC, k=20)
    assert all(chunk.audience == "public" for chunk in asked.found.context.kept)
    assert "shift lead" not in asked.found.prompt.user.split("# Question")[0]




def test_the_grounded_path_shows_its_steps_and_may_find_nothing(retriever, monkeypatch):
    monkeypatch.setitem(narrowing.FLOORS, ("word-vectors", "word-reranker"), narrowing.Floors(0.2, 2.0, 0.5))
    asked = ask(DEPOSIT, retriever, Parrot(), filters=PUBLIC, method="narrow")
    assert [step.name for step in asked.found.narrowing.steps][-1] == "restored"
    assert asked.found.context.ids[0] == chunk_of(retriever.store, "hire", "2", "Deposit").chunk_id
    assert asked.found.searched == (DEPOSIT,)
    nothing = ask("Who painted the Mona Lisa?", retriever, Parrot(), filters=PUBLIC, method="narrow")
    assert nothing.found.context.ids == []
    assert not nothing.answer.answerable
    assert "(no passage was found)" in nothing.found.prompt.text


def test_an_unknown_method_is_refused(retriever):
    with pytest.raises(LabError, match="Unknown method 'magic'"):
        ask(DEPOSIT, retriever, Parrot(), filters=PUBLIC, method="magic")
