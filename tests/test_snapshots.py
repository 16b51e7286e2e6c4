"""Snapshots: what the corpus gives, put in place from any state, refused when not whole, and always a way back."""

import difflib
import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from disk import remember_vectors, tree
from test_workspace import BROKEN

from labsupport.cli import run
from labsupport.lab import snapshots
from labsupport.lab.answers import Answers
from labsupport.lab.exercises import modules
from labsupport.lab.home import Home, course_root
from labsupport.lab.snapshot_build import EDITS, _lines, build, known_vectors, render
from labsupport.lab.snapshot_files import json_lines, load, names, snapshots_folder
from labsupport.lab.soundness import fault_of
from labsupport.lab.workspace import edit
from labsupport.pipeline import LabError
from labsupport.pipeline.embedding import MiniLM
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

FOLDER, CORPUS = snapshots_folder(), course_root() / "corpus"


@pytest.fixture
def folder(tmp_path):
    """The snapshots, to be damaged."""
    return shutil.copytree(FOLDER, tmp_path / "snapshots")


def vectors(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


def test_there_is_one_for_the_end_of_each_module():
    assert names() == [f"end-of-m{number:02d}" for number in range(1, 8)]
    assert snapshots.verify() == []


def without_vectors(manifest):
    """The manifest without what depends on the last bits of the vectors."""
    values = json.loads(manifest)
    files = {path: digest for path, digest in values["files"].items() if not path.endswith(".npy")}
    return values | {"files": files, "seal": ""}


@pytest.mark.model
def test_they_are_what_the_corpus_gives():
    """Another processor may round the last bit of a vector otherwise; all else is the same to the byte."""
    made, there = render(CORPUS), tree(FOLDER)
    assert made.keys() == {path for path in there if "/" in path}
    for path, data in made.items():
        if path.endswith("vectors.npy"):
            np.testing.assert_allclose(vectors(data), vectors(there[path]), atol=1e-5)
        elif path.endswith("manifest.json"):
            now, then = without_vectors(data), without_vectors(there[path])
            assert now == then
        else:
            assert data == there[path], f"{path} is not what the corpus gives; run: python -m labsupport snapshot build"


def test_the_same_corpus_gives_the_same_bytes_and_nothing_is_written_twice(folder, monkeypatch):
    remember_vectors(monkeypatch)
    assert render(CORPUS) == {path: data for path, data in tree(FOLDER).items() if "/" in path}
    assert build(CORPUS, folder, anew=True) == []
    (folder / "base/vectors.npy").unlink()
    (folder / "end-of-m02/stray.txt").write_text("?")
    assert build(CORPUS, folder) == ["base/vectors.npy", "end-of-m02/stray.txt"] and tree(folder) == tree(FOLDER)


def test_what_is_embedded_already_is_not_embedded_again(folder, tmp_path, monkeypatch):
    embedded = []

    def embed(self, texts, **_):
        embedded.extend(texts)
        return np.zeros((len(texts), 384), dtype=np.float32)

    monkeypatch.setattr(MiniLM, "embed", embed)
    assert build(CORPUS, folder) == [] and embedded == []
    corpus = shutil.copytree(CORPUS, tmp_path / "corpus")
    edit(corpus, "documents/gift-cards.md", "against a receipt", "for the receipt")
    build(corpus, folder)
    assert len(embedded) == 1 and "for the receipt" in embedded[0]
    (folder / "base/vectors.npy").write_bytes(b"spoilt")  # nothing of a snapshot that is not whole is taken over
    build(corpus, folder)
    assert len(embedded) > 180


def test_a_restored_index_is_the_index_that_ingest_makes(tmp_path, monkeypatch):
    remember_vectors(monkeypatch)
    ingest(CORPUS, tmp_path / "index.sqlite")
    done = snapshots.restore("end-of-m03")
    with Store(tmp_path / "index.sqlite") as ours, Store(done.home / done.workspace / "index.sqlite") as theirs:
        assert ours.meta() == theirs.meta() and ours.documents() == theirs.documents()
        assert ours.all_chunks() == theirs.all_chunks()
        ids = [chunk.chunk_id for chunk in ours.all_chunks()]
        for one, vector in ours.vectors(ids).items():
            assert (theirs.vectors([one])[one] == vector).all()
        for sql in ("SELECT * FROM vectors ORDER BY id", "SELECT rowid, text FROM keywords ORDER BY rowid"):
            assert ours._rows(sql) == theirs._rows(sql)
    assert ingest(done.home / done.workspace / "corpus", done.home / done.workspace / "index.sqlite").line == (
        "0 added, 0 updated, 36 unchanged, 0 removed | chunks: +0 -0")


def test_restoring_needs_no_model(lab_home):
    code = ("import sys; from labsupport.lab import snapshots; snapshots.restore('end-of-m03'); "
            "print([name for name in ('torch', 'sentence_transformers', 'onnxruntime') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_module_6_leaves_its_edit():
    before, after = load("end-of-m05"), load("end-of-m06")
    other = {path for path in before.files | after.files if before.files.get(path) != after.files.get(path)}
    assert other == {"documents/gift-cards.md"}
    done = snapshots.restore("end-of-m06")
    with Store(done.home / done.workspace / "index.sqlite") as store:
        ids = [chunk.chunk_id for chunk in store.chunks("gift-cards")]
        assert ids == ["8c4bc4299042", "76f2d13b502f", "6c36ce3a91a6"]
        assert len(store.all_chunks()) == 185


def test_exercises_up_to_the_module_are_solved():
    for name in names():
        number = int(name[-2:])
        kept = load(name).answers["exercises"]
        assert set(kept) == {one.id for module in modules() if int(module.number) <= number for one in module.exercises}
        assert all(one["passed"] and one["by"] == "snapshot" for one in kept.values())


STATES = {
    "nothing there": lambda home: None,
    "current names no workspace": lambda home: (home.mkdir(), (home / "current.txt").write_text("ws-0042\n")),
    "interrupted": lambda home: (home / "ws-0002.unfinished/corpus").mkdir(parents=True),
}


@pytest.mark.parametrize("state", [*STATES, *BROKEN])
def test_from_any_state_and_back_byte_for_byte(state, lab_home):
    if state in STATES:
        STATES[state](lab_home)
    else:
        done = snapshots.restore("end-of-m05")
        BROKEN[state](lab_home / done.workspace)
        Answers(lab_home / done.workspace).record("predictions", "7.p1", guess=1)
    mine = Home().current()
    before = tree(mine) if mine else None
    done = snapshots.restore("end-of-m03")
    new = lab_home / done.workspace
    assert fault_of(new) is None and Home().current() == new and new != mine
    if mine is None:
        with pytest.raises(LabError, match="nothing to undo"):
            snapshots.undo()
        assert Home().current() == new
        return
    assert Answers(new).read()["predictions"] == {"7.p1": {"guess": 1}}
    new_before = tree(new)
    assert snapshots.undo().workspace == mine.name and Home().current() == mine
    assert tree(mine) == before and tree(new) == new_before
    assert snapshots.restore(new.name).workspace == new.name and Home().current() == new and tree(new) == new_before
    assert snapshots.undo().workspace == mine.name


def test_undo_goes_back_step_by_step(lab_home):
    for name in ("end-of-m01", "end-of-m02", "end-of-m03"):
        snapshots.restore(name)
    assert [snapshots.undo().workspace for _ in range(2)] == ["ws-0002", "ws-0001"]
    with pytest.raises(LabError, match="There is nothing to undo"):
        snapshots.undo()
    assert [path.name for path in Home().workspaces()] == ["ws-0001", "ws-0002", "ws-0003"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_what_an_instructor_restores_as_root_belongs_to_the_learner(tmp_path):
    (tmp_path / "ada").mkdir()
    os.chown(tmp_path / "ada", 4321, 4321)
    (done,) = snapshots.restore_many("end-of-m03", [tmp_path / "ada/workspaces"])
    made = [done.home, *done.home.rglob("*")]
    assert len(made) > 40 and {path.stat().st_uid for path in made} == {4321}
    for go in (lambda home: snapshots.restore("end-of-m04", home), snapshots.undo,
               lambda home: snapshots.restore("ws-0002", home)):
        go(Home(done.home))
        assert {path.stat().st_uid for path in done.home.rglob("*")} == {4321}


def test_many_learners_at_once(tmp_path, folder):
    homes = [tmp_path / "class" / name / "workspaces" for name in ("ada", "bo", "cy")]
    snapshots.restore("end-of-m01", Home(homes[0]))
    homes[1].parent.mkdir(parents=True)
    homes[1].write_text("a file where the folder should be")
    done = snapshots.restore_many("end-of-m03", homes)
    assert [bool(one.fault) for one in done] == [False, True, False] and done[0].former == "ws-0001"
    assert all(fault_of(one.home / one.workspace) is None for one in (done[0], done[2]))
    assert snapshots.homes_below(tmp_path / "class") == [homes[0], homes[2]]
    with pytest.raises(LabError, match="No learner's workspaces"):
        snapshots.homes_below(tmp_path / "none")
    (folder / "base/chunks.jsonl").write_bytes(b"")
    before = tree(tmp_path / "class")
    with pytest.raises(LabError):
        snapshots.restore_many("end-of-m03", homes, folder)
    assert tree(tmp_path / "class") == before


def test_the_files_can_be_read_by_people():
    for path, data in tree(FOLDER).items():
        if not path.endswith(".npy"):
            text = data.decode("utf-8")
            assert text.endswith("\n") and "\r" not in text and "\\u00" not in text
    first = json_lines((FOLDER / "base/chunks.jsonl").read_bytes())[0]
    assert {"chunk_id", "doc_id", "version", "section", "body"} <= first.keys()
    assert sum(len(data) for data in tree(FOLDER).values()) < 2_000_000


def test_a_corpus_without_the_page_that_a_module_edits(folder, tmp_path, monkeypatch, capsys):
    """A course on other documents: the edit is left out, which is said, and every snapshot can be restored."""
    monkeypatch.setattr(MiniLM, "embed", lambda self, texts, **_: np.zeros((len(texts), 384), dtype=np.float32))
    monkeypatch.setattr("labsupport.lab.snapshot_build.snapshots_folder", lambda: folder)
    corpus = tmp_path / "own"
    (corpus / "documents").mkdir(parents=True)
    shutil.copy(CORPUS / "documents/warranty-policy.md", corpus / "documents")
    assert run(["snapshot", "build", "--corpus", str(corpus)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        f"Left out: the edit of module 6 in documents/gift-cards.md, a page that {corpus.as_posix()} has not.")
    assert snapshots.verify(folder, corpus) == [] and not (folder / "end-of-m06/corpus.jsonl").exists()
    done = snapshots.restore("end-of-m07", folder=folder)  # course.yaml and inventory.csv are the course's
    assert fault_of(done.home / done.workspace) is None and load("end-of-m07", folder).manifest["documents"] == 1


def test_a_corpus_that_no_snapshot_can_be_made_of_is_one_sentence(folder, tmp_path, capsys):
    corpus = shutil.copytree(CORPUS, tmp_path / "corpus")
    page = corpus / "documents/gift-cards.md"
    page.write_text(page.read_text(encoding="utf-8").replace("in your account", "there"), encoding="utf-8")
    said = ("^Module 6 changes 'in your account' in documents/gift-cards.md, which must hold it exactly once, not 0 "
            "times; mend the page, or EDITS in .*snapshot_build.py.$")
    with pytest.raises(LabError, match=said):
        render(corpus, known_vectors(FOLDER))
    (tmp_path / "none/documents").mkdir(parents=True)
    with pytest.raises(LabError, match="^There are no documents in .*/none/documents; put some there"):
        render(tmp_path / "none")


def test_a_changed_word_is_a_short_line_in_a_diff(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(MiniLM, "embed", lambda self, texts, **_: np.zeros((len(texts), 384), dtype=np.float32))
    corpus = shutil.copytree(CORPUS, tmp_path / "corpus")
    edit(corpus, "documents/gift-cards.md", "in your account", "in your own account")
    monkeypatch.setitem(EDITS, 6, [("documents/gift-cards.md", "in your own account", "in your Larkfield account")])
    build(corpus, folder)
    for name, most in (("base/corpus.jsonl", 2), ("base/chunks.jsonl", 8)):
        before, after = ((path / name).read_text(encoding="utf-8").splitlines() for path in (FOLDER, folder))
        changed = [line[2:] for line in difflib.ndiff(before, after) if line[0] in "+-"]
        assert any("in your own account" in line for line in changed) and len(changed) <= most
        assert max(map(len, changed)) < 200, changed


def test_any_text_is_read_as_it_was_written():
    texts = ["", "\n", "a", "a\n\nb\n", "\r\nb\u2028c\x85 \"\\", '{"path": "x"}']
    rows = [{"path": f"documents/{number}.md", "body": text} for number, text in enumerate(texts)]
    assert json_lines(_lines(rows)) == rows


def test_the_command_line(lab_home, tmp_path, capsys):
    def said(*words):
        code = run(["snapshot", *map(str, words)])
        out = capsys.readouterr()
        return code, (out.out or out.err).rstrip("\n")

    assert said("restore", "end-of-m03") == (0, "end-of-m03 is now the workspace ws-0001")
    assert said("restore", "end-of-m04") == (
        0, "end-of-m04 is now the workspace ws-0002; ws-0001 is kept, `snapshot undo` goes back to it")
    assert said("undo")[1].startswith("ws-0001 is the current workspace again; ws-0002 is kept")
    code, listed = said("list")
    assert listed.splitlines()[5] == "end-of-m06  36 documents, 185 chunks | changed: documents/gift-cards.md"
    assert listed.splitlines()[-1] == "workspaces: ws-0001 (current), ws-0002" and len(listed.splitlines()) == 8
    assert len(json.loads(said("list", "--json")[1])["snapshots"]) == 7
    assert said("verify") == (0, "7 snapshots, each file as it was made.")
    ada, bo, bad = (tmp_path / "class" / name for name in ("ada", "bo", "bad"))
    assert said("restore", "end-of-m03", "--into", ada, bo)[1].splitlines() == [
        f"{one.as_posix()}: end-of-m03 is now the workspace ws-0001" for one in (ada, bo)]
    code, text = said("restore", "end-of-m04", "--all", tmp_path / "class")
    assert code == 0 and text.count("is now the workspace ws-0002; ws-0001 is kept") == 2
    bad.write_text("no folder")
    code, text = said("restore", "end-of-m03", "--into", bad, "--json")
    assert code == 1 and "cannot be written" in json.loads(text)[0]["fault"]
    for words in (["restore", "end-of-m09"], ["restore", "end-of-m03", "ada"], ["restore"], ["undo"], ["nonsense"]):
        code, text = said(*words)
        assert code == 2 and len(text.splitlines()) == 1, words
