"""Where a deleted document can still be found: six places, looked at one by one.

A sync can clear four of them: tables, keyword index with vectors, and (through the generation check) the memory of
running processes follow the folder. Recorded answers and the inventory are for people to mend.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import LabError
from .corpus import read_inventory
from .folder import document_files
from .index import Filters
from .recordings import read_all
from .store import Store

if TYPE_CHECKING:
    from .chunking import Chunk
    from .running import RunningProcess

STAFF = Filters(audience="staff")


@dataclass(frozen=True)
class Trace:
    """A document version as it was in the index, to look for later."""

    doc_id: str
    version: str
    path: str
    chunks: tuple[Chunk, ...]

    @property
    def ids(self) -> set[str]:
        return {chunk.chunk_id for chunk in self.chunks}


@dataclass(frozen=True)
class Place:
    """One of the six places. `found` None: there is nothing to look at."""

    name: str
    found: bool | None
    detail: str


def trace(index: Path | str, doc_id: str, version: str | None = None) -> Trace:
    """What to look for, taken from the index before the document is deleted; the newest version by default."""
    with Store(index) as store:
        rows = [row for row in store.documents() if row.doc_id == doc_id and version in (None, row.version)]
        if not rows:
            raise LabError(f"No document {doc_id}{f' version {version}' if version else ''} in the index; choose one "
                           "that `info` lists.")
        return Trace(*rows[-1].key, rows[-1].path, tuple(store.chunks(*rows[-1].key)))


def six_places(sought: Trace, corpus: Path | str, index: Path | str,
               process: RunningProcess | None = None) -> list[Place]:
    """The folder, the tables, keyword index and vectors, a running process, recorded answers, the inventory."""
    corpus = Path(corpus)
    with Store(index) as store, store.snapshot():
        rows = [row for row in store.documents() if row.key == (sought.doc_id, sought.version)]
        stored = store.get(sorted(sought.ids))
        vectors = store.vectors(sorted(sought.ids))
        by_word = {one for chunk in sought.chunks for one, _ in store.keyword(_words(chunk), STAFF, 10**6)} & sought.ids
        any_vector = next(iter(store.vectors([chunk.chunk_id for chunk in store.all_chunks()[:1]]).values()), None)
    places = [
        _folder(sought, corpus),
        Place("documents and chunks tables", bool(rows or stored),
              f"{_several(len(rows), 'document')}, {_several(len(stored), 'chunk')}"),
        Place("keyword index and stored vectors", bool(by_word or vectors),
              f"{_several(len(by_word), 'chunk')} by words, {_several(len(vectors), 'vector')}")]
    if process is None or any_vector is None:
        places.append(Place("memory of a running process", None, "no process to ask"))
    else:
        held = process.holds(sought.ids, any_vector)
        places.append(Place("memory of a running process", held > 0,
                            f"process {process.pid} finds {_several(held, 'chunk')}"))
    return [*places, _recorded(sought, corpus), _inventory(sought, corpus)]


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _words(chunk: Chunk) -> Sequence[str]:
    return list(dict.fromkeys(re.findall(r"\w+", chunk.body.casefold())))


def _folder(sought: Trace, corpus: Path) -> Place:
    there = sought.path in document_files(corpus)
    return Place("the folder", there, sought.path if there else "no file")


def _recorded(sought: Trace, corpus: Path) -> Place:
    recordings, _ = read_all(corpus / "recordings")
    if not recordings:
        return Place("recorded answers", None, "no answers are recorded")
    citing = sum(any(check.id in sought.ids for check in recording.checks) for recording in recordings)
    return Place("recorded answers", citing > 0, f"{citing} of {len(recordings)} cite it; `audit` names them")


def _inventory(sought: Trace, corpus: Path) -> Place:
    if not (corpus / "inventory.csv").is_file():
        return Place("inventory.csv", None, "no inventory")
    listed = any((row.doc_id, row.version) == (sought.doc_id, sought.version) for row in read_inventory(corpus))
    return Place("inventory.csv", listed, "lists it until a person takes the row out" if listed else "does not list it")
