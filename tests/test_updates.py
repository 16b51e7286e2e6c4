import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbedder
from garden import count_tokens, front_matter, write
from index_state import check, opened, state

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import StructureChunker, make_chunker
from labsupport.pipeline.corpus import CorpusError
from labsupport.pipeline.folder import AT_REST, FileHashes, document_files
from labsupport.pipeline.index import Filters, check_chunker
from labsupport.pipeline.index_file import IndexFile
from labsupport.pipeline.updates import ingest

FIGURES = json.loads((Path(__file__).parent / "figures.json").read_text(encoding="utf-8"))
REAL = Path(__file__).parents[1] / "corpus"
STAFF = Filters(audience="staff")
TILLER = "## Oil\n\nChange the oil of the tiller each spring.\n\n## Tines\n\nClean the tines after use.\n"
BLADE = "## Blade\n\nSharpen the blade.\n"
HEDGE = "## Trim\n\nTrim in June.\n\n## Height\n\nKeep it low.\n\n## Birds\n\nMind nests.\n"


def text(doc_id, body=TILLER, **fields):
    title = fields.setdefault("title", f"The {doc_id}")
    return front_matter(doc_id=doc_id, **fields) + f"# {title}\n\n{body}"


class Course:
    """A small corpus of three documents with an index, and the fake model that fills it."""

    def __init__(self, home, index, embedder):
        self.corpus, self.index, self.embedder = home / "corpus", index, embedder
        self.folder = self.corpus / "documents"
        for name, body in (("tiller", TILLER), ("mower", BLADE), ("hedge", HEDGE)):
            write(self.corpus, f"{name}.md", text(name, body))

    def ingest(self, **options):
        self.embedder.embedded.clear()
        return ingest(self.corpus, self.index, self.embedder, **options)

    def lines(self, **options):
        return self.ingest(**options).lines

    def refused(self, match, **options):
        """The ingest is refused with a text like `match`, and the index stays as it was."""
        before = state(self.index)
        with pytest.raises(LabError, match=match) as caught:
            self.ingest(**options)
        assert state(self.index) == before
        return str(caught.value)

    def ids(self, doc_id):
        with opened(self.index) as store:
            return [chunk.chunk_id for chunk in store.chunks(doc_id)]

    def found(self, word):
        """Which documents hold the word, by the keyword index, and which are nearest, by the vectors."""
        with opened(self.index) as store:
            vector = self.embedder._vector(word)
            near = store.dense(vector, STAFF, 99)
            ways = store.keyword([word], STAFF, 99), [hit for hit in near if hit[1] == near[0][1]]
            return [sorted({chunk.doc_id for chunk in store.get([one for one, _ in hits])}) for hits in ways]


@pytest.fixture
def index(tmp_path):
    """Where the index is to be; test_engines.py names other places."""
    return tmp_path / "index.sqlite"


@pytest.fixture
def course(tmp_path, index, embedder):
    made = Course(tmp_path, index, embedder)
    made.ingest()
    return made


# The four cases and the report


def test_reports_of_the_course_to_the_character(tmp_path, index):
    corpus, model = tmp_path / "corpus", FakeEmbedder()
    shutil.copytree(REAL / "documents", corpus / "documents")
    folder, expected = corpus / "documents", FIGURES["reports"]

    def run():
        report = ingest(corpus, index, model, StructureChunker(count_tokens))
        check(index)
        return report

    def now(doc_id):
        with opened(index) as store:
            return [{"start": c.start, "end": c.end, "chunk_id": c.chunk_id} for c in store.chunks(doc_id)]

    assert str(run()) == expected["first_ingest"]
    assert str(run()) == expected["second_ingest"]
    gift, perks = folder / "gift-cards.md", folder / "staff-discount-and-perks.md"
    plain = gift.read_text(encoding="utf-8")
    before = now("gift-cards")
    gift.write_text(plain.replace("in your account", "in your Larkfield account"), encoding="utf-8", newline="\n")
    edit = FIGURES["gift_cards_after_edit"]
    assert str(run()) == f"{edit['report']}\n  updated: documents/gift-cards.md"
    assert now("gift-cards") == edit["chunks"]
    gift.write_text(plain, encoding="utf-8", newline="\n")
    run()
    assert now("gift-cards") == before
    gift.rename(folder / "vouchers.md")
    model.embedded.clear()
    assert run().lines == [expected["after_renaming_gift_cards"],
                           "  renamed: documents/gift-cards.md -> documents/vouchers.md"]
    assert now("gift-cards") == before and model.embedded == []
    (folder / "vouchers.md").rename(gift)
    run()
    kept = perks.read_bytes()
    perks.unlink()
    assert run().lines == [expected["after_deleting_staff_discount"],
                           "  removed: documents/staff-discount-and-perks.md"]
    perks.write_bytes(kept)
    assert run().lines == [expected["after_restoring_it"], "  added: documents/staff-discount-and-perks.md"]


