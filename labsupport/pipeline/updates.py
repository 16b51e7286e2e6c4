"""Make the index equal to the folder, doing only the work the changes need.

The SHA-256 of a file's bytes decides: what the index holds already is neither parsed nor embedded, wherever the file
lies now. All work is done before the one transaction that changes the index, so whatever goes wrong leaves the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import LabError
from .folder import FileHashes
from .index import DocumentRow, Engine, Entry, Index, Notify, check_identity, identity
from .index_file import IndexFile
from .plan import UNCHANGED, Folder, Refused, compare, is_current, listed, read_folder
from .report import Report, describe, overlaps
from .sqlite_file import Replaceable
from .store import text_hash
from .weights import CannotLoad

if TYPE_CHECKING:
    import numpy as np

    from .chunking import Chunk, Chunker
    from .embedding import Embedder

BATCH = 100  # texts given to the model at a time


def ingest(corpus: Path | str, index: Path | str | Engine, embedder: Embedder | None = None,
           chunker: Chunker | None = None, *, rebuild: bool = False, verify: bool = False, allow_empty: bool = False,
           progress: Notify | None = None) -> Report:
    """Bring the index up to date with `corpus`/documents and report what was done.

    `embedder` and `chunker` default to the course's own. `rebuild` makes a new index from nothing in place of the old;
    `verify` reads every byte of every file and every page of the index; `allow_empty` lets an empty folder empty the
    index. `progress` is told what is being done, how much of it and of how many. Raises LabError, the index untouched:
    files that cannot be read or claim the same version (all of them listed), another chunker or model than the index
    was built with, an index that cannot be written or is damaged. A document whose text the model fails on keeps its
    earlier state and is in `Report.failed`.
    """
    return synchronise(corpus, index, embedder, chunker, rebuild=rebuild, verify=verify, allow_empty=allow_empty,
                       progress=progress)


def synchronise(corpus: Path | str, index: Path | str | Engine, embedder: Embedder | None, chunker: Chunker | None, *,
                rebuild: bool = False, verify: bool = False, allow_empty: bool = False, keep_gone: bool = False,
                progress: Notify | None = None) -> Report:
    """`ingest`, and with `keep_gone` the naive sync of naive.py."""
    if isinstance(index, str) and "://" in index:
        raise LabError(f"{index} is the address of a server; from Python, give its engine: PostgresEngine(address).")
    engine = IndexFile(index) if isinstance(index, str | Path) else index
    embedder, chunker = _models(embedder, chunker)
    run = _Run(Path(corpus), engine, embedder, chunker, FileHashes(engine.memo, verify), allow_empty, keep_gone,
               notify=progress or (lambda *_: None))
    if verify and not rebuild:
        engine.check()
    if not rebuild and (report := run.look()):
        return report
    with engine.writing(run.wait):
        return run.build() if rebuild else run.update()


def _models(embedder: Embedder | None, chunker: Chunker | None) -> tuple[Embedder, Chunker]:
    if embedder is None:
        from .embedding import load_embedder

        embedder = load_embedder()
    if chunker is None:
        from .chunking import make_chunker

        chunker = make_chunker("structure", embedder)
    return embedder, chunker


@dataclass
class _Run:
    corpus: Path
    engine: Engine
    embedder: Embedder
    chunker: Chunker
    hashes: FileHashes
    allow_empty: bool
    keep_gone: bool
    notify: Notify
    notes: list[str] = field(default_factory=list)

    def wait(self, what: str, done: int, total: int) -> None:
        self.notes.append(what.replace("; waiting for it", "; waited for it"))
        self.notify(what, done, total)

    def look(self) -> Report | None:
        """The report if there is nothing to do. For that, nothing is locked and nothing written."""
        index = self.engine.open()
        if index is None:
            return None
        with closing(index):
            check_identity(index.meta(), chunker=self.chunker, embedder=self.embedder)
            rows = index.documents()
            if self.engine.untidy(index):
                return None
        files = listed(self.corpus, self.allow_empty)
        if not is_current(rows, files, self.hashes):
            return None
        self.hashes.save()
        return Report(unchanged=tuple(files), notes=tuple(overlaps(rows)))

    def update(self) -> Report:
        """Change the index by what the folder asks for; make it where there is none."""
        index = self.engine.open()
        if index is None:
            return self.build()
        with closing(index):
            check_identity(index.meta(), chunker=self.chunker, embedder=self.embedder)
            rows = index.documents()
            folder, entries, failed, embedded = self.prepare(rows, index)
            changes = compare(rows, folder, failed, self.keep_gone)
            if changes.remove or changes.paths or entries:
                index.replace(changes.remove, entries, changes.paths)
            untidy = self.engine.untidy(index)
        if untidy:
            self.notes += self.engine.tidy()
        self.hashes.save()
        report = describe(rows, folder, changes, entries, failed, self.keep_gone)
        return replace(report, embedded=embedded, notes=(*self.notes, *report.notes))

    def build(self) -> Report:
        """A new index in place of the old, or the first one. Nothing of the old one is used, not even its vectors."""
        first = False
        try:
            old = self.engine.open()
            first = old is None
            if old:
                old.close()
        except Replaceable:
            pass
        folder, entries, failed, embedded = self.prepare([], None)
        if failed and not first:
            raise Refused(f"{path}: {reason}" for path, reason in failed.items())
        self.engine.rebuild(entries, identity(self.chunker, self.embedder))
        if not first:
            self.notes += ["built anew, in place of the old index", *self.engine.tidy()]
        self.hashes.save()
        report = describe([], folder, compare([], folder, failed), entries, failed)
        return replace(report, embedded=embedded, first=True, notes=(*self.notes, *report.notes))

    def prepare(self, rows: list[DocumentRow], index: Index | None) -> tuple[Folder, list[Entry], dict[str, str], int]:
        """All work before the transaction: the folder, what to add, what the model failed on, texts embedded."""
        folder = read_folder(self.corpus, listed(self.corpus, self.allow_empty), rows, self.hashes)
        chunks = self.cut(folder)
        texts = {text_hash(chunk.text): chunk.text for some in chunks.values() for chunk in some}
        vectors = index.vectors_of_texts(list(texts)) if index else {}
        new = {one: text for one, text in texts.items() if one not in vectors}
        found, failures = embed_texts(self.embedder, new, self.notify)
        vectors |= found
        entries, failed = [], {}
        for name, some in chunks.items():
            hashes = [text_hash(chunk.text) for chunk in some]
            if bad := [failures[one] for one in hashes if one in failures]:
                failed[name] = bad[0]
            else:
                rows_of_vectors = _stack([vectors[one] for one in hashes], self.embedder.dimensions)
                entries.append(Entry(folder.parsed[name], some, rows_of_vectors))
        return folder, entries, failed, len(new)

    def cut(self, folder: Folder) -> dict[str, Sequence[Chunk]]:
        faults, chunks = [], {}
        for name, document in folder.parsed.items():
            try:
                chunks[name] = self.chunker.chunk(document)
            except LabError as error:
                faults.append(f"{name}: {error}")
        if faults:
            raise Refused(faults)
        return chunks


def _stack(vectors: Sequence[np.ndarray], dimensions: int) -> np.ndarray:
    import numpy as np

    return np.vstack([np.empty((0, dimensions), dtype=np.float32), *vectors])


def embed_texts(embedder: Embedder, texts: dict[str, str],
                notify: Notify) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Vectors by hash, and the reason for each text the model failed on.

    Raises LabError when it fails on all of a batch: then the fault is the model's, not the text's.
    """
    import numpy as np

    names, vectors, failures = list(texts), {}, {}
    for start in range(0, len(names), BATCH):
        batch = names[start:start + BATCH]

        def tell(done: int, _: int, start: int = start) -> None:
            notify("embedding", start + done, len(names))

        def embed(some: list[str], tell=None) -> np.ndarray:
            rows = np.asarray(embedder.embed([texts[one] for one in some], progress=tell), dtype=np.float32)
            if rows.shape != (len(some), embedder.dimensions) or not np.isfinite(rows).all():
                raise LabError(f"{embedder.name} gave no usable vectors (shape {rows.shape}).")
            return rows

        try:
            vectors.update(zip(batch, embed(batch, tell), strict=True))
            continue
        except (MemoryError, CannotLoad):
            raise
        except Exception as error:  # any model may be plugged in, and fail in its own way
            first = error
        for one in batch:
            try:
                vectors[one] = embed([one])[0]
            except MemoryError:
                raise
            except Exception as error:
                failures[one] = f"the embedding model failed on it ({error})."
        if not any(one in vectors for one in batch):
            raise LabError(f"{UNCHANGED}The embedding model {embedder.name} failed: {first}") from first
    return vectors, failures
