"""Which workspace is the current one, also where current.txt does not say it."""

import shutil

import pytest
from disk import tree

from labsupport.cli import run
from labsupport.lab import open_module, progress, snapshots, workspace
from labsupport.lab.answers import Answers
from labsupport.lab.home import Home
from labsupport.pipeline import LabError

# What a learner, an editor or a synchronised folder may do to current.txt, while the workspaces are there.
LOST = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(b"\0\xff\xfe not a name"),
    "another name": lambda file: file.write_text("ws-0042\n"),
    "outside": lambda file: file.write_text("../elsewhere\nws-0001/../../x\n"),
}


@pytest.fixture(autouse=True)
def close():
    yield
    if workspace.current():
        workspace.current().close()


@pytest.fixture
def home(lab_home):
    """Two workspaces, the newest one with an answer of the learner's."""
    snapshots.restore("end-of-m01")
    done = snapshots.restore("end-of-m02")
    Answers(lab_home / done.workspace).record("predictions", "2.p1", guess=7)
    return Home()


@pytest.mark.parametrize("damage", LOST)
def test_where_current_is_lost_the_newest_counts_as_the_former_one(damage, home, capsys):
    LOST[damage](home.folder / "current.txt")
    before = {name: tree(home.folder / name) for name in ("ws-0001", "ws-0002")}
    assert run(["snapshot", "restore", "end-of-m03"]) == 0
    assert capsys.readouterr().out == (
        "end-of-m03 is now the workspace ws-0003; ws-0002 is kept, `snapshot undo` goes back to it\n")
    assert Answers(home.folder / "ws-0003").read()["predictions"] == {"2.p1": {"guess": 7}}
    assert [snapshots.undo().workspace for _ in range(2)] == ["ws-0002", "ws-0001"]
    with pytest.raises(LabError, match="There is nothing to undo: no workspace before ws-0001 was in use in "):
        snapshots.undo()
    assert {name: tree(home.folder / name) for name in before} == before


@pytest.mark.parametrize("damage", LOST)
def test_where_current_is_lost_undo_finds_the_newest_again(damage, home, capsys):
    LOST[damage](home.folder / "current.txt")
    assert home.lost() and home.current() == home.former() == home.folder / "ws-0002"
    assert run(["snapshot", "undo"]) == 0
    assert capsys.readouterr().out == "ws-0002 is the current workspace again\n"
    assert not home.lost() and snapshots.undo().workspace == "ws-0001"


@pytest.mark.parametrize("damage", LOST)
def test_where_current_is_lost_a_module_opens_from_the_newest_and_says_so(damage, home, capsys):
    LOST[damage](home.folder / "current.txt")
    assert progress().rows[2][2] == "1 of 3"
    assert open_module("03").folder.name == "ws-0002"
    assert capsys.readouterr().out.splitlines() == [
        "Module 3 opens from your own workspace (ws-0002).",
        "It is the latest one there is; current.txt did not say which was in use."]
    open_module("03")
    assert capsys.readouterr().out == "Module 3 opens from your own workspace (ws-0002).\n"
    assert snapshots.undo().workspace == "ws-0001"


def test_where_the_current_one_was_deleted_the_one_before_it_is_current(home):
    shutil.rmtree(snapshots.restore("end-of-m03").home / "ws-0003")
    assert home.lost() and home.current().name == "ws-0002"
    assert snapshots.undo().workspace == "ws-0002" and snapshots.undo().workspace == "ws-0001"


def test_one_deleted_in_the_middle_is_passed_over(home):
    snapshots.restore("end-of-m03")
    snapshots.restore("ws-0002")
    shutil.rmtree(home.folder / "ws-0003")
    assert not home.lost() and snapshots.undo().workspace == "ws-0001"


def test_any_kept_workspace_can_be_named_where_current_is_lost(home):
    (home.folder / "current.txt").unlink()
    done = snapshots.restore("ws-0001")
    assert (done.workspace, done.former) == ("ws-0001", "ws-0002") and snapshots.undo().workspace == "ws-0002"


def test_a_byte_order_mark_in_current_is_no_loss(home):
    (home.folder / "current.txt").write_text("ws-0001\r\nws-0002\r\n", encoding="utf-8-sig", newline="")
    assert home.current().name == "ws-0001" and home.former().name == "ws-0002" and not home.lost()


def test_the_command_for_all_learners_finds_those_whose_current_is_lost(home, tmp_path):
    shutil.copytree(home.folder, tmp_path / "class/ada")
    (tmp_path / "class/ada/current.txt").unlink()
    assert snapshots.homes_below(tmp_path / "class") == [tmp_path / "class/ada"]


def test_a_current_that_cannot_be_written_leaves_nothing_behind(home):
    (home.folder / "current.txt").unlink()
    (home.folder / "current.txt").mkdir()
    with pytest.raises(LabError, match="A new workspace in .* cannot be made .*; mend that, or name another folder"):
        snapshots.restore("end-of-m03")
    assert [path.name for path in home.workspaces()] == ["ws-0001", "ws-0002"]
    assert sorted(path.name for path in home.folder.glob("ws-*")) == ["ws-0001", "ws-0002"]


def test_nothing_to_undo_makes_no_folder(tmp_path):
    with pytest.raises(LabError, match="There is nothing to undo"):
        snapshots.undo(Home(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