def test_only_texts_that_changed_are_embedded(course):
    write(course.corpus, "hedge.md", text("hedge", HEDGE.replace("low", "tall")))
    assert course.lines() == ["0 added, 1 updated, 2 unchanged, 0 removed | chunks: +3 -3",
                              "  updated: documents/hedge.md"]
    assert course.embedder.embedded == ["The hedge\nHeight\n\nKeep it tall."]


def test_nothing_is_parsed_or_embedded_when_nothing_changed(course, monkeypatch):
    def never(*_):
        raise AssertionError("read")

    monkeypatch.setattr("labsupport.pipeline.plan.read_document", never)
    monkeypatch.setattr(StructureChunker, "chunk", never)
    before = course.index.read_bytes()
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"]
    assert course.index.read_bytes() == before and course.embedder.embedded == []


def test_a_long_first_ingest_lists_nothing_and_a_long_update_the_beginning(course):
    for number in range(25):
        write(course.corpus, f"extra-{number:02}.md", text(f"extra-{number}"))
    lines = course.lines()
    assert lines[0] == "25 added, 0 updated, 3 unchanged, 0 removed | chunks: +50 -0"
    assert lines[20:] == ["  added: documents/extra-19.md", "  added: … and 5 more"]


def test_documents_in_folders_of_their_own(course):
    write(course.corpus, "care/winter/pump.MD", text("pump"))
    write(course.corpus, "care/notes.txt", "no document")
    assert course.lines()[1] == "  added: documents/care/winter/pump.MD"
    assert "documents/care/winter/pump.MD" in document_files(course.corpus)


def test_a_document_whose_link_leads_nowhere_is_a_fault_and_not_a_deletion(course):
    file = course.corpus / sorted(document_files(course.corpus))[0]
    aside = file.rename(file.with_suffix(".aside"))
    try:
        file.symlink_to(course.corpus / "nowhere.md")
    except OSError:
        pytest.skip("this account may not make links")
    with pytest.raises(LabError, match=f"{file.name}: is a link to a file that is not there"):
        course.lines()
    file.unlink()
    aside.rename(file)
    assert course.lines()[0] == "0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"


# Renames


def test_a_rename_into_another_folder(course):
    ids = course.ids("hedge")
    (course.folder / "b").mkdir()
    (course.folder / "hedge.md").rename(course.folder / "b" / "garden-hedge.md")
    assert course.lines() == ["1 added, 0 updated, 2 unchanged, 1 removed | chunks: +3 -3",
                              "  renamed: documents/hedge.md -> documents/b/garden-hedge.md"]
    assert course.embedder.embedded == [] and course.ids("hedge") == ids
    assert course.found("nests.")[0] == ["hedge"]
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"]


def test_a_rename_that_changes_capitals_only(course):
    (course.folder / "hedge.md").rename(course.folder / "Hedge.md")
    assert course.lines()[1:] == ["  renamed: documents/hedge.md -> documents/Hedge.md"]
    assert course.embedder.embedded == []


def test_two_files_swap_names(course):
    hedge, mower = course.folder / "hedge.md", course.folder / "mower.md"
    hedge.rename(course.folder / "x"), mower.rename(hedge), (course.folder / "x").rename(mower)
    assert course.lines() == ["0 added, 2 updated, 1 unchanged, 0 removed | chunks: +4 -4",
                              "  renamed: documents/mower.md -> documents/hedge.md",
                              "  renamed: documents/hedge.md -> documents/mower.md"]
    assert course.embedder.embedded == []
    with opened(course.index) as store:
        assert {row.doc_id: row.path for row in store.documents()} == {
            "hedge": "documents/mower.md", "mower": "documents/hedge.md", "tiller": "documents/tiller.md"}


