"""Where a learner's workspaces lie, which of them is the current one, and how to go back.

LAB_HOME (by default `workspaces` in the course's folder) holds `ws-0001`, `ws-0002` … and `current.txt`: its first line
names the current workspace, the lines below it those that were current before, latest first. Workspaces are only ever
added: to switch is to write one small text file, so no open file is overwritten and there is a way back.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

import labsupport
from labsupport.pipeline import LabError

CURRENT = "current.txt"
WAIT_SECONDS = 120
REMEMBERED = 100
_NAME = re.compile(r"ws-[0-9]{4,}")


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
            (path for path in found if path.is_dir() and _NAME.fullmatch(path.name)),
            key=lambda path: int(path.name[3:]),
        )

    def current(self) -> Path | None:
        """The current workspace, or None where there is none (or its folder is gone)."""
        names = self._history()
        return self._folder_of(names[0]) if names else None

    def former(self) -> Path | None:
        """Where `undo` leads: the latest earlier workspace that is still there."""
        return next(filter(None, map(self._folder_of, self._history()[1:])), None)

    def switch(self, name: str) -> None:
        """Make another workspace the current one. Nothing in any workspace changes."""
        self._write([name, *self._history()])

    def undo(self) -> Path | None:
        """Make the former workspace the current one again and return the one that was left; None: nothing to undo."""
        names = self._history()
        for place, name in enumerate(names[1:], 1):
            if self._folder_of(name):
                self._write(names[place:])
                return self.folder / names[0]
        return None

    def add(self, fill: Callable[[Path], None]) -> Path:
        """A new workspace, filled by `fill(folder)`; if that fails nothing is left of it. Call with the lock held."""
        number = max([int(path.name[3:]) for path in self.workspaces()], default=0) + 1
        folder = self.folder / f"ws-{number:04d}"
        unfinished = folder.with_name(folder.name + ".unfinished")
        try:
            if unfinished.exists():  # somebody pulled the plug
                shutil.rmtree(unfinished)
            unfinished.mkdir(parents=True)
            fill(unfinished)
            unfinished.rename(folder)
        except OSError as error:
            raise LabError(
                f"A new workspace in {self.folder.as_posix()} cannot be made ({error.strerror or error}). "
                "Mend that, or name another folder with the environment variable LAB_HOME."
            ) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return folder

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One at a time: two notebooks opened together must not make two workspaces."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / ".lock", timeout=WAIT_SECONDS):
                yield
        except Timeout as error:
            raise LabError(
                f"Another program has been busy with {self.folder.as_posix()} for {WAIT_SECONDS} seconds. "
                "Wait for it or end it, then try again."
            ) from error
        except OSError as error:
            raise LabError(
                f"The folder {self.folder.as_posix()} cannot be written ({error.strerror or error}). "
                "Mend that, or name another folder with the environment variable LAB_HOME."
            ) from error

    def _history(self) -> list[str]:
        try:
            lines = (self.folder / CURRENT).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        return [line.strip() for line in lines if _NAME.fullmatch(line.strip())]

    def _folder_of(self, name: str) -> Path | None:
        folder = self.folder / name
        return folder if folder.is_dir() else None

    def _write(self, names: list[str]) -> None:
        new = self.folder / f"{CURRENT}.new"
        new.write_text("\n".join(names[:REMEMBERED]) + "\n", encoding="utf-8", newline="\n")
        os.replace(new, self.folder / CURRENT)
