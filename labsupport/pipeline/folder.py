"""The corpus folder as it is now: which documents it holds, and the SHA-256 of each file.

A file that was hashed before is not read again while its size, inode and times are the same, but only where that
cannot be fooled: the file system must keep a change time that no program can set (not so on Windows), and the file
must have been at rest for a while when it was hashed, as an edit within the same tick of the clock changes no time.
Git keeps its index by the same rule.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from . import LabError

AT_REST = 2_000_000_000  # nanoseconds, the coarsest tick of a file system in use
Stamp = tuple[int, int, int, int]  # size, modified, changed, inode


def document_files(corpus: Path) -> dict[str, str]:
    """Where the document files lie, by their path in the corpus ("documents/gift-cards.md"), sorted by it.

    A folder that cannot be listed raises LabError: leaving out what it holds would delete that from the index. So does
    none at all.
    """
    found, folders = {}, [("documents", os.path.join(corpus, "documents"))]
    for name, folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue  # .ipynb_checkpoints and the like hold copies that are nobody's documents
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((f"{name}/{entry.name}", entry.path))
                    elif entry.name.lower().endswith(".md") and not entry.is_dir():
                        found[f"{name}/{entry.name}"] = entry.path  # a dead link too: reading it names the fault
        except OSError as error:
            raise LabError(f"The folder {Path(folder).as_posix()} cannot be read ({error.strerror}).") from error
    return dict(sorted(found.items()))


class FileHashes:
    """SHA-256 of files, remembered in the file `memo` (None: nowhere). `verify`: read every byte all the same."""

    def __init__(self, memo: Path | None, verify: bool = False):
        self.memo = memo
        self._known = _load(memo) if memo else {}
        self._seen: dict[str, tuple[Stamp, int, str]] = {}
        self._learned = False
        self._trust = os.name == "posix" and not verify

    def read(self, name: str, path: str) -> tuple[str, bytes | None]:
        """The hash of the file, and its bytes if they had to be read. Raises OSError."""
        stamp = _stamp(os.stat(path))
        known = self._known.get(name)
        if self._trust and known and known[0] == stamp and _at_rest(stamp, known[1]):
            self._seen[name] = known
            return known[2], None
        now = time.time_ns()
        with open(path, "rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))
            data = file.read()
        self._seen[name] = stamp, now, hashlib.sha256(data).hexdigest()
        self._learned |= _at_rest(stamp, now)
        return self._seen[name][2], data

    def save(self) -> None:
        """Remember what was learned and forget files that are gone.

        Nothing depends on it, so a folder that cannot be written is no fault.
        """
        if self.memo is None or not (self._learned or self._known.keys() - self._seen.keys()):
            return
        mine = self.memo.with_name(f"{self.memo.name}.{os.getpid()}")
        with suppress(OSError):
            try:
                mine.write_text(json.dumps({"version": 1, "files": self._seen}), encoding="utf-8")
                os.replace(mine, self.memo)
            finally:
                mine.unlink(missing_ok=True)


def move(source: Path, target: Path) -> None:
    """os.replace. Windows refuses while somebody has one of the files open, as virus scanners and OneDrive do for a
    moment with every new file; so there we try for two seconds."""
    until = time.monotonic() + 2
    while True:
        try:
            return os.replace(source, target)
        except PermissionError:
            if os.name == "posix" or time.monotonic() > until:
                raise
            time.sleep(0.05)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _at_rest(stamp: Stamp, when: int) -> bool:
    return max(stamp[1], stamp[2]) + AT_REST < when


def _load(memo: Path) -> dict[str, tuple[Stamp, int, str]]:
    try:
        kept = json.loads(memo.read_text(encoding="utf-8"))
        if kept["version"] != 1:
            return {}
        return {name: (tuple(stamp), int(when), str(digest)) for name, (stamp, when, digest) in kept["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # absent or spoilt: the files are read
