"""Where a learner's workspaces lie, which of them is the current one, and how to go back.

LAB_HOME (by default `workspaces` in the course's folder) holds `ws-0001`, `ws-0002` … and `current.txt`: its first line
names the current workspace, the lines below it those that were current before, latest first. Where that file is lost,
the newest workspace is the current one. Workspaces are only ever added: to switch is to write one small text file, so
no open file is overwritten and there is a way back.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path

from filelock import FileLock, Timeout

import labsupport
from labsupport.pipeline import LabError
from labsupport.pipeline.folder import move

CURRENT = "current.txt"
WAIT_SECONDS = 120
REMEMBERED = 100
WORKSPACE = re.compile(r"ws-[0-9]{4,}")


def course_root() -> Path:
    """The folder that holds the course: corpus, notebooks and snapshots. Raises LabError where there is none."""
    places = [Path(labsupport.__file__).resolve().parents[1], Path.cwd(), *Path.cwd().parents]
    for place in places:
        if (place / "snapshots").is_dir() and (place / "notebooks").is_dir():
            return place
    raise LabError(
        "The course's folder was not found. Install the lab with `pip install -e .` in that folder, or work in it."
    )


def lab_home() -> Path:
    """LAB_HOME where it is set, else `workspaces` in the course's folder."""
    named = os.environ.get("LAB_HOME")
    return Path(named) if named else course_root() / "workspaces"


class Home:
    """The workspaces of one learner."""

    def __init__(self, folder: Path | str | None = None):
        self.folder = Path(folder) if folder else lab_home()

    def workspaces(self) -> list[Path]:
        """All workspaces, oldest first."""
        found = self.folder.glob("ws-*") if self.folder.is_dir() else ()
        return sorted(
            (path for path in found if path.is_dir() and WORKSPACE.fullmatch(path.name)),
            key=lambda path: int(path.name[3:]),
        )

    def current(self) -> Path | None:
        """The current workspace; None where there is none at all."""
        names = self._history()
        return self.folder / names[0] if names else None

    def lost(self) -> bool:
        """Is there a current workspace that current.txt does not name, because it is missing, spoilt or out of date?"""
        current = self.current()
        return current is not None and self._named()[:1] != [current.name]

    def former(self) -> Path | None:
        """Where `undo` leads: the latest earlier workspace that is still there."""
        names = self._earlier()
        return self.folder / names[0] if names else None

    def switch(self, name: str) -> None:
        """Make another workspace the current one. Nothing in any workspace changes."""
        self._write([name, *self._history()])

    def undo(self) -> Path | None:
        """Make the former workspace the current one again and return it; None: nothing to undo."""
        names = self._earlier()
        if not names:
            return None
        self._write(names)
        return self.folder / names[0]

    def add(self, fill: Callable[[Path], None]) -> Path:
        """A new workspace, filled by `fill(folder)` and made the current one. Call with the lock held.

        If that fails nothing is left of it.
        """
        before = self._history()  # read first: where current.txt is lost, the new folder would be the newest
        number = max(self._taken(), default=0) + 1
        folder = self.folder / f"ws-{number:04d}"
        made = unfinished = folder.with_name(folder.name + ".unfinished")
        try:
            if unfinished.exists():  # somebody pulled the plug
                shutil.rmtree(unfinished)
            unfinished.mkdir(parents=True)
            fill(unfinished)
            move(unfinished, folder)
            made = folder
            self._write([folder.name, *before])
        except BaseException as error:
            shutil.rmtree(made, ignore_errors=True)
            full = isinstance(error.__cause__, sqlite3.OperationalError) and "full" in str(error.__cause__)
            if not (isinstance(error, OSError) or full):
                raise
            raise LabError(
                f"A new workspace in {self.folder.as_posix()} cannot be made ({reason(error.__cause__ or error)}); "
                "mend that, or name another folder with the environment variable LAB_HOME."
            ) from error
        return folder

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One at a time: two notebooks opened together must not make two workspaces."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make_way(".lock")
            with FileLock(self.folder / ".lock", timeout=WAIT_SECONDS):
                yield
        except Timeout as error:
            raise LabError(
                f"Another program has been busy with {self.folder.as_posix()} for {WAIT_SECONDS} seconds; "
                "wait for it or end it, then try again."
            ) from error
        except OSError as error:
            raise LabError(
                f"The folder {self.folder.as_posix()} cannot be written ({reason(error)}); "
                "mend that, or name another folder with the environment variable LAB_HOME."
            ) from error

    def _history(self) -> list[str]:
        """The workspaces that are still there, as they were in use, latest first; all of them where nothing says it."""
        there = {path.name for path in self.workspaces()}
        names = [name for name, _ in groupby(name for name in self._named() if name in there)]
        return names or sorted(there, key=lambda name: int(name[3:]), reverse=True)

    def _earlier(self) -> list[str]:
        """What is left of the history after `undo`. If the current one was lost, the latest there is comes first."""
        return self._history()[0 if self.lost() else 1 :]

    def _named(self) -> list[str]:
        """What current.txt says."""
        try:
            lines = (self.folder / CURRENT).read_text(encoding="utf-8-sig").splitlines()  # Windows editors add a mark
        except (OSError, UnicodeDecodeError):
            return []
        return [line.strip() for line in lines if WORKSPACE.fullmatch(line.strip())]

    def _taken(self) -> list[int]:
        """Numbers that a new workspace cannot have: files of such names count, though they are no workspaces."""
        found = self.folder.glob("ws-*") if self.folder.is_dir() else ()
        names = [path.name if path.is_dir() else path.name.removesuffix(".unfinished") for path in found]
        return [int(name[3:]) for name in names if WORKSPACE.fullmatch(name)]

    def _write(self, names: list[str]) -> None:
        new = self.folder / f"{CURRENT}.new"
        self._make_way(new.name)
        self._make_way(CURRENT)
        try:
            new.write_text("\n".join(names[:REMEMBERED]) + "\n", encoding="utf-8", newline="\n")
            move(new, self.folder / CURRENT)
        except BaseException:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise

    def _make_way(self, name: str) -> None:
        """A folder that stands where a file of ours belongs is set aside, whatever is in it."""
        path, number = self.folder / name, 1
        if not path.is_dir():
            return
        while (aside := path.with_name(f"{name}.aside-{number}")).exists():
            number += 1
        try:
            path.rename(aside)
        except OSError as error:
            raise LabError(
                f"{path.as_posix()} is a folder where a file of the lab belongs, and cannot be set aside "
                f"({reason(error)}); move it away, then try again."
            ) from error


def reason(error: BaseException) -> str:
    """Why a file could not be read or written, in the system's words. `shutil` gives a list of all files: the first."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list) and error.args[0]:
        return re.sub(r"^\[\w+ -?\d+\] |: ['\"].*", "", str(error.args[0][0][-1]), flags=re.DOTALL)
    return getattr(error, "strerror", None) or str(error)
