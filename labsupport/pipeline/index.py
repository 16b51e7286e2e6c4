"""What the course needs of an index, whoever keeps it: the protocol, the filters, and the refusal to mix models.

SQLite in store.py is the embedded default. Anything else that keeps this protocol and passes the same tests will do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from . import LabError
from .corpus import AUDIENCES, DOC_TYPES, LANGUAGES, Document
from .front_matter import is_date

if TYPE_CHECKING:
    import numpy as np

    from .chunking import Chunk, Chunker
    from .embedding import Embedder

Key = tuple[str, str]  # (doc_id, version): what makes a document version one of its kind
Notify = Callable[[str, int, int], None]  # what is being done, how much of it is done, of how many (0: not countable)


@dataclass(frozen=True)
class Filters:
    """What a search may return. `as_of` None: whatever the date; `audience` staff sees public documents as well.

    Raises LabError for a date that is no ISO date and for an audience, language or type the corpus does not know.
    """

    as_of: str | None = None
    audience: str = "public"
    language: str | None = None
    doc_type: str | None = None

    def __post_init__(self) -> None:
        if self.as_of is not None and not (isinstance(self.as_of, str) and is_date(self.as_of)):
            raise LabError(f"No such date: {self.as_of!r}; write it as YYYY-MM-DD, for example 2026-10-09.")
        choices = {"audience": AUDIENCES, "language": (None, *LANGUAGES), "doc_type": (None, *DOC_TYPES)}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                known = ", ".join(value for value in allowed if value)
                raise LabError(f"No {name.replace('_', ' ')} {getattr(self, name)!r}; use one of: {known}.")


@dataclass(frozen=True)
class DocumentRow:
    """A document version as the index holds it. `sha256` is that of the file's bytes, `chunks` the number of chunks."""

    doc_id: str
    version: str
    title: str
    doc_type: str
    audience: str
    language: str
    effective_from: str
    effective_to: str | None
    owner: str
    path: str
    sha256: str
    chunks: int

    @property
    def key(self) -> Key:
        return self.doc_id, self.version

    @property
    def label(self) -> str:
        return f"{self.doc_id} v{self.version}"


@dataclass(frozen=True)
class Entry:
    """One document version ready to be indexed. `vectors`: float32, shape (chunks, dimensions), rows of length 1."""

    document: Document
    chunks: Sequence[Chunk]
    vectors: np.ndarray


class Index(Protocol):
    """An open index. Everything read inside one `snapshot()` is of one state, whatever others write meanwhile."""

    check_generation: bool  # False: vectors in memory are never refreshed (a lesson, not an option)

    def meta(self) -> dict[str, str]: ...  # chunker, chunker_label, embedder, fingerprint, dimensions, format
    def documents(self) -> list[DocumentRow]: ...  # by document id and version
    def chunks(self, doc_id: str, version: str | None = None) -> list[Chunk]: ...  # in the order of the text
    def all_chunks(self, filters: Filters | None = None) -> list[Chunk]: ...
    def get(self, ids: Sequence[str]) -> list[Chunk]: ...  # in the order asked; unknown ids are left out
    def keyword(self, terms: Sequence[str], filters: Filters, limit: int) -> list[tuple[str, float]]: ...
    def dense(self, vector: np.ndarray, filters: Filters, limit: int) -> list[tuple[str, float]]: ...
    def vectors(self, ids: Sequence[str]) -> dict[str, np.ndarray]: ...
    def vectors_of_texts(self, hashes: Sequence[str]) -> dict[str, np.ndarray]: ...  # by text_hash: nothing twice
    def generation(self) -> Hashable: ...  # differs after every change, by whichever process
    def snapshot(self) -> AbstractContextManager[Hashable]: ...  # gives the generation all its reads belong to
    def replace(self, remove: Sequence[Key], add: Sequence[Entry], paths: dict[Key, str] | None = None,
                meta: dict[str, str] | None = None) -> None: ...  # one transaction; `paths`: where others now lie
    def close(self) -> None: ...


class Engine(Protocol):
    """Where an index lives, before it is there and while it is replaced. `ingest` needs no more than this."""

    memo: Path | None  # a file beside the index for what `ingest` remembers of the folder; None: nowhere

    def open(self) -> Index | None: ...  # None: there is none yet
    def check(self) -> None: ...  # read all of it; LabError where it is damaged
    def writing(self, notify: Notify) -> AbstractContextManager[None]: ...  # one writer at a time; the others wait
    def rebuild(self, add: Sequence[Entry], meta: dict[str, str]) -> None: ...  # a new index takes the old one's place
    def untidy(self, index: Index) -> bool: ...  # is there something that `tidy` has to wipe?
    def tidy(self) -> list[str]: ...  # wipes what was deleted from the store's own files; says what it could not


def identity(chunker: Chunker, embedder: Embedder) -> dict[str, str]:
    """What an index is made with, as its meta table keeps it."""
    return {
        "chunker": chunker.name, "chunker_label": chunker.label, "embedder": embedder.name,
        "fingerprint": embedder.fingerprint, "dimensions": str(embedder.dimensions),
    }


def check_identity(meta: dict[str, str], *, chunker: Chunker | None = None, embedder: Embedder | None = None) -> None:
    """Refuse to go on with another chunker or embedding model than the index was built with.

    Two models give numbers that cannot be compared, also where their vectors have the same length, and nothing would
    show it but bad results. Raises LabError with the stored and the current value.
    """
    now = {}
    if chunker is not None:
        now["chunker"] = ("chunker", chunker.name)
    if embedder is not None:
        now["fingerprint"] = ("embedding model", embedder.fingerprint)
        now["dimensions"] = ("length of the vectors", str(embedder.dimensions))
    different = [f"{what} {meta.get(key)}, now {value}" for key, (what, value) in now.items() if meta.get(key) != value]
    if different:
        raise LabError(f"The index was built with another setting: {'; '.join(different)}. Go back to that setting, or "
                       "build the index anew with: python -m labsupport ingest --rebuild")


def check_chunker(meta: dict[str, str], embedder: Embedder, chunker: Chunker | None = None) -> None:
    """For a search, which cuts nothing itself: would `chunker`, or today's of the same label, cut as the index was cut?

    Raises LabError with both names where its limit or its code has changed since. A chunker of the user's own cannot be
    made here, so there is nothing to compare it with.
    """
    from .chunking import make_chunker

    try:
        today = chunker or make_chunker(meta["chunker_label"], embedder)
    except (KeyError, LabError):
        return
    check_identity(meta, chunker=today)
