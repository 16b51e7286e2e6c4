import re
import shutil
from pathlib import Path

import pytest
from garden import front_matter, write
from index_state import check, state

from labsupport.pipeline import LabError
from labsupport.pipeline.index import Filters
from labsupport.pipeline.lifecycle import six_places, trace
from labsupport.pipeline.naive import copy_course, naive_sync
from labsupport.pipeline.running import RunningProcess, demonstrate
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

BODIES = {"perks": "Staff get a fifth off chainsaws.", "hire": "A tiller costs $45 a day.", "oil": "Change oil in May."}
HEADER = "doc_id,version,title,doc_type,audience,language,effective_from,effective_to,owner\n"


@pytest.fixture
def copy(tmp_path, embedder):
    corpus = tmp_path / "corpus"
    rows = ""
    for name, body in BODIES.items():
        write(corpus, f"{name}.md", front_matter(doc_id=name, title=f"On {name}", audience="staff") + f"{body}\n")
        rows += f"{name},2,On {name},guide,staff,en,2026-01-01,,Product Care\n"
    (corpus / "inventory.csv").write_text(HEADER + rows, encoding="utf-8")
    ingest(corpus, tmp_path / "index.sqlite", embedder)
    return copy_course(corpus, tmp_path / "index.sqlite", tmp_path / "copy")


def found(places):
    return [place.found for place in places]


def test_the_copy_is_whole_and_of_its_own(copy, embedder):
    original = copy.corpus.parents[1] / "index.sqlite"
    before = state(original)
    assert state(copy.index) == before
    (copy.corpus / "documents" / "perks.md").unlink()
    ingest(copy.corpus, copy.index, embedder)
    assert state(original) == before != state(copy.index)
    with pytest.raises(LabError, match="name an empty folder"):
        copy_course(copy.corpus, copy.index, copy.corpus.parent)
    with pytest.raises(LabError, match="No index at"):
        copy_course(copy.corpus, copy.corpus / "none.sqlite", copy.corpus.parent / "other")
    assert not (copy.corpus.parent / "other").exists()


def test_the_naive_sync_reports_success_and_finds_the_deleted(copy, embedder):
    (copy.corpus / "documents" / "perks.md").unlink()
    write(copy.corpus, "hire.md", front_matter(doc_id="hire", title="On hire") + "A tiller costs $50 a day.\n")
    write(copy.corpus, "pump.md", front_matter(doc_id="pump", title="On pumps") + "Drain the pump.\n")
    report = naive_sync(copy, embedder)
    assert report.lines == ["1 added, 1 updated, 1 unchanged, 0 removed | chunks: +2 -1", "  added: documents/pump.md",
                            "  updated: documents/hire.md"]
    assert naive_sync(copy, embedder).line == "0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"
    with Store(copy.index) as store:
        hits = store.keyword(["chainsaws"], Filters(audience="staff"), 5)
        assert [chunk.doc_id for chunk in store.get([one for one, _ in hits])] == ["perks"]
    check(copy.index)
    assert ingest(copy.corpus, copy.index, embedder).removed == ("documents/perks.md",)


def test_six_places_after_each_kind_of_sync(copy, embedder):
    sought = trace(copy.index, "perks")
    vector = embedder._vector("chainsaws")
    with RunningProcess(copy.index, check_generation=False) as stale, RunningProcess(copy.index) as careful:
        assert stale.search(vector) == careful.search(vector)
        names = [place.name for place in six_places(sought, copy.corpus, copy.index, stale)]
        assert names == ["the folder", "documents and chunks tables", "keyword index and stored vectors",
                         "memory of a running process", "recorded answers", "inventory.csv"]
        assert found(six_places(sought, copy.corpus, copy.index, stale)) == [True, True, True, True, None, True]
        (copy.corpus / "documents" / "perks.md").unlink()
        naive_sync(copy, embedder)
        assert found(six_places(sought, copy.corpus, copy.index, careful)) == [False, True, True, True, None, True]
        ingest(copy.corpus, copy.index, embedder)
        assert found(six_places(sought, copy.corpus, copy.index, stale)) == [False, False, False, True, None, True]
        places = six_places(sought, copy.corpus, copy.index, careful)
        assert found(places) == [False, False, False, False, None, True]
        assert [place.detail for place in places[1:4:2]] == ["0 documents, 0 chunks",
                                                             f"process {careful.pid} finds 0 chunks"]
    assert found(six_places(sought, copy.corpus, copy.index))[3] is None
    inventory = copy.corpus / "inventory.csv"
    inventory.write_text(re.sub("perks.*\n", "", inventory.read_text(encoding="utf-8")), encoding="utf-8")
    assert not any(found(six_places(sought, copy.corpus, copy.index)))


def test_a_running_process_with_and_without_the_check(copy, embedder):
    before = state(copy.index)
    moments = demonstrate(copy, "perks", "a fifth off chainsaws", embedder)
    assert [(one.check_generation, one.moment, one.found) for one in moments] == [
        (False, "before", True), (False, "deleted and ingested", True),
        (True, "before", True), (True, "deleted and ingested", False)]
    ghost = next(hit for hit in moments[1].hits if hit.label == "perks v2")
    assert not ghost.in_index and all(hit.in_index for hit in moments[3].hits)
    assert state(copy.index) == before
    with pytest.raises(LabError, match="No document nobody"):
        demonstrate(copy, "nobody", "who?", embedder)


def test_a_process_that_finds_no_index_says_so(tmp_path):
    with pytest.raises(LabError, match="No index at"):
        RunningProcess(tmp_path / "index.sqlite")


def test_what_to_look_for_must_be_in_the_index(copy):
    with pytest.raises(LabError, match="No document perks version 9"):
        trace(copy.index, "perks", "9")


def test_recorded_answers_that_cite_it(copy):
    recordings = Path(__file__).parents[1] / "corpus" / "recordings"
    if not recordings.is_dir():
        pytest.skip("no answers are recorded yet")
    shutil.copytree(recordings, copy.corpus / "recordings")
    place = six_places(trace(copy.index, "perks"), copy.corpus, copy.index)[4]
    assert place.found is False and place.detail.startswith("0 of ")
