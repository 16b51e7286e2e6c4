from dataclasses import replace

import numpy as np
import pytest
from desk import WordReranker, WordVectors
from garden import front_matter, write

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.context import assemble
from labsupport.pipeline.index import Filters
from labsupport.pipeline.narrowing import FLOORS, Floors, narrow
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

FLOORS_HERE = Floors(similarity=0.2, reranker=0.0, unread=0.9, cap=3)


def steps_of_a_section(version):
    """Four paragraphs too long for one chunk; only the third one is about the carburettor."""
    topics = {"fuel tank": "Drain", "spark plug": "Unscrew", "carburettor": "Clean", "chain bar": "Turn"}
    return "\n\n".join(
        f"{verb} the {topic} of the chainsaw in version {version}. " + f"Then wipe the {topic} with a dry cloth. " * 3
        for topic, verb in topics.items()
    )


def saw(version, **fields):
    head = front_matter(doc_id="saw", version=version, title="Chainsaw care", **fields)
    return f"""{head}# Chainsaw care

## Yearly service

{steps_of_a_section(version)}

## Fees

The service costs $40.

## Yearly service

Book the yearly service of the carburettor in spring.
"""


@pytest.fixture
def index(tmp_path):
    corpus = tmp_path / "corpus"
    write(corpus, "saw-v1.md", saw("1", effective_to="2026-06-30"))
    write(corpus, "saw-v2.md", saw("2", effective_from="2026-07-01"))
    desk = front_matter(doc_id="desk", version="1", title="Desk", doc_type="procedure", audience="staff")
    write(corpus, "desk.md", f"{desk}# Desk\n\n## Carburettor\n\nThe carburettor clean code is K7.\n")
    serre = front_matter(doc_id="serre", version="1", title="La serre", doc_type="help article", language="fr")
    write(corpus, "serre.md", f"{serre}# La serre\n\n## Prix\n\nLe prix de la serre : 90 $.\n")
    models = WordVectors()
    ingest(corpus, tmp_path / "index.sqlite", models, StructureChunker(models.count_tokens, limit=60))
    with Store(tmp_path / "index.sqlite") as store:
        yield store


@pytest.fixture
def retriever(index):
    models = WordVectors()
    chunker = StructureChunker(models.count_tokens, limit=60)
    return Retriever(index, models, WordReranker(), chunker)


QUESTION = "How do I clean the carburettor of the chainsaw?"
TODAY = Filters(as_of="2026-08-01", audience="public")


def narrowed(retriever, question=QUESTION, filters=TODAY, **options):
    return narrow(retriever, question, filters, **{"floors": FLOORS_HERE} | options)


def test_the_section_is_cut_into_four_parts(index):
    parts = [chunk for chunk in index.chunks("saw", "2") if chunk.parts > 1]
    assert [(chunk.part, chunk.parts) for chunk in parts] == [(n, 4) for n in range(1, 5)]
    assert "carburettor" in parts[2].body


def test_every_step_accounts_for_what_the_step_before_let_through(retriever):
    found = narrowed(retriever)
    assert [step.name for step in found.steps] == [
        "nearest", "similarity floor", "reranker", "strict floor and cap", "restored",
    ]  # fmt: skip
    for before, step in zip(found.steps[:3], found.steps[1:4], strict=True):
        ids = [chunk_id for chunk_id, _ in step.kept] + [chunk_id for chunk_id, _ in step.dropped]
        assert sorted(ids) == sorted(chunk_id for chunk_id, _ in before.kept)
    assert [chunk_id for chunk_id, _ in found.steps[3].kept] == list(found.hits)
    assert [chunk_id for chunk_id, _ in found.steps[4].kept] == [chunk.chunk_id for chunk in found.chunks]
    reasons = " ".join(reason for step in found.steps for _, reason in step.dropped)
    assert "is below 0.2" in reasons and "reranker score" in reasons


def test_siblings_of_a_hit_are_restored_in_order_and_once(retriever, index):
    found = narrowed(retriever, floors=replace(FLOORS_HERE, cap=1))
    third = next(c for c in index.chunks("saw", "2") if c.part == 3)
    assert found.hits == (third.chunk_id,)
    assert [(c.version, c.part) for c in found.chunks] == [("2", 1), ("2", 2), ("2", 3), ("2", 4)]
    assert set(found.restored) == {c.chunk_id for c in found.chunks} - {third.chunk_id}
    # Two parts hit: the section is still shown once.
    both = narrowed(retriever, "How do I clean the carburettor and unscrew the spark plug of the chainsaw?")
    shown = [c.part for c in both.chunks if c.section_start == third.section_start]
    assert len(both.hits) > 1 and shown == [1, 2, 3, 4]


