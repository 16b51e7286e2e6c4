"""The index file as a whole: one writer at a time, a new index put in the place of the old, deleted text wiped.

Beside `index.sqlite` lie, now and then, `.lock` and `.writer` (who is writing), `.new` (an index being built) and
`.files` (what ingest remembers of the folder). All may be deleted when no ingest is running.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from . import LabError
from .folder import move
from .index import Entry, Notify
from .sqlite_file import Replaceable, check_file, check_format, connect, look_at, sql_errors
from .store import Store

WAIT_SECONDS = 600  # for another writer
TIDY_SECONDS = 2  # for readers of an older state, when the deleted text is wiped


class IndexFile:
    """A SQLite index at `path`, there already or not."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.memo = self._beside(".files")

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    def open(self) -> Store | None:
        """The index, or None where there is none yet."""
        return None if look_at(self.path) == "none" else Store(self.path)

    def check(self) -> None:
        """Read every page of the file. Raises LabError where it is damaged."""
        if look_at(self.path) != "none":
            check_file(self.path)

    @contextmanager
    def writing(self, notify: Notify) -> Iterator[None]:
        """One writer at a time. Who has to wait says so, and for whom.

        The lock is the operating system's: it ends with its process, however that ends. Raises LabError when the
        folder cannot be written, or after ten minutes.
        """
        lock = FileLock(self._beside(".lock"))
        writer = self._beside(".writer")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._beside(".lock").touch()  # a lock that cannot be made would look like one that another run holds
            self._wait(lock, writer, notify)
        except OSError as error:
            folder = self.path.absolute().parent.as_posix()
            raise LabError(f"Nothing changed in the index. The folder {folder} cannot be written "
                           f"({error.strerror or error}). Mend that, or name another file with --index.") from error
        try:
            with suppress(OSError):
                writer.write_text(str(os.getpid()), encoding="utf-8")
            yield
        finally:
            with suppress(OSError):
                writer.unlink()
            lock.release()

    def _wait(self, lock: FileLock, writer: Path, notify: Notify) -> None:
        until = time.monotonic() + WAIT_SECONDS
        said = None
        while True:
            try:
                return lock.acquire(timeout=0.5 if said else 0, poll_interval=0.05)
            except Timeout:
                by = f"Another ingest is running ({_holder(writer)})"
            if time.monotonic() > until:
                raise LabError(f"Nothing changed in the index. {by} and did not finish in {WAIT_SECONDS // 60} "
                               "minutes. Wait for it or end it, then run ingest again.")
            if by != said:
                said = by
                notify(f"{by}; waiting for it to finish", 0, 0)

    def rebuild(self, add: Sequence[Entry], meta: dict[str, str]) -> None:
        """Build a new index beside the old one and put it in its place in one transaction.

        SQLite copies the pages: who is reading sees the old index to the end of the read, and an interruption leaves
        the old index. Where there was no index, the file is renamed.
        """
        new = self._beside(".new")
        try:
            self._clear()
            first = look_at(self.path) == "none"
            with Store(new, create=True) as index:
                index.replace(add=add, meta=meta | ({} if first else {"untidy": "1"}))
            if first:
                self._flush(new)
                for ending in ("-wal", "-shm", "-journal"):  # of a file since deleted: SQLite would apply them to this
                    self._beside(ending).unlink(missing_ok=True)
                move(new, self.path)
                return
            with sql_errors(self.path), closing(connect(new)) as source, closing(connect(self.path)) as target:
                with suppress(Replaceable):
                    check_format(target, self.path)
                source.backup(target)
        except OSError as error:  # on Windows, a file that another program has open cannot be deleted or renamed
            raise LabError(f"Nothing changed in the index. {(error.filename or self.path)} cannot be replaced "
                           f"({error.strerror or error}). Close what has it open, then run ingest again.") from error
        finally:
            with suppress(OSError):  # or the next ingest does it
                self._clear()

    def _flush(self, new: Path) -> None:
        """Bring what is still in the log into the file. Closing does so too, but does not say when the disk is full."""
        with sql_errors(new), closing(connect(new)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {int(TIDY_SECONDS * 1000)}")
            if not _empty_log(connection):
                raise LabError(f"Nothing changed in the index. Another program has {new.as_posix()} open; end it, then "
                               "run ingest again.")

    def _clear(self) -> None:
        for ending in (".new", ".new-wal", ".new-shm", ".new-journal"):
            self._beside(ending).unlink(missing_ok=True)

    def untidy(self, index: Store) -> bool:
        return index.untidy() or self._beside(".new").exists()

    def tidy(self) -> list[str]:
        """Wipe what was deleted from the bytes of the file and its log. Gives a note when that has to wait.

        SQLite overwrites deleted rows, but not the copies it leaves in free space when it moves rows between pages;
        so the file is written anew, and the log of changes emptied.
        """
        try:
            self._clear()
            with closing(connect(self.path)) as connection:
                connection.execute(f"PRAGMA busy_timeout = {int(TIDY_SECONDS * 1000)}")
                connection.execute("VACUUM")
                if _empty_log(connection):
                    connection.execute("DELETE FROM meta WHERE key = 'untidy'")
                    _empty_log(connection)
                    return []
                reason = "another process is reading an older state"
        except (sqlite3.Error, OSError, LabError) as error:
            reason = str(error)
        return [f"deleted text is no longer found, but not yet wiped from the file ({reason}); the next ingest does it"]


def _empty_log(connection: sqlite3.Connection) -> bool:
    return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def _holder(writer: Path) -> str:
    with suppress(OSError):
        if pid := writer.read_text(encoding="utf-8").strip():
            return f"process {pid}"
    return "another process"