def test_renamed_and_changed_in_one_step(course):
    (course.folder / "mower.md").unlink()
    write(course.corpus, "lawn.md", text("mower", "## Blade\n\nSharpen the blade twice.\n"))
    assert course.lines() == ["1 added, 0 updated, 2 unchanged, 1 removed | chunks: +1 -1",
                              "  renamed and changed: documents/mower.md -> documents/lawn.md"]
    assert len(course.ids("mower")) == 1 and course.found("twice.")[0] == ["mower"]


def test_the_old_version_moves_aside_and_a_new_one_takes_its_name(course):
    shutil.copy(course.folder / "mower.md", course.folder / "mower-v2.md")
    write(course.corpus, "mower.md", text("mower", "## Blade\n\nNever sharpen it.\n", version="3",
                                          effective_from="2027-01-01"))
    assert course.lines() == [
        "1 added, 1 updated, 2 unchanged, 0 removed | chunks: +2 -1",
        "  updated: documents/mower.md",
        "  renamed: documents/mower.md -> documents/mower-v2.md",
        "  note: mower versions 2 and 3 are both in force from 2027-01-01 on, without end; "
        "end the older one with effective_to"]


# What is refused


def test_a_copy_claims_the_same_version(course):
    shutil.copy(course.folder / "hedge.md", course.folder / "hedge-copy.md")
    assert course.refused("both") == (
        "Nothing changed in the index. documents/hedge-copy.md and documents/hedge.md are both hedge version 2. "
        "Keep one file per document version; a new version needs a new version number.")


def test_a_second_file_with_another_text_claims_the_same_version(course):
    write(course.corpus, "a.md", text("hedge", "## Other\n\nText.\n"))
    course.refused(r"documents/a.md and documents/hedge.md are both hedge version 2")


def test_ids_that_differ_in_capitals_only(course):
    write(course.corpus, "z.md", text("Hedge", version="3"))
    course.refused("documents/hedge.md and documents/z.md have ids that differ in capitals only")


def test_versions_are_text(course):
    write(course.corpus, "hedge-2.0.md", text("hedge", version="2.0", effective_from="2028-01-01"))
    assert course.ingest().added == ("documents/hedge-2.0.md",)
    with opened(course.index) as store:
        assert [row.version for row in store.documents() if row.doc_id == "hedge"] == ["2", "2.0"]


def test_all_faults_are_listed_at_once_and_nothing_is_ingested(course):
    write(course.corpus, "good.md", text("good"))
    write(course.corpus, "bytes.md", b"\xff\xfe")
    write(course.corpus, "plain.md", "no front matter")
    write(course.corpus, "copy.md", (course.folder / "hedge.md").read_bytes())
    with pytest.raises(CorpusError) as caught:
        course.ingest()
    assert [fault.split(":")[0].split(",")[0].split(" ")[0] for fault in caught.value.faults] == [
        "documents/bytes.md", "documents/copy.md", "documents/plain.md"]
    assert str(caught.value).startswith("Nothing changed in the index. 3 faults:\ndocuments/bytes.md, ")
    course.refused("3 faults")


def test_faults_before_the_first_ingest_leave_no_index(tmp_path, index, embedder):
    write(tmp_path, "plain.md", "no front matter")
    with pytest.raises(LabError, match="Nothing changed in the index"):
        ingest(tmp_path, index, embedder)
    assert state(index) is None and not (tmp_path / "index.sqlite").exists()


@pytest.mark.parametrize("lose", [lambda folder: [path.unlink() for path in folder.iterdir()], shutil.rmtree])
def test_an_empty_or_missing_folder_is_refused_unless_meant(course, lose):
    lose(course.folder)
    course.refused("^Nothing changed in the index.*--corpus")
    assert course.lines(allow_empty=True)[0] == "0 added, 0 updated, 0 unchanged, 3 removed | chunks: +0 -6"
    check(course.index)
    assert course.found("blade") == [[], []]


def test_a_folder_that_cannot_be_listed_is_no_deletion(course, monkeypatch):
    write(course.corpus, "care/pump.md", text("pump"))
    course.ingest()

    def scandir(path, plain=os.scandir):
        if str(path).endswith("care"):
            raise PermissionError(13, "Permission denied")
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    course.refused("documents/care cannot be read \\(Permission denied\\)")