def test_restoring_leaves_out_other_versions_and_the_other_section_of_that_name(retriever, index):
    found = narrowed(retriever, floors=replace(FLOORS_HERE, cap=1))
    assert {chunk.version for chunk in found.chunks} == {"2"}
    assert len({chunk.section_start for chunk in found.chunks}) == 1
    assert sum(chunk.section == "Yearly service" for chunk in index.chunks("saw", "2")) == 5


def test_a_part_that_is_gone_is_left_out(retriever, index):
    second = next(c for c in index.chunks("saw", "2") if c.part == 2)
    index._connection.execute("DELETE FROM chunks WHERE id = ?", [int(second.chunk_id, 16)])
    found = narrowed(retriever, floors=replace(FLOORS_HERE, cap=1))
    assert [c.part for c in found.chunks] == [1, 3, 4]


def test_hits_outrank_restored_parts_in_a_small_budget_and_what_is_left_out_is_named(retriever):
    found = narrowed(retriever, floors=replace(FLOORS_HERE, cap=1))
    context = assemble(found.chunks, budget=130, hits=found.hits)
    assert context.ids == list(found.hits)
    assert {i for i, reason in context.dropped if reason == "over budget"} == set(found.restored)
    full = assemble(found.chunks, hits=found.hits)
    assert full.restored == set(found.restored)
    assert [passage.splitlines()[0].rsplit(" | ")[-1] for passage in full.passages] == [
        "part 1 of 4, restored", "part 2 of 4, restored", "part 3 of 4", "part 4 of 4, restored",
    ]  # fmt: skip


def test_staff_passages_never_reach_the_public(retriever):
    question = "What is the carburettor clean code?"
    assert any(c.doc_id == "desk" for c in narrowed(retriever, question, replace(TODAY, audience="staff")).chunks)
    found = narrowed(retriever, question)
    ids = {chunk_id for step in found.steps for chunk_id, _ in (*step.kept, *step.dropped)}
    assert ids and all(chunk.audience == "public" for chunk in retriever.store.get(sorted(ids)))


def test_nothing_to_the_point_leaves_nothing(retriever):
    found = narrowed(retriever, "Who painted the ceiling of the chapel?")
    assert found.hits == () and found.chunks == () and assemble(found.chunks, hits=found.hits).ids == []
    assert narrowed(retriever, "").hits == ()


def test_the_cap_is_hard(retriever):
    found = narrowed(retriever, floors=Floors(-1.0, -100.0, -1.0, cap=2))
    assert len(found.hits) == 2
    assert "over the cap of 2" in {reason for _, reason in found.steps[3].dropped}
    assert len(narrowed(retriever, floors=Floors(-1.0, -100.0, -1.0, cap=99), nearest=3).hits) == 3


def test_an_unread_passage_stays_if_it_holds_every_translated_word_or_is_very_near(retriever):
    by_words = narrowed(retriever, "What is the price of a greenhouse?", floors=replace(FLOORS_HERE, similarity=0.0))
    (serre,) = retriever.store.chunks("serre")
    assert serre.chunk_id in by_words.hits and serre.chunk_id in by_words.covered
    assert "reranker" not in by_words.parts[serre.chunk_id]
    assert any("The reranker reads English" in note for note in by_words.notes)
    french = "Où se trouve la serre de la mairie ?"  # no translation: nothing but the cosine speaks for it
    far = narrowed(retriever, french, floors=replace(FLOORS_HERE, similarity=0.0))
    assert far.hits == () and any("not read by the reranker" in reason for _, reason in far.steps[3].dropped)
    near = narrowed(retriever, french, floors=replace(FLOORS_HERE, similarity=0.0, unread=0.1))
    assert near.hits == (serre.chunk_id,)


def test_the_day_of_delivery_picks_the_version(retriever):
    question = "My chainsaw was delivered on 20 June. How do I clean the carburettor of the chainsaw?"
    found = narrowed(retriever, question)
    assert found.filters.as_of == "2026-06-20" and {chunk.version for chunk in found.chunks} == {"1"}


def test_floors_belong_to_a_pair_of_models(retriever):
    assert ("all-MiniLM-L6-v2", "ms-marco-MiniLM-L-12-v2") in FLOORS
    with pytest.raises(LabError, match="No floors are known for word-vectors with word-reranker"):
        narrow(retriever, QUESTION)


def test_the_same_narrowing_every_time(retriever):
    assert narrowed(retriever) == narrowed(retriever)
    assert np.isfinite([parts["cosine"] for parts in narrowed(retriever).parts.values()]).all()
