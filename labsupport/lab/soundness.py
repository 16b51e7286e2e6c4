"""Is a workspace sound: is everything there, do documents and index agree, was the index made by today's parts?"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from pathlib import Path

from labsupport.lab.home import course_root
from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunker, make_chunker
from labsupport.pipeline.embedding import Embedder, load_embedder
from labsupport.pipeline.folder import document_files
from labsupport.pipeline.index import DocumentRow, check_identity
from labsupport.pipeline.sqlite_file import Replaceable, check_file
from labsupport.pipeline.store import Store

CORPUS, INDEX = "corpus", "index.sqlite"
DISK_FULL = "the disk is full, so its index cannot be opened."
ROOM = 1_000_000  # SQLite's own files beside an index that is only read take some 33,000 bytes


def course_parts() -> tuple[Chunker, Embedder]:
    """The course's own chunker and embedding model. Loads no weights."""
    embedder = load_embedder()
    return make_chunker("structure", embedder), embedder


def fault_of(workspace: Path) -> str | None:
    """What is wrong with a workspace, as one sentence; None: it is sound. DISK_FULL: nobody can tell."""
    if missing := missing_files(workspace / CORPUS):
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        return f"its corpus lacks {', '.join(missing[:3])}{more}."
    if not (workspace / INDEX).is_file():
        return "it has no index."
    try:
        return _fault(workspace / CORPUS, workspace / INDEX)
    except Replaceable:
        return "its index is damaged."
    except (LabError, OSError) as error:
        cause = error.__cause__
        if isinstance(cause, sqlite3.OperationalError) and shutil.disk_usage(workspace).free < ROOM:
            return DISK_FULL
        return str(error)


def missing_files(corpus: Path) -> list[str]:
    """What the course's corpus has beside its documents and this one has not: a module would fail where it is read."""
    course = course_root() / CORPUS
    files = (path.relative_to(course) for path in sorted(course.rglob("*")) if path.is_file())
    return [
        path.as_posix()
        for path in files
        if path.parts[0] != "documents" and not any(part.startswith(".") for part in path.parts)
        and not (corpus / path).is_file()
    ]


def index_fault(corpus: Path, index: Path) -> str | None:
    """Why this index is not the one that this folder gives with the course's parts; None: it is."""
    try:
        return _fault(corpus, index)
    except (LabError, OSError) as error:
        return str(error)


def _fault(corpus: Path, index: Path) -> str | None:
    chunker, embedder = course_parts()
    with Store(index) as store:
        check_identity(store.meta(), chunker=chunker, embedder=embedder)
        check_file(index)
        return disagreement(corpus, store.documents())


def disagreement(corpus: Path, rows: list[DocumentRow]) -> str | None:
    """Names the documents of the folder that the index does not hold as they are, and those it holds no more."""
    now = document_hashes(corpus)
    held = {row.path: row.sha256 for row in rows}
    kinds = {
        "not in the index": sorted(now.keys() - held.keys()),
        "changed since they were indexed": sorted(name for name in now.keys() & held.keys() if now[name] != held[name]),
        "gone from the folder": sorted(held.keys() - now.keys()),
    }
    parts = [
        f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''} ({kind})"
        for kind, names in kinds.items()
        if names
    ]
    return f"Documents and index do not agree: {'; '.join(parts)}." if parts else None


def document_hashes(corpus: Path) -> dict[str, str]:
    """SHA-256 of each document file by its path in the corpus."""
    return {name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for name, path in document_files(corpus).items()}