def test_an_unreadable_file_is_a_fault_not_a_deletion(course, monkeypatch):
    def read(self, name, path, plain=FileHashes.read):
        if name.endswith("hedge.md"):
            raise PermissionError(13, "Permission denied")
        return plain(self, name, path)

    monkeypatch.setattr(FileHashes, "read", read)
    course.refused("documents/hedge.md: cannot be read \\(Permission denied\\)")


def test_a_file_that_goes_while_the_folder_is_read_counts_as_gone(course, monkeypatch):
    write(course.corpus, "tiller.md", text("tiller", BLADE))  # there is something to do, so the folder is read in full
    looked = []

    def read(self, name, path, plain=FileHashes.read):
        looked.append(name)
        if name.endswith("hedge.md") and looked.count(name) == 2:
            Path(path).unlink()
        return plain(self, name, path)

    monkeypatch.setattr(FileHashes, "read", read)
    assert course.lines()[1:] == ["  updated: documents/tiller.md", "  removed: documents/hedge.md"]


# Another model, another chunker, a rebuild


def test_another_model_is_refused_until_rebuilt(course):
    course.embedder.fingerprint = "fake:2"
    course.refused("embedding model fake:1, now fake:2.*--rebuild")
    report = course.ingest(rebuild=True)
    assert report.lines == ["3 added, 0 updated, 0 unchanged, 0 removed | chunks: +6 -0",
                            "  note: built anew, in place of the old index"]
    assert len(course.embedder.embedded) == 6  # not one vector of the other model
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"]


def test_vectors_of_another_length_are_refused(course):
    course.embedder.dimensions = 8
    course.refused("length of the vectors 16, now 8")


def test_another_chunker_is_refused_until_rebuilt(course):
    other = StructureChunker(course.embedder.count_tokens, limit=40)
    course.refused(r"chunker structure\(limit=400.*, now structure\(limit=40", chunker=other)
    newer = make_chunker("structure", course.embedder)
    newer.name = newer.name.replace("v1", "v9")
    course.refused("v1.*now.*v9", chunker=newer)
    course.ingest(chunker=newer, rebuild=True)
    course.refused("v9.*now.*v1")


def test_a_search_can_tell_that_the_chunker_has_changed(course, monkeypatch):
    with opened(course.index) as store:
        check_chunker(store.meta(), course.embedder)
        monkeypatch.setattr("labsupport.pipeline.chunking.LIMIT", 300)
        with pytest.raises(LabError, match=r"chunker structure\(limit=400.*, now structure\(limit=300.*--rebuild"):
            check_chunker(store.meta(), course.embedder)


def test_a_rebuild_gives_the_same_rows(course):
    write(course.corpus, "pump.md", text("pump"))
    (course.folder / "mower.md").unlink()
    course.ingest()
    before = state(course.index)
    course.ingest(rebuild=True)
    assert state(course.index) == before
    check(course.index)


def test_a_rebuild_is_all_or_nothing(course):
    plain = course.embedder._vector

    def fail(content):
        if "nests" in content:
            raise RuntimeError("no birds")
        return plain(content)

    course.embedder._vector = fail
    course.refused("hedge.md: the embedding model failed on it \\(no birds\\)", rebuild=True)


@pytest.mark.parametrize("spoil", ["damage", "age"])
def test_a_rebuild_replaces_an_index_that_cannot_be_read(course, spoil):
    before = state(course.index)
    if spoil == "damage":
        data = course.index.read_bytes()
        course.index.write_bytes(data[:4096] + b"\xee" * (len(data) - 4096))
    else:
        data = bytearray(course.index.read_bytes())
        data[60:64] = (0).to_bytes(4, "big")  # user_version, in the file's header
        course.index.write_bytes(data)
    with pytest.raises(LabError, match="--rebuild"):
        course.ingest()
    course.ingest(rebuild=True)
    assert state(course.index) == before
    check(course.index)


def test_a_rebuild_does_not_replace_what_is_not_ours(course):
    course.index.write_text("my notes")
    with pytest.raises(LabError, match="left as it is"):
        course.ingest(rebuild=True)
    assert course.index.read_text() == "my notes"
    assert not list(course.index.parent.glob("*.new*"))


def test_a_log_left_by_a_deleted_index_is_not_applied_to_the_new_one(course):
    with opened(course.index) as store:
        store.replace(remove=[("hedge", "2")])
        log = course.index.with_name("index.sqlite-wal").read_bytes()
    assert log
    course.index.unlink()
    course.index.with_name("index.sqlite-wal").write_bytes(log)
    course.ingest()
    check(course.index)
    assert len(course.ids("hedge")) == 3


