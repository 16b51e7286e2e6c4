"""Search over the course's own corpus with the real models: the figures it must reproduce, and what nobody may see."""

import json
from pathlib import Path

import pytest

from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.context import assemble
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.embedding import load_embedder
from labsupport.pipeline.evaluation import evaluate, fact_ranks, filters_of
from labsupport.pipeline.index import Filters
from labsupport.pipeline.narrowing import narrow
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.terms import fold, keyword_terms, words
from labsupport.pipeline.updates import ingest

ROOT = Path(__file__).parent.parent
Q30 = json.loads((ROOT / "tests" / "figures.json").read_text(encoding="utf-8"))["q30"]
QUESTIONS = {question.qid: question for question in read_questions(ROOT / "corpus")}

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    index = tmp_path_factory.mktemp("course") / "index.sqlite"
    ingest(ROOT / "corpus", index, load_embedder(), StructureChunker(load_embedder().count_tokens))
    with Store(index) as store:
        yield Retriever(store)


@pytest.fixture(scope="module")
def q30(retriever):
    return retriever.search(Q30["question"], Q30["method"], Q30["k"], Filters(Q30["as_of"], Q30["audience"]))


def asked(retriever, qid, method="rerank", k=5, **filters):
    question = QUESTIONS[qid]
    used = Filters(**{"as_of": question.as_of, "audience": question.audience} | filters)
    return retriever.search(question.text, method, k, used, question.history)


def test_q30_ranks_its_five_passages(q30):
    assert [result.chunk.chunk_id for result in q30] == [passage["chunk_id"] for passage in Q30["passages"]]
    scores = [result.score for result in q30]
    assert all(before - after > 0.3 for before, after in zip(scores, scores[1:], strict=False))  # no narrow win


@pytest.mark.parametrize("budget, row", [(b, row) for row in Q30["budgets"] for b in row["budgets"]])
def test_q30_at_every_budget(q30, budget, row):
    context = assemble(q30.chunks, budget=budget)
    assert [place for place, chunk in enumerate(q30.chunks, 1) if chunk.chunk_id in context.ids] == row["kept_ranks"]
    assert context.tokens == row["tokens"]


def test_a_french_document_answers_an_english_question(retriever):
    results = asked(retriever, "Q13")
    (rank,) = fact_ranks(QUESTIONS["Q13"], results.chunks)
    assert rank is not None and results[rank - 1].chunk.language == "fr"
    assert any("The reranker reads English" in note for note in results.notes)


def test_a_delivery_in_october_finds_the_version_of_october(retriever):
    results = asked(retriever, "Q22")
    assert results.filters.as_of == "2026-10-20" and fact_ranks(QUESTIONS["Q22"], results.chunks)[0]
    assert {c.version for c in results.chunks if c.doc_id == "returns-policy"} == {"3"}
    later = retriever.search("How long do I have to return an order?", filters=Filters("2026-11-05"))
    assert {c.version for c in later.chunks if c.doc_id == "returns-policy"} == {"4"}


@pytest.mark.parametrize("method", ["bm25", "dense", "hybrid"])  # rerank orders what hybrid found
def test_no_question_by_any_method_brings_a_staff_passage_to_the_public(retriever, method):
    for qid in QUESTIONS:
        assert all(chunk.audience == "public" for chunk in asked(retriever, qid, method, 50, audience="public").chunks)


def test_rewriting_and_reranking_earn_their_place(retriever):
    questions = [question for question in QUESTIONS.values() if question.facts]
    plain = evaluate(retriever, questions, ["bm25", "dense", "hybrid"], (5,), rewriting=False).table()
    full = evaluate(retriever, questions, ["bm25", "dense", "hybrid"], (5,)).table()
    assert all(after["recall@5"] > before["recall@5"] + 0.05 for before, after in zip(plain, full, strict=True))
    assert full[2]["recall@5"] >= 0.95 and full[2]["recall@5"] > max(full[0]["recall@5"], full[1]["recall@5"])


def test_narrowing_keeps_the_answer_and_nothing_for_a_question_out_of_scope(retriever):
    found = narrow(retriever, Q30["question"], Filters(Q30["as_of"], Q30["audience"]))
    assert found.hits[:2] == tuple(passage["chunk_id"] for passage in Q30["passages"][:2])
    away = QUESTIONS["Q58"]
    assert narrow(retriever, away.text, filters_of(away)).hits == ()


def test_narrowing_restores_the_section_that_was_cut(retriever):
    question = QUESTIONS["Q20"]
    found = narrow(retriever, question.text, filters_of(question))
    shown = [chunk.part for chunk in found.chunks if chunk.section == "Inspecting a returned item"]
    assert shown == [1, 2, 3] and found.restored


def test_keyword_scores_are_bm25_as_another_library_computes_it(retriever):
    bm25s = pytest.importorskip("bm25s")
    chunks = retriever.store.all_chunks()
    reference = bm25s.BM25(method="robertson", k1=1.2, b=0.75)
    reference.index([[fold(word) for word in words(chunk.text)] for chunk in chunks], show_progress=False)
    asked_for = ([term for term in keyword_terms(q.text) if " " not in term] for q in QUESTIONS.values())
    for terms in filter(None, asked_for):
        found = dict(retriever.store.keyword(terms, Filters(audience="staff"), len(chunks)))
        scores = reference.get_scores([fold(term) for term in terms]) * (1.2 + 1)  # a factor bm25s leaves out
        expected = {chunk.chunk_id: score for chunk, score in zip(chunks, scores, strict=True) if score > 0}
        assert found == pytest.approx(expected, abs=1e-5)
