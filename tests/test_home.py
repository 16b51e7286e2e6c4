"""Which workspace is the current one, also where current.txt does not say it."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import suppress

import pytest
from disk import tree

from labsupport.cli import run
from labsupport.lab import open_module, progress, snapshots
from labsupport.lab.answers import Answers
from labsupport.lab.home import Home
from labsupport.pipeline import LabError, folder

pytestmark = pytest.mark.usefixtures("closed_at_the_end")

# What a learner, an editor or a synchronised folder may do to current.txt, while the workspaces are there.
LOST = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(b"\0\xff\xfe not a name"),
    "another name": lambda file: file.write_text("ws-0042\n"),
    "outside": lambda file: file.write_text("../elsewhere\nws-0001/../../x\n"),
    "a folder": lambda file: (file.unlink(), (file / "in it").mkdir(parents=True)),
}


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


def test_a_current_that_cannot_be_written_leaves_nothing_behind(home, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("labsupport.lab.home.os.replace", refuse)
    with pytest.raises(LabError, match="A new workspace in .* cannot be made .*; mend that, or name another folder"):
        snapshots.restore("end-of-m03")
    assert [path.name for path in home.workspaces()] == ["ws-0001", "ws-0002"]
    assert sorted(path.name for path in home.folder.iterdir()) == [".lock", "current.txt", "ws-0001", "ws-0002"]
    with pytest.raises(LabError, match="The folder .* cannot be written .Permission denied.; mend that"):
        snapshots.undo()
    assert not (home.folder / "current.txt.new").exists()


@pytest.mark.parametrize("name", ["current.txt", "current.txt.new", ".lock"])
def test_a_folder_in_the_way_is_set_aside_with_all_that_is_in_it(name, home):
    (home.folder / name).unlink(missing_ok=True)
    (home.folder / name / "mine").mkdir(parents=True)
    (home.folder / f"{name}.aside-1").write_text("taken")
    assert snapshots.restore("end-of-m03").workspace == "ws-0003" and Home().current().name == "ws-0003"
    assert (home.folder / f"{name}.aside-2/mine").is_dir() and snapshots.undo().workspace == "ws-0002"


def test_a_folder_that_cannot_be_set_aside_is_named(home, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    LOST["a folder"](home.folder / "current.txt")
    monkeypatch.setattr(type(home.folder), "rename", lambda path, to: refuse() if path.name == "current.txt" else
                        os.rename(path, to) or to)
    with pytest.raises(LabError, match=r"/current.txt is a folder where a file of the lab belongs, and cannot be set "
                                       r"aside \(Permission denied\); move it away, then try again\.$"):
        snapshots.restore("end-of-m03")
    assert [path.name for path in home.workspaces()] == ["ws-0001", "ws-0002"]


@pytest.mark.parametrize("name", ["ws-0003", "ws-0003.unfinished"])
def test_a_file_with_the_name_of_a_workspace_is_left_alone(name, home):
    (home.folder / name).write_text("a note")
    assert snapshots.restore("end-of-m03").workspace == "ws-0004"
    assert (home.folder / name).read_text() == "a note" and snapshots.undo().workspace == "ws-0002"


FULL = "No space left on device"


def copy_fails(*_, **__):
    why = f"[Errno 28] {FULL}: '/course/a.csv' -> '/home/a.csv'"
    raise shutil.Error([("/course/a.csv", "/home/a.csv", why), ("/course/b.csv", "/home/b.csv", why)])


def test_a_full_disk_is_one_sentence(home, monkeypatch):
    monkeypatch.setattr(shutil, "copytree", copy_fails)
    mend = "mend that, or name another folder with the environment variable LAB_HOME."
    said = f"A new workspace in {home.folder.as_posix()} cannot be made ({FULL}); {mend}"
    with pytest.raises(LabError) as error:
        snapshots.restore("end-of-m03")
    assert str(error.value) == said
    assert snapshots.restore_many("end-of-m03", [home.folder])[0].fault == said
    monkeypatch.undo()
    monkeypatch.setenv("LAB_HOME", str(home.folder))

    def full(*_, **__):
        raise LabError("The index … cannot be used.") from sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(snapshots.Store, "replace", full)
    with pytest.raises(LabError) as error:
        snapshots.restore("end-of-m03")
    assert str(error.value) == said.replace(FULL, "database or disk is full")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 6 MB; only root can mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", place],
                                                   capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_on_a_full_disk_a_sound_workspace_is_not_called_unsound(small_disk, monkeypatch, capsys):
    monkeypatch.setenv("LAB_HOME", str(small_disk / "home"))
    snapshots.restore("end-of-m03")
    snapshots.restore("end-of-m03")
    before = sorted(path.name for path in (small_disk / "home").iterdir())
    with suppress(OSError), (small_disk / "filled").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    with pytest.raises(LabError, match="^Your workspace ws-0002 cannot be opened, as the disk of .* is full; delete"):
        open_module("04")
    with pytest.raises(LabError, match=rf"The folder .* cannot be written \({FULL}\); mend that"):
        snapshots.undo()
    with pytest.raises(LabError, match=rf"A new workspace in .* cannot be made \({FULL}\); mend that"):
        snapshots.restore("end-of-m03")
    assert sorted(path.name for path in (small_disk / "home").iterdir()) == before
    (small_disk / "filled").unlink()
    assert open_module("04").folder.name == "ws-0002"


def test_nothing_to_undo_makes_no_folder(tmp_path):
    with pytest.raises(LabError, match="There is nothing to undo"):
        snapshots.undo(Home(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_rename_waits_for_whoever_has_the_file_open(tmp_path, monkeypatch):
    """On Windows, where virus scanners look into new files for a moment."""
    refused, plain = [], os.replace

    def busy(source, target):
        if len(refused) < 3:
            refused.append(source)
            raise PermissionError(13, "in use")
        plain(source, target)

    new, old = tmp_path / "new", tmp_path / "old"
    new.write_text("2", encoding="utf-8")
    with monkeypatch.context() as windows:
        windows.setattr(os, "replace", busy)
        with pytest.raises(PermissionError):
            folder.move(new, old)  # elsewhere nobody is waited for
        windows.setattr(os, "name", "nt")
        folder.move(new, old)
    assert len(refused) == 3
    assert old.read_text(encoding="utf-8") == "2"
