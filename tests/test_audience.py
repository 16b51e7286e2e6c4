"""What is for staff never reaches the public: all questions of the course, all methods, and answerers that gossip."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from desk import WordReranker, WordVectors
from test_recordings import recording_of

import labsupport.pipeline.extractive as extractive
from labsupport.pipeline import LabError, narrowing
from labsupport.pipeline.answering import Answer, Claim, StreamingAnswerer
from labsupport.pipeline.ask import ASK_METHODS, AnswerCache, ask
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.extractive import ExtractiveAnswerer, Thresholds
from labsupport.pipeline.index import Filters
from labsupport.pipeline.rendering import render_asked
from labsupport.pipeline.replay import replay
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.terms import words
from labsupport.pipeline.updates import ingest

CORPUS = Path(__file__).parent.parent / "corpus"
QUESTIONS = read_questions(CORPUS)
RUN = 6  # words in a row that only a document for staff has


def runs(text):
    found = words(text)
    return {" ".join(found[at : at + RUN]) for at in range(len(found) - RUN + 1)}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    index = tmp_path_factory.mktemp("audience") / "index.sqlite"
    models = WordVectors()
    ingest(CORPUS, index, models, StructureChunker(models.count_tokens))
    with Store(index) as store:
        yield Retriever(store, models, WordReranker())


@pytest.fixture(scope="module")
def staff(desk):
    return [chunk for chunk in desk.store.all_chunks() if chunk.audience == "staff"]


@pytest.fixture(scope="module")
def secrets(desk, staff):
    public = [chunk for chunk in desk.store.all_chunks() if chunk.audience == "public"]
    return set().union(*[runs(chunk.text) for chunk in staff]) - set().union(*[runs(chunk.text) for chunk in public])


@pytest.fixture
def models(monkeypatch):
    limits = Thresholds(abstain_below=-9.0, also_within=9.0, passage_weight=0.5, rule_bonus=0.0)  # never abstains
    monkeypatch.setattr(extractive, "thresholds", lambda name: limits)
    monkeypatch.setitem(narrowing.FLOORS, ("word-vectors", "word-reranker"), narrowing.Floors(-1.0, -9.0, -1.0, 12))


class Gossip(StreamingAnswerer):
    """Repeats the whole prompt and cites every passage for staff that it has heard of elsewhere."""

    name = model = "gossip"

    def __init__(self, staff):
        self.ids = tuple(chunk.chunk_id for chunk in staff)

    def stream(self, question, context, *, prompt=None, intent=None):
        yield prompt.user
        yield Answer(True, prompt.user, (Claim(context.text()[:200], (*context.ids, *self.ids)),), self.model)


def shown(asked):
    return json.dumps(asked.as_dict(), ensure_ascii=False) + render_asked(asked) + asked.found.prompt.text


@pytest.mark.parametrize("method", ASK_METHODS)
def test_no_question_by_any_method_shows_the_public_a_staff_passage(desk, staff, secrets, models, method):
    cache, answerers = AnswerCache(), [Gossip(staff)]
    if method == "rerank":  # it sees no more than the context, so one method will do
        answerers.append(ExtractiveAnswerer(WordReranker(), WordVectors()))
    staff_ids = {chunk.chunk_id for chunk in staff}
    for question in QUESTIONS:
        asked_text = runs(" ".join([question.text, *question.history]))
        for answerer in answerers:
            options = {"method": method, "history": question.history, "cache": cache, "k": 10}
            # Staff ask first, so that a cache which mixes readers up would be caught.
            ask(question.text, desk, answerer, filters=Filters(question.as_of, "staff"), **options)
            asked = ask(question.text, desk, answerer, filters=Filters(question.as_of, "public"), **options)
            assert not (runs(shown(asked)) & secrets) - asked_text, question.qid
            assert not staff_ids & set(asked.found.context.ids)
            assert not any(chunk_id in asked.found.prompt.text for chunk_id in staff_ids)
            for check in asked.checked.checks:
                if check.chunk_id in staff_ids:
                    assert (check.status, check.words_in_passage) == ("not_allowed", None)


def test_the_same_questions_do_show_staff_their_passages(desk, secrets, models):
    """Without this, the test above would pass on an index without secrets."""
    answerer = ExtractiveAnswerer(WordReranker(), WordVectors())
    seen = [
        question.qid for question in QUESTIONS
        if runs(shown(ask(question.text, desk, answerer, filters=Filters(question.as_of, "staff"),
                          method="bm25", history=question.history))) & secrets
    ]
    wanted = {question.qid for question in QUESTIONS if question.audience == "staff" and question.kind == "staff only"}
    assert wanted <= set(seen)


def test_no_replay_of_a_staff_recording_for_the_public(desk, staff, secrets):
    for chunk in staff:
        recording = recording_of(desk.store, (chunk.doc_id, chunk.version, chunk.section), audience="staff")
        with pytest.raises(LabError) as caught:
            replay(recording, desk, "public")
        assert not runs(str(caught.value)) & secrets
        # One that claims to be public, but saw a passage for staff: the same.
        with pytest.raises(LabError) as caught:
            replay(replace(recording, audience="public"), desk, "public")
        assert chunk.chunk_id not in str(caught.value)
