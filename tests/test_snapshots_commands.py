"""`snapshot restore` and `undo` as a learner and an instructor type them, from every state a workspace can be in."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from disk import tree
from test_home import LOST
from test_workspace import BROKEN

from labsupport.cli import run
from labsupport.lab import check, open_module, snapshots, workspace
from labsupport.lab.answers import Answers
from labsupport.lab.home import Home, course_root
from labsupport.lab.soundness import fault_of

pytestmark = pytest.mark.usefixtures("closed_at_the_end")


@pytest.fixture
def said(capsys):
    """Runs a `snapshot` command; gives its exit code and what it printed."""

    def call(*words):
        capsys.readouterr()
        code = run(["snapshot", *map(str, words)])
        out, err = capsys.readouterr()
        notes = [line for line in err.splitlines() if line.startswith(("Not taken over from ", "new: "))]
        err = "".join(line for line in err.splitlines(keepends=True) if line.rstrip("\n") not in notes)
        assert not (out and err)
        call.notes = notes
        return code, (out + err).rstrip("\n")

    return call


HALF = {"answer": "x", "by": "learner", "passed": False}
STATES = {
    "sound": lambda folder: None,
    **BROKEN,
    "half an exercise": lambda folder: Answers(folder).record("exercises", "3.2", **HALF),
    "a half-finished edit": lambda folder: (folder / "corpus/documents/gift-cards.md").write_text("---\ntitle: "),
    **{f"current {name}": lambda folder, damage=damage: damage(folder.parent / "current.txt")
       for name, damage in LOST.items()},
}


@pytest.mark.parametrize("state", STATES)
def test_from_any_state_to_module_4_and_back_byte_for_byte(state, lab_home, said, capsys):
    lab = open_module("03")
    lab.answers.record("predictions", "3.p1", guess=4, seen=False)
    lab.close()
    STATES[state](lab.folder)
    before = tree(lab.folder)
    assert said("restore", "end-of-m03") == (
        0, "end-of-m03 is now the workspace ws-0002; ws-0001 is kept, `snapshot undo` goes back to it")
    lab = open_module("04")
    assert capsys.readouterr().out == "Module 4 opens from your own workspace (ws-0002).\n"
    assert fault_of(lab.folder) is None and len(lab.store.all_chunks()) == 185
    kept = lab.answers.read()
    assert ("3.p1" in kept["predictions"]) == (state != "answers damaged")
    assert all(kept["exercises"][f"3.{number}"]["passed"] for number in range(1, 6))
    assert kept["exercises"]["3.2"].get("attempt") == ("x" if state == "half an exercise" else None)
    lab.close()
    assert said("undo") == (
        0, "ws-0001 is the current workspace again; ws-0002 is kept, `snapshot restore ws-0002` goes back to it")
    assert tree(lab_home / "ws-0001") == before and Home().current().name == "ws-0001"


def test_from_no_workspace_at_all(lab_home, said, capsys):
    assert said("restore", "end-of-m03") == (0, "end-of-m03 is now the workspace ws-0001")
    assert open_module("04").folder == lab_home / "ws-0001"
    assert said("undo") == (
        2, f"There is nothing to undo: no workspace before ws-0001 was in use in {lab_home.as_posix()}; "
           "`python -m labsupport snapshot list` names what there is.")


def test_an_exercise_tried_in_the_notebook_and_solved_by_the_snapshot(said):
    open_module("03")
    check("3.2", lambda scores: sorted(scores))
    workspace.current().close()
    said("restore", "end-of-m03")
    kept = open_module("04").answers.read()["exercises"]["3.2"]
    assert (kept["by"], kept["passed"]) == ("snapshot", True)
    assert kept["attempt"] == 'check("3.2", lambda scores: sorted(scores))'


def test_the_workspace_in_use_is_in_use_already(lab_home, said):
    said("restore", "end-of-m01")
    said("restore", "end-of-m02")
    before = tree(lab_home)
    assert said("restore", "ws-0002") == (0, "ws-0002 is the current workspace already; nothing was changed")
    assert json.loads(said("restore", "ws-0002", "--json")[1])[0]["already"] and tree(lab_home) == before
    assert said("restore", "ws-0001") == (
        0, "ws-0001 is the current workspace again; ws-0002 is kept, `snapshot undo` goes back to it")
    assert said("undo")[1].startswith("ws-0002 is the current workspace again; ws-0001 is kept")


def test_a_workspace_that_is_not_there_is_refused_naming_those_that_are(lab_home, said):
    where = lab_home.as_posix()
    assert said("restore", "ws-0002") == (2, f"There is no workspace ws-0002 in {where}; there are none yet, so name a "
                                             "snapshot such as end-of-m03.")
    assert not lab_home.exists()
    said("restore", "end-of-m01")
    assert said("restore", "ws-0002") == (2, f"There is no workspace ws-0002 in {where}; there are: ws-0001.")


def test_a_folder_that_had_no_workspaces_is_named(tmp_path, said):
    ada, typo = (tmp_path / "class" / name for name in ("ada", "adda"))
    snapshots.restore("end-of-m01", Home(ada))
    code, text = said("restore", "end-of-m03", "--into", ada, typo)
    assert code == 0 and len(text.splitlines()) == 2
    assert said.notes == [f"new: {typo.as_posix()} had no workspaces"]
    code, text = said("restore", "end-of-m03", "--into", tmp_path / "class/bo", "--json")
    assert json.loads(text)[0]["note"].startswith("new: ") and len(said.notes) == 1
    said("restore", "ws-0001", "--into", ada)
    assert said.notes == []


def test_the_guides_loop_shows_every_learner_that_all_finds(tmp_path):
    for place in ("class/ada", "class/bo/lab/workspaces"):
        snapshots.restore("end-of-m03", Home(tmp_path / place))
    guide = (course_root() / "docs/instructors.md").read_text(encoding="utf-8")
    code = re.search(r"## How far is everybody.*?python -c \"\n(.*?)\n\"\n```", guide, re.DOTALL).group(1)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    shown = [line for line in done.stdout.splitlines() if line.startswith(("class", "03 "))]
    assert [Path(line) for line in shown[::2]] == [Path("class/ada"), Path("class/bo/lab/workspaces")]
    assert all("5 of 5 (5 from a snapshot)" in line for line in shown[1::2]) and len(shown) == 4


def test_a_kept_workspace_for_many_learners(tmp_path, said):
    ada, bo, typo = (tmp_path / "class" / name for name in ("ada", "bo", "typo"))
    for home in (ada, ada, bo):
        snapshots.restore("end-of-m01", Home(home))
    code, text = said("restore", "ws-0001", "--into", ada, bo, typo)
    assert code == 1 and text.splitlines() == [
        f"{ada.as_posix()}: ws-0001 is the current workspace again; ws-0002 is kept, `snapshot undo` goes back to it",
        f"{bo.as_posix()}: ws-0001 is the current workspace already; nothing was changed",
        f"{typo.as_posix()}: There is no workspace ws-0001 in {typo.as_posix()}; there are none yet, so name a "
        "snapshot such as end-of-m03."]
    assert not typo.exists() and Home(ada).current().name == "ws-0001"
    code, text = said("restore", "ws-0002", "--all", tmp_path / "class")
    assert code == 1 and text.splitlines()[0].startswith(f"{ada.as_posix()}: ws-0002 is the current workspace again")
    assert text.splitlines()[1].endswith(f"There is no workspace ws-0002 in {bo.as_posix()}; there are: ws-0001.")
