"""The comparisons of the lessons: ways of cutting, ways of fusing, slips in front matter. No model is loaded."""

import pytest
from fakes import FakeEmbedder
from garden import document, front_matter, write

from labsupport.lab.cuts import compare_cuts, cut_all, keyword_retriever
from labsupport.lab.fusing import compare_fusions
from labsupport.lab.slips import SOUND, slip
from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import Fact, Question
from labsupport.pipeline.index import Entry, Filters
from labsupport.pipeline.search import Retriever, fuse
from labsupport.pipeline.store import Store

TABLE = """# Hire rates

## Rates by tool

| Tool | Per day | Deposit |
|---|---|---|
| Rotary tiller | $45 | $100 |
| Log splitter | $60 | $150 |

## Fuel

Return every tool with a full tank.
"""
EMBEDDER = FakeEmbedder()


def question(text, quotation, section="Rates by tool"):
    fact = Fact("a fact", quotation, "hire-rates", "1", section)
    return Question("Q01", text, "en", "2026-05-01", "public", True, "one fact", "tune", (), (fact,))


@pytest.fixture
def rates():
    return document(TABLE, doc_id="hire-rates", version="1", title="Hire rates", audience="public",
                    effective_from="2026-01-01", effective_to=None)


def test_a_cut_that_tears_a_row_is_counted_and_one_along_the_headings_is_not(rates):
    asked = [question("What does a log splitter cost per day?", "Log splitter | $60")]
    torn, whole = compare_cuts([rates], asked, ["fixed_18_0", "structure"], EMBEDDER, k=1)
    assert torn == {"cut": "fixed_18_0", "chunks": 2, "words": 14, "torn": 1, "facts torn": 1, "recall@1": 0.0}
    assert whole == {"cut": "structure", "chunks": 2, "words": 14, "torn": 0, "facts torn": 0, "recall@1": 1.0}


def test_the_keyword_retriever_searches_the_chunks_it_is_given(rates):
    cut = cut_all([rates], "structure", EMBEDDER)
    with keyword_retriever(cut) as retriever:
        found = retriever.search("a full tank", "bm25", 5, Filters(as_of="2026-05-01"))
    assert [one.chunk for one in found] == [cut[rates][1]]


def test_every_fusion_gets_both_lists_and_a_row_beside_them(rates, tmp_path):
    chunks = cut_all([rates], "structure", EMBEDDER)[rates]
    asked = [question("log splitter per day", quotation) for quotation in ("Log splitter | $60", "not to be found")]
    with Store(tmp_path / "index.sqlite", create=True) as store:
        vectors = EMBEDDER.embed([chunk.text for chunk in chunks])
        meta = {"embedder": EMBEDDER.name, "fingerprint": EMBEDDER.fingerprint, "dimensions": str(EMBEDDER.dimensions)}
        store.replace([], [Entry(rates, chunks, vectors)], meta=meta)
        seen = []

        def worst_first(lists):
            seen.append([[chunk_id for chunk_id, _ in ranked] for ranked in lists])
            return fuse(lists)[::-1]

        rows = compare_fusions(Retriever(store, EMBEDDER), asked, {"fused": fuse, "worst first": worst_first})
    rates_id, fuel_id = (chunk.chunk_id for chunk in chunks)
    assert seen == [[[rates_id], [rates_id, fuel_id]]] * 2
    assert [row["method"] for row in rows] == ["bm25", "dense", "fused", "worst first"]
    assert [row["recall@1"] for row in rows] == [0.5, 0.5, 0.5, 0.0]
    assert rows[-1]["recall@3"] == 0.5 and rows[-1]["MRR"] == 0.25


def test_a_slip_is_told_and_the_file_stays_as_it_is(tmp_path):
    file = write(tmp_path, "hire-rates.md", front_matter(audience="public") + TABLE)
    before = file.read_bytes()
    told = slip(tmp_path, "documents/hire-rates.md", "audience: public", "audience: everybody")
    assert told.startswith("documents/hire-rates.md, line ") and told.endswith("write public or staff.")
    assert slip(tmp_path, "documents/hire-rates.md", "full tank", "empty tank") == SOUND
    assert file.read_bytes() == before
    with pytest.raises(LabError, match="does not hold 'no such text'"):
        slip(tmp_path, "documents/hire-rates.md", "no such text", "")
