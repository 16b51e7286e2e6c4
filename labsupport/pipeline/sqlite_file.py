"""One SQLite file as an index: its tables, how it is opened, and what SQLite's errors mean to a user."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from . import LabError

APPLICATION_ID = 0x47414C31  # marks our files: "GAL1"
FORMAT = 1  # of the tables; kept as SQLite's user_version
BUSY_SECONDS = 30
BUILD = "python -m labsupport ingest"
RECORD = "python -m labsupport record"
USUAL = {"--corpus": "corpus", "--index": "index.sqlite"}
BUILD_ANEW = f"{BUILD} --rebuild"


class Replaceable(LabError):
    """An index of ours that cannot be read, by age or damage: only a rebuild may take its place."""


SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    doc_id TEXT, version TEXT, title TEXT NOT NULL, doc_type TEXT NOT NULL, audience TEXT NOT NULL,
    language TEXT NOT NULL, effective_from TEXT NOT NULL, effective_to TEXT, owner TEXT NOT NULL,
    path TEXT NOT NULL, sha256 TEXT NOT NULL, chunks INTEGER NOT NULL,
    PRIMARY KEY (doc_id, version)) WITHOUT ROWID;
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, chunk_id TEXT AS (printf('%012x', id)), doc_id TEXT NOT NULL, version TEXT NOT NULL,
    seq INTEGER NOT NULL, "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, section TEXT, breadcrumb TEXT NOT NULL,
    parent TEXT, kind TEXT NOT NULL, content_kind TEXT NOT NULL, part INTEGER NOT NULL, parts INTEGER NOT NULL,
    section_start INTEGER NOT NULL, table_header TEXT NOT NULL, body TEXT NOT NULL,
    FOREIGN KEY (doc_id, version) REFERENCES documents ON DELETE CASCADE);
CREATE INDEX chunks_of_document ON chunks (doc_id, version);
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE, text_sha256 BLOB NOT NULL, vector BLOB NOT NULL);
CREATE INDEX vectors_by_text ON vectors (text_sha256);
CREATE VIEW passages AS SELECT id, title || char(10) ||
    CASE table_header WHEN '' THEN '' ELSE table_header || char(10) END || body AS text
    FROM chunks JOIN documents USING (doc_id, version);
CREATE VIRTUAL TABLE keywords USING fts5 (
    text, content='passages', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
"""


def mend_for(fault: str, corpus: Path | str, index: Path | str) -> str:
    """`fault`, its commands completed for the command line: with the corpus and the index it is about.

    As it stands where these are the defaults, and where a command names its index already, as that of a server does.
    """
    place = str(index) if "://" in str(index) else Path(index).as_posix()
    given = {"--corpus": Path(corpus).as_posix(), "--index": place}
    options = [
        f' {name} "{value}"' if " " in value else f" {name} {value}"
        for name, value in given.items() if value != USUAL[name]
    ]
    for command in (BUILD, RECORD):
        named = f"{command} --index" in fault
        fault = fault.replace(command, command + "".join(one for one in options if not (named and "--index" in one)))
    return fault


def _address(path: Path, options: str) -> str:
    """The file for SQLite, which takes no server in a URI: that of //server/share (Windows) goes into the path."""
    uri = path.absolute().as_uri()
    on_this_machine = uri.startswith("file:///")
    return f"{uri if on_this_machine else uri.replace('file:', 'file://', 1)}?{options}"