# When the model fails


def test_a_document_the_model_fails_on_keeps_its_earlier_state(course):
    plain = course.embedder._vector

    def fail(content):
        if "poison" in content:
            raise RuntimeError("cannot read poison")
        return plain(content)

    course.embedder._vector = fail
    write(course.corpus, "hedge.md", text("hedge", "## Trim\n\nNo poison.\n\n## Height\n\nHigh.\n"))
    write(course.corpus, "pump.md", text("pump"))
    (course.folder / "mower.md").unlink()
    report = course.ingest()
    assert report.lines == ["1 added, 0 updated, 1 unchanged, 1 removed | chunks: +2 -1", "  added: documents/pump.md",
                            "  removed: documents/mower.md",
                            "  failed: documents/hedge.md: the embedding model failed on it (cannot read poison). "
                            "Its earlier state stays in the index."]
    assert course.found("nests.")[0] == ["hedge"] and course.found("High.")[0] == []
    check(course.index)
    course.embedder._vector = plain
    assert course.lines() == ["0 added, 1 updated, 2 unchanged, 0 removed | chunks: +2 -3",
                              "  updated: documents/hedge.md"]


@pytest.mark.parametrize("name, version", [("lawn.md", "2"), ("mower.md", "3")])
def test_a_renamed_or_renewed_document_the_model_fails_on_keeps_its_earlier_state(course, name, version):
    plain = course.embedder._vector

    def fail(content):
        if "poison" in content:
            raise RuntimeError("cannot read poison")
        return plain(content)

    course.embedder._vector = fail
    (course.folder / "mower.md").unlink()
    write(course.corpus, name, text("mower", "## Blade\n\nNo poison.\n", version=version))
    write(course.corpus, "pump.md", text("pump"))
    assert course.lines()[:2] == ["1 added, 0 updated, 2 unchanged, 0 removed | chunks: +2 -0",
                                  "  added: documents/pump.md"]
    assert course.found("sharpen")[0] == ["mower"]
    course.embedder._vector = plain
    assert course.lines()[0] == ("1 added, 0 updated, 3 unchanged, 1 removed | chunks: +1 -1" if name == "lawn.md" else
                                 "0 added, 1 updated, 3 unchanged, 0 removed | chunks: +1 -1")
    check(course.index)


@pytest.mark.parametrize("bad", [RuntimeError("no weights"), MemoryError(), KeyboardInterrupt(), "short", "nan"])
def test_a_model_that_fails_altogether_changes_nothing(course, bad):
    def fail(texts, **_):
        if isinstance(bad, BaseException):
            raise bad
        return np.zeros((len(texts), 8)) if bad == "short" else np.full((len(texts), 16), np.nan)

    course.embedder.embed = fail
    write(course.corpus, "pump.md", text("pump"))
    (course.folder / "hedge.md").unlink()
    before = state(course.index)
    with pytest.raises((LabError, MemoryError, KeyboardInterrupt)):
        course.ingest()
    assert state(course.index) == before


def test_more_chunks_than_a_batch(tmp_path, index, embedder):
    body = "".join(f"## Part {n}\n\nPart number {n} of the parts list.\n\n" for n in range(250))
    write(tmp_path, "parts.md", text("parts", body))
    seen = []
    report = ingest(tmp_path, index, embedder, progress=lambda *step: seen.append(step))
    assert report.line == "1 added, 0 updated, 0 unchanged, 0 removed | chunks: +250 -0"
    assert seen == [("embedding", 100, 250), ("embedding", 200, 250), ("embedding", 250, 250)]
    assert ingest(tmp_path, index, embedder).line == (
        "0 added, 0 updated, 1 unchanged, 0 removed | chunks: +0 -0")
    check(index)


# The same text twice, deletion, dates


def test_the_same_text_under_two_ids(course):
    write(course.corpus, "twin.md", text("twin", BLADE, title="The mower"))
    report = course.ingest()
    assert report.added == ("documents/twin.md",) and course.embedder.embedded == []  # the vector is there already
    assert course.found("sharpen") == [["mower", "twin"], ["mower", "twin"]]
    (course.folder / "mower.md").unlink()
    course.ingest()
    assert course.found("sharpen") == [["twin"], ["twin"]]
    (course.folder / "twin.md").unlink()
    course.ingest()
    assert course.found("sharpen")[0] == []


