"""Opening modules: from the learner's own workspace, from a snapshot, from the course; and never losing anything."""

import json
import re
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
from disk import remember_vectors, tree
from fakes import FakeEmbedder

from labsupport.lab import answers, blank, open_module, progress, show_source, show_text, snapshots, workspace
from labsupport.lab.answers import Answers
from labsupport.lab.home import Home
from labsupport.lab.soundness import fault_of
from labsupport.lab.source import say
from labsupport.pipeline import LabError

pytestmark = pytest.mark.usefixtures("closed_at_the_end")


def test_a_first_start_opens_from_the_snapshot_before(lab_home, capsys):
    lab = open_module("04")
    assert lab.say == "Module 4 opens from the snapshot end-of-m03 (workspace ws-0001)."
    assert capsys.readouterr().out == lab.say + "\n"
    assert (lab.corpus, lab.index) == (lab_home / "ws-0001/corpus", lab_home / "ws-0001/index.sqlite")
    assert len(lab.store.documents()) == 36 and len(lab.store.all_chunks()) == 185
    assert (lab.filters.as_of, lab.filters.audience) == ("2026-10-09", "staff")
    assert lab.question("Q30").text.startswith("How long is the warranty on the pump")
    assert lab.ingest().line == "0 added, 0 updated, 36 unchanged, 0 removed | chunks: +0 -0"


def test_the_next_module_opens_from_the_same_workspace(capsys):
    open_module("04")
    capsys.readouterr()
    assert open_module(5).folder.name == "ws-0001"
    assert capsys.readouterr().out == "Module 5 opens from your own workspace (ws-0001).\n"


def test_module_0_opens_from_the_course_for_the_learner_to_index(lab_home, monkeypatch, capsys):
    remember_vectors(monkeypatch)
    lab = open_module("00")
    assert capsys.readouterr().out == "Module 0 opens from the course's own documents (workspace ws-0001).\n"
    there = {path.name for path in lab.corpus.iterdir()}
    assert there >= {"documents", "screens", "questions.csv", "inventory.csv"} and not lab.index.exists()
    lab = open_module("00")  # run again from the top, not indexed yet
    assert lab.folder == lab_home / "ws-0001"
    assert lab.ingest().line == "36 added, 0 updated, 0 unchanged, 0 removed | chunks: +185 -0"
    assert len(lab.store.all_chunks()) == 185 and open_module("01").folder == lab.folder


def test_module_1_opens_from_the_course_and_its_index(monkeypatch, capsys):
    remember_vectors(monkeypatch)
    lab = open_module("01")
    assert "Module 1 opens from the course's own documents (workspace ws-0001)." in capsys.readouterr().out
    assert fault_of(lab.folder) is None and len(lab.store.all_chunks()) == 185
    with lab.copy() as copy:
        assert fault_of(copy.folder) is None


def break_index(folder):
    (folder / "index.sqlite").write_bytes(b"SQLite format 3\0 and then something else")