def look_at(path: Path) -> str:
    """"ours" or "none" (no file, or an empty one). Raises LabError for other files, which stay untouched.

    SQLite reads the mark, `immutable` so that it neither recovers nor locks anything. Reading it here would be worse:
    on POSIX, closing the file drops every lock this process holds on it (sqlite.org/howtocorrupt.html, 2.2).
    """
    shown = path.as_posix()
    try:
        if path.stat().st_size == 0:
            return "none"
        with closing(sqlite3.connect(_address(path, "mode=ro&immutable=1"), uri=True)) as connection:
            mark = connection.execute("PRAGMA application_id").fetchone()[0]
    except FileNotFoundError:
        return "none"
    except (OSError, sqlite3.OperationalError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LabError(f"The index {shown} cannot be read ({reason}). Mend that, or name another file with "
                       "--index.") from None
    except sqlite3.DatabaseError:
        mark = None
    if mark != APPLICATION_ID:
        raise LabError(f"{shown} is not an index of this course and was left as it is. Name another file with --index.")
    return "ours"


def _writable(folder: Path) -> bool:
    """Windows says yes of every folder, whatever its rights are: there we try."""
    if os.name == "posix":
        return os.access(folder, os.W_OK)
    probe = folder / f".probe-{os.getpid()}"  # not tempfile, which tries 10,000 names in such a folder
    with suppress(OSError):
        probe.touch()
        probe.unlink()
        return True
    return False


def frozen(path: Path) -> tuple[int, ...] | None:
    """For an index in a folder that we may not write and nobody is writing: size, time and number of the file.

    There SQLite has no place for its log and locks, so it reads the bare file, and we look whether that has changed.
    """
    if _writable(path.absolute().parent) or path.with_name(path.name + "-wal").exists():
        return None
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino
    return None


def connect(path: Path, create: bool = False) -> sqlite3.Connection:
    """A connection that waits its turn, keeps foreign keys and overwrites what it deletes."""
    address = _address(path, f"mode={'rwc' if create else 'rw'}")
    if not create and frozen(path):
        address += "&immutable=1"
    with sql_errors(path):
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None,
                                     check_same_thread=False)
        try:
            for pragma in ("foreign_keys = ON", "secure_delete = ON", "temp_store = MEMORY"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def sql_errors(path: Path) -> Iterator[None]:
    """What SQLite reports, as one sentence that says what to do."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise LabError(f"Two documents or passages claim the same id ({error}). Nothing was stored; give one of the "
                       "documents another version.") from error
    except sqlite3.DatabaseError as error:
        text, shown = str(error), path.as_posix()
        if "no such module: fts5" in text:
            raise LabError("This Python's SQLite was built without FTS5, the keyword index. Use a Python from "
                           "python.org or conda-forge; both have it.") from error
        if "malformed" in text or "not a database" in text:
            raise Replaceable(f"The index {shown} is damaged ({text}). Build it anew with: {BUILD_ANEW}") from error
        if "locked" in text:
            raise LabError(f"The index {shown} stayed busy for {BUSY_SECONDS} seconds. Try again when the other "
                           "program that uses it has finished.") from error
        raise LabError(f"The index {shown} cannot be used ({text}). Check the disk space and who may write to its "
                       "folder, then run the command again; what was stored is unchanged.") from error


def check_file(path: Path) -> None:
    """Read every page: SQLite's own check, and a count, for every document has its chunks, every chunk its vector.

    Raises LabError.
    """
    with sql_errors(path), closing(connect(path)) as connection:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError("malformed: " + " ".join(found.split()))
        counts = connection.execute(
            "SELECT (SELECT total(chunks) FROM documents), (SELECT count(*) FROM chunks), "
            "(SELECT count(*) FROM vectors), (SELECT count(*) FROM keywords)").fetchone()
    if len(set(counts)) != 1:
        raise LabError(f"The index {path.as_posix()} is incomplete: not every passage has its vector and its words. "
                       f"Build it anew with: {BUILD_ANEW}")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse tables that this program does not read."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > FORMAT:
        raise LabError(f"{path.as_posix()} was written by a newer version of this program (format {found}, this one "
                       f"reads {FORMAT}). Update the program, or name another file with --index.")
    if found < FORMAT:
        raise Replaceable(f"{path.as_posix()} has an older format ({found}, this program reads {FORMAT}). Build it "
                          f"anew with: {BUILD_ANEW}")