def test_retiring_a_version_deletes_nothing(course):
    ids = course.ids("mower")
    write(course.corpus, "mower.md", text("mower", BLADE, effective_to="2026-06-30"))
    assert course.lines()[0] == "0 added, 1 updated, 2 unchanged, 0 removed | chunks: +1 -1"
    assert course.ids("mower") == ids and course.embedder.embedded == []
    with opened(course.index) as store:
        def found(day):
            return [one for one, _ in store.keyword(["sharpen"], Filters(as_of=day), 5)]
        assert found("2026-06-30") == ids and found("2026-07-01") == []


def test_a_document_that_becomes_staff_text_is_closed_to_the_public_at_once(course):
    with opened(course.index) as reader:
        vector = course.embedder._vector("sharpen the blade")
        assert reader.keyword(["sharpen"], Filters(), 5) and len(reader.dense(vector, Filters(), 99)) == 6
        write(course.corpus, "mower.md", text("mower", BLADE, audience="staff"))
        course.ingest()
        assert not reader.keyword(["sharpen"], Filters(), 5) and len(reader.dense(vector, Filters(), 99)) == 5
        assert reader.keyword(["sharpen"], STAFF, 5) and len(reader.dense(vector, STAFF, 99)) == 6


def test_what_was_deleted_is_gone_from_the_bytes(course):
    """Also from where SQLite leaves copies when it moves rows: many documents, of many sizes, that come and go."""
    rng, live, number = np.random.default_rng(4), {}, 0
    for _ in range(20):
        gone = rng.permutation(sorted(live))[:rng.integers(0, 30)].tolist()
        for name in gone:
            (course.folder / f"{name}.md").unlink()
        for _ in range(rng.integers(5, 35)):
            number += 1
            name, word = f"d{number}", hashlib.sha256(str(number).encode()).hexdigest()
            body = f"{word} {'abc ' * rng.integers(1, 200)}".strip()
            write(course.corpus, f"{name}.md", text(name, body))
            vector = course.embedder._vector(f"The {name}\n{body}").tobytes()
            live[name] = word[8:40].encode(), vector  # FTS5 leaves out the beginning shared with the word before
        course.ingest()
        data = b"".join(path.read_bytes() for path in course.index.parent.glob("index.sqlite*"))
        assert [name for name in gone for trace in live.pop(name) if trace in data] == []
        assert all(trace in data for traces in live.values() for trace in traces)


def test_text_that_could_not_be_wiped_is_wiped_by_the_next_ingest(course, monkeypatch):
    monkeypatch.setattr("labsupport.pipeline.index_file.TIDY_SECONDS", 0.1)
    (course.folder / "hedge.md").unlink()
    with opened(course.index) as reader, reader.snapshot():
        reader.documents()
        report = course.ingest()
        assert "not yet wiped" in report.notes[0] and report.removed == ("documents/hedge.md",)
    assert course.lines() == ["0 added, 0 updated, 2 unchanged, 0 removed | chunks: +0 -0"]
    data = b"".join(path.read_bytes() for path in course.index.parent.glob("index.sqlite*"))
    assert b"Mind nests" not in data


def test_a_half_built_index_of_a_killed_rebuild_is_cleared_away(course):
    left = course.index.with_name("index.sqlite.new")
    left.write_bytes(course.index.read_bytes())
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"]
    assert not left.exists()


def test_versions_in_force_at_the_same_time_are_noted_at_each_ingest(course):
    for version, first, last in (("3", "2026-05-01", "2026-05-31"), ("4", "2026-06-01", "")):
        write(course.corpus, f"m{version}.md", text("mower", version=version, effective_from=first, effective_to=last))
    advice = "; end the older one with effective_to"
    expected = (f"mower versions 2 and 3 are both in force from 2026-05-01 to 2026-05-31{advice}",
                f"mower versions 2 and 4 are both in force from 2026-06-01 on, without end{advice}")
    assert course.ingest().notes == course.ingest().notes == expected
    write(course.corpus, "mower.md", text("mower", effective_to="2026-04-30"))
    assert course.ingest().notes == ()


# The fast path