def cut_index(folder):
    data = (folder / "index.sqlite").read_bytes()
    (folder / "index.sqlite").write_bytes(data[: len(data) // 2])


def zero_a_page(folder):
    data = bytearray((folder / "index.sqlite").read_bytes())
    data[8192:12288] = bytes(4096)
    (folder / "index.sqlite").write_bytes(data)


BROKEN = {
    "index damaged": break_index,
    "index cut short": cut_index,
    "a page of zeros": zero_a_page,
    "index gone": lambda folder: (folder / "index.sqlite").unlink(),
    "document deleted": lambda folder: (folder / "corpus/documents/gift-cards.md").unlink(),
    "document changed": lambda folder: (folder / "corpus/documents/gift-cards.md").write_text("half of an exer"),
    "document added": lambda folder: (folder / "corpus/documents/mine.md").write_text("---\n---\nMine"),
    "questions gone": lambda folder: (folder / "corpus/questions.csv").unlink(),
    "defaults gone": lambda folder: (folder / "corpus/course.yaml").unlink(),
    "recordings gone": lambda folder: (folder / "corpus/recordings").rename(folder / "elsewhere"),
    "corpus gone": lambda folder: (folder / "corpus").rename(folder / "elsewhere"),
    "answers damaged": lambda folder: (folder / "answers.json").write_text('{"exercises": {"4.1'),
}


@pytest.mark.parametrize("damage", [name for name in BROKEN if name != "answers damaged"])
def test_a_workspace_that_is_not_sound_is_kept_and_another_opened(damage, lab_home, capsys):
    first = open_module("04")
    first.close()
    BROKEN[damage](first.folder)
    before = tree(first.folder)
    lab = open_module("04")
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "Module 4 opens from the snapshot end-of-m03 (workspace ws-0002)."
    assert said[2].startswith("Your workspace ws-0001 is kept as it is, but no module can open from it: ")
    assert len(said) == 3 and len(lab.store.all_chunks()) == 185
    lab.close()
    kept = {path: data for path, data in tree(first.folder).items() if "-shm" not in path and "-wal" not in path}
    assert kept == before


def test_a_missing_file_is_named_and_other_files_are_welcome():
    folder = open_module("04").folder
    (folder / "corpus/notes.txt").write_text("mine")
    assert fault_of(folder) is None
    (folder / "corpus/questions.csv").unlink()
    assert fault_of(folder) == "its corpus lacks questions.csv."
    BROKEN["recordings gone"](folder)
    assert re.fullmatch(r"its corpus lacks questions.csv, recordings/.*, recordings/.* and 2 more\.", fault_of(folder))
    assert open_module("05").folder != folder


def test_module_0_does_not_open_without_the_questions(monkeypatch, capsys):
    folder = open_module("00").folder
    (folder / "corpus/questions.csv").unlink()
    assert open_module("00").folder != folder
    assert "no module can open from it: its corpus lacks questions.csv." in " ".join(capsys.readouterr().out.split())


def test_a_course_of_ones_own_may_lack_what_ours_has(tmp_path, monkeypatch):
    """Only what the course's corpus has is asked for."""
    course = tmp_path / "course"
    shutil.copytree(snapshots.course_root() / "corpus", course / "corpus")
    for name in ("course.yaml", "inventory.csv"):
        (course / "corpus" / name).unlink()
    shutil.rmtree(course / "corpus/recordings")
    folder = open_module("04").folder
    monkeypatch.setattr("labsupport.lab.soundness.course_root", lambda: course)
    BROKEN["defaults gone"](folder)
    BROKEN["recordings gone"](folder)
    assert fault_of(folder) is None


def make_newer(folder):
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")


def make_foreign(folder):
    (folder / "index.sqlite").unlink()
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        connection.execute("CREATE TABLE notes (text)")


OTHER_INDEX = {
    "damaged": (zero_a_page, "its index is damaged."),
    "an empty file": (lambda folder: (folder / "index.sqlite").write_bytes(b""), "No index at {index}."),
    "a text": (lambda folder: (folder / "index.sqlite").write_text("notes " * 999), "{index} is not an index of this "
               "course and was left as it is."),
    "a foreign database": (make_foreign, "{index} is not an index of this course and was left as it is."),
    "a newer format": (make_newer, "{index} was written by a newer version of this program (format 99, this one reads "
                       "1)."),
    "another model": (lambda folder: workspace.ingest(folder / "corpus", folder / "index.sqlite", FakeEmbedder(),
                                                      rebuild=True), "The index was built with another setting: "),
}


@pytest.mark.parametrize("kind", OTHER_INDEX)
def test_what_is_said_of_an_index_is_no_advice_for_the_command_line(kind, lab_home, capsys):
    """`--index` and `ingest` would lead to another index than the learner's; the module has opened all the same."""
    first = open_module("04")
    first.close()
    change, expected = OTHER_INDEX[kind]
    change(first.folder)
    capsys.readouterr()
    assert open_module("04").folder.name == "ws-0002"
    said = capsys.readouterr().out.splitlines()
    start = "Your workspace ws-0001 is kept as it is, but no module can open from it: "
    assert len(said) == 2 and said[1].startswith(start + expected.format(index=first.index.as_posix()))
    assert " --" not in said[1] and "python -m" not in said[1] and re.search(r"[^.;]\.$", said[1])


def test_an_index_of_another_model_is_not_sound(lab_home):
    folder = open_module("04").folder
    workspace.current().close()
    workspace.ingest(folder / "corpus", folder / "index.sqlite", FakeEmbedder(), rebuild=True)
    assert "embedding model all-MiniLM-L6-v2" not in fault_of(folder).split(", now")[0]
    assert "another setting" in fault_of(folder)


def test_other_documents_than_the_module_starts_with_are_named(capsys):
    lab = open_module("06")
    lab.edit("documents/gift-cards.md", "in your account", "in your Larkfield account")
    lab.edit("documents/gift-cards.md", "in your account", "in your Larkfield account")  # done already: nothing happens
    lab.close()
    snapshots.restore("end-of-m06")
    capsys.readouterr()
    open_module("06")
    assert capsys.readouterr().out.splitlines()[1] == (
        "Your documents are not those it starts with (documents/gift-cards.md), so results may differ. To start with "
        'those: open_module("06", fresh=True). Your workspace is kept.')
    open_module("07")
    assert capsys.readouterr().out == f"Module 7 opens from your own workspace ({workspace.current().folder.name}).\n"


def test_an_edit_needs_a_text_that_stands_once():
    lab = open_module("06")
    before = tree(lab.corpus)
    with pytest.raises(LabError, match="holds 'card' [0-9]+ times"):
        lab.edit("documents/gift-cards.md", "card", "token")
    with pytest.raises(LabError, match="holds 'no such words' 0 times"):
        lab.edit("documents/gift-cards.md", "no such words", "token")
    with pytest.raises(LabError, match="cannot be read"):
        lab.edit("documents/none.md", "a", "b")
    assert tree(lab.corpus) == before


def test_a_practice_copy_is_fresh_each_time_and_leaves_the_workspace_alone():
    lab = open_module("06")
    before = tree(lab.corpus)
    copy = lab.copy()
    (copy.corpus / "documents/staff-discount-and-perks.md").unlink()
    assert copy.ingest().line == "0 added, 0 updated, 35 unchanged, 1 removed | chunks: +0 -2"
    assert len(copy.store.documents()) == 35 and len(lab.store.documents()) == 36 and tree(lab.corpus) == before
    copy.close()
    again = lab.copy()
    assert len(again.store.documents()) == 36 and fault_of(again.folder) is None
    again.close()
    (lab.corpus / "documents/staff-discount-and-perks.md").unlink()
    lab.ingest()
    own = lab.copy(own=True)
    assert len(own.store.documents()) == 35 and fault_of(own.folder) is None
    own.close()


def test_answers_come_along_to_a_new_workspace(lab_home):
    first = open_module("04")
    first.answers.record("exercises", "4.1", passed=True, answer="mine", by="learner")
    first.answers.record("predictions", "4.p1", guess=3, seen=True)
    lab = open_module("05", fresh=True)
    kept = lab.answers.read()
    assert lab.folder.name == "ws-0002" and kept["exercises"]["4.1"]["answer"] == "mine"
    assert kept["exercises"]["4.2"]["by"] == "snapshot" and kept["predictions"] == {"4.p1": {"guess": 3, "seen": True}}


def test_unreadable_answers_are_set_aside_not_overwritten(tmp_path):
    (tmp_path / "answers.json").write_text("{ not json")
    mine = Answers(tmp_path)
    assert mine.read() == {"exercises": {}, "predictions": {}, "knowledge": {}}
    mine.record("knowledge", "4.k1", choice="b", right=True)
    assert (tmp_path / "answers-unreadable-1.json").read_text() == "{ not json"
    assert mine.read()["knowledge"] == {"4.k1": {"choice": "b", "right": True}}


def test_two_notebooks_may_answer_at_the_same_time(tmp_path):
    def many(module):
        for number in range(20):
            Answers(tmp_path).record("exercises", f"{module}.{number}", passed=True)

    threads = [threading.Thread(target=many, args=(module,)) for module in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Answers(tmp_path).read()["exercises"]) == 80
    assert json.loads((tmp_path / answers.FILE).read_text(encoding="utf-8"))


def test_two_notebooks_opened_together_share_one_workspace(lab_home):
    made = []
    threads = [threading.Thread(target=lambda: made.append(open_module("03").folder)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [lab_home / "ws-0001"] * 2


@pytest.mark.parametrize("text", ["", "ws-0009\n", "../elsewhere\n", "\0\xff", "ws-0001/../../x\n"])
def test_a_current_that_leads_nowhere_is_no_workspace(text, lab_home):
    lab_home.mkdir(parents=True)
    (lab_home / "current.txt").write_bytes(text.encode("latin-1"))
    assert Home().current() is None
    assert open_module("04").folder == lab_home / "ws-0001"


def test_a_restore_that_was_interrupted_leaves_nothing_in_the_way(lab_home):
    (lab_home / "ws-0001.unfinished/corpus").mkdir(parents=True)
    assert open_module("04").folder == lab_home / "ws-0001" and not (lab_home / "ws-0001.unfinished").exists()


@pytest.mark.parametrize("name", ["08", "8", "-1", "four", "", None, 4.5, "m99"])
def test_an_unknown_module_is_refused(name, lab_home):
    with pytest.raises(LabError, match="There is no module .*; the course has 00 to 07"):
        open_module(name)
    assert not lab_home.exists()


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file, no folder")
    monkeypatch.setenv("LAB_HOME", str(tmp_path / "file/home"))
    with pytest.raises(LabError, match="cannot be written .*LAB_HOME"):
        open_module("04")


def test_progress_tells_answers_of_a_snapshot_apart():
    lab = open_module("05")
    table = progress()
    row = next(row for row in table.rows if row[0].startswith("04"))
    count = row[1].split()[0]
    assert row[1] == f"{count} of {count} ({count} from a snapshot)" and row[2].startswith("0 of") and table.note
    lab.answers.record("exercises", "4.1", passed=True, answer="1", by="learner")
    assert f"{count} of {count} ({int(count) - 1} from a snapshot)" in repr(progress())
    assert "<caption>Your progress</caption>" in table._repr_html_() and 'scope="row"' in table._repr_html_()


def test_show_source_shows_the_code_as_code():
    shown = show_source(blank.holds_blank)
    assert repr(shown).startswith("def holds_blank(value: object")
    assert shown._repr_markdown_().startswith("```python\ndef ") and repr(shown).startswith("def ")
    text = show_text("a < b", "costs $5")
    assert repr(text) == "a < b\n\ncosts $5" and "a &lt; b" in text._repr_html_()
    assert "mathjax_ignore" in text._repr_html_()  # or JupyterLab reads $5 … $10 as a formula


def test_long_lines_break_between_words(capsys):
    say("9.1 fail: " + "half-mown lawn " * 12 + "\n" + "x" * 120)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:-1])) <= 90 and lines[-1] == "x" * 120
    assert all(line.startswith("    half-mown") or line.startswith("    lawn") for line in lines[1:-1])


@pytest.mark.model
def test_asks_as_the_asker_of_a_question_would():
    lab = open_module("04")
    asked = lab.ask("Q51", k=3)
    assert (asked.found.qid, asked.found.filters.audience, asked.found.filters.as_of) == ("Q51", "staff", "2026-10-09")
    assert asked.checked.grounded and "20% off" in asked.answer.answer
    asked = lab.ask("Q51", k=3, audience="public")
    assert all(chunk.audience == "public" for chunk in asked.found.context.kept)
    assert lab.ask("Do gift cards expire?", as_of="2026-12-01").found.filters.as_of == "2026-12-01"