def at_rest(course):
    """As if all files had been there for a while, and hashed by an ingest since."""
    memo = course.index.with_name("index.sqlite.files")
    later = time.time_ns() + 2 * AT_REST
    hashes = FileHashes(memo)
    for name, path in document_files(course.corpus).items():
        hashes.read(name, path)
    hashes._seen = {name: (stamp, later, digest) for name, (stamp, _, digest) in hashes._seen.items()}
    hashes._learned = True
    hashes.save()
    return memo


@pytest.fixture
def reads(monkeypatch):
    seen = []

    def read(self, name, path, plain=FileHashes.read):
        digest, data = plain(self, name, path)
        if data is not None:
            seen.append(name)
        return digest, data

    monkeypatch.setattr(FileHashes, "read", read)
    return seen


@pytest.mark.skipif(os.name != "posix", reason="where no change time is kept, every file is read")
def test_files_at_rest_are_not_read_again_unless_asked(course, reads):
    at_rest(course)
    reads.clear()
    course.ingest()
    assert reads == []
    course.ingest(verify=True)
    assert len(reads) == 3


def test_a_damaged_page_of_the_index_is_noticed_when_asked_and_a_rebuild_mends_it(course):
    path, sound = course.index, state(course.index)
    data = bytearray(path.read_bytes())
    data[8192:12288] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(LabError, match="is damaged .* Build it anew with: python -m labsupport ingest --rebuild"):
        course.ingest(verify=True)
    course.ingest(rebuild=True, verify=True)
    course.ingest(verify=True)
    assert state(path) == sound


def test_a_file_that_may_still_be_changing_is_read(course, reads):
    course.ingest()
    course.ingest()
    assert len(reads) == 6  # the test has just written them


@pytest.mark.skipif(os.name != "posix", reason="where no change time is kept, every file is read")
@pytest.mark.parametrize("how", ["write", "replace"])
def test_an_edit_of_the_same_size_with_its_time_set_back_is_seen(course, how):
    at_rest(course)
    path = course.folder / "hedge.md"
    status = path.stat()
    changed = path.read_bytes().replace(b"low", b"tall"[:3])
    target = path if how == "write" else path.with_name("hedge.tmp")
    target.write_bytes(changed)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    if how == "replace":
        target.replace(path)
    assert path.stat().st_mtime_ns == status.st_mtime_ns and path.stat().st_size == status.st_size
    assert course.ingest().updated == ("documents/hedge.md",)


@pytest.mark.parametrize("spoilt", [b"", b"{", b"[]", b'{"version": 2}', b'{"version": 1, "files": [1]}', b"\xff",
                                    b'{"version": 1, "files": {"documents/hedge.md": [[1], 2]}}'])
def test_a_spoilt_memo_is_as_good_as_none(course, spoilt):
    at_rest(course).write_bytes(spoilt)
    assert course.lines() == ["0 added, 0 updated, 3 unchanged, 0 removed | chunks: +0 -0"]


def test_the_memo_forgets_deleted_files(course):
    memo = at_rest(course)
    (course.folder / "hedge.md").unlink()
    course.ingest()
    assert "hedge" not in memo.read_text() and "mower" in memo.read_text()


# Light start


def test_an_ingest_with_nothing_to_do_loads_no_model(tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(REAL / "documents", corpus / "documents")
    from labsupport.pipeline.embedding import MiniLM

    class Quiet(MiniLM):
        def embed(self, texts, **_):
            return np.eye(1, 384, dtype=np.float32).repeat(len(texts), axis=0)

    ingest(corpus, tmp_path / "i.sqlite", Quiet())
    code = ("import sys; from labsupport.pipeline.updates import ingest; print(ingest(sys.argv[1], sys.argv[2]).line); "
            "print([name for name in ('torch', 'transformers', 'sentence_transformers', 'pandas', 'onnxruntime', "
            "'tokenizers') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code, str(corpus), str(tmp_path / "i.sqlite")], capture_output=True,
                          text=True, encoding="utf-8")
    assert done.stdout.splitlines() == [FIGURES["reports"]["second_ingest"], "[]"], done.stderr


def test_an_address_is_no_file(course):
    with pytest.raises(LabError, match="PostgresEngine"):
        ingest(course.corpus, "postgresql://nobody@localhost/none", course.embedder)


def test_an_index_in_a_folder_that_does_not_exist_yet(tmp_path, course):
    ingest(course.corpus, tmp_path / "new" / "index.sqlite", course.embedder)
    assert IndexFile(tmp_path / "new" / "index.sqlite").open().documents()
