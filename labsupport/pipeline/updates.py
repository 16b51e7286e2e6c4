"""Make the index equal to the folder, doing only the work the changes need.

The SHA-256 of a file's bytes decides: what the index holds already is neither parsed nor embedded, wherever the file
lies now. All work is done before the one transaction that changes the index, so whatever goes wrong leaves the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import LabError
from .corpus import CorpusError, Document, clashes, read_document
from .folder import FileHashes, document_files
from .index import DocumentRow, Engine, Entry, Index, Key, Notify, check_identity, identity
from .index_file import IndexFile
from .report import Report, overlaps
from .sqlite_file import Replaceable
from .store import text_hash

if TYPE_CHECKING:
    import numpy as np

    from .chunking import Chunk, Chunker
    from .embedding import Embedder

BATCH = 100  # texts given to the model at a time
UNCHANGED = "Nothing changed in the index. "


class Refused(CorpusError):
    """Files that cannot be taken in, all of them in `faults`. The index is as it was."""

    def __init__(self, faults: Iterable[str]):
        super().__init__(faults)
        several = f"{len(self.faults)} faults:\n" if len(self.faults) > 1 else ""
        self.args = (UNCHANGED + several + "\n".join(self.faults),)


@dataclass
class Plan:
    """The folder beside the index. `files` maps each path to its document version, `texts` those not indexed yet."""

    rows: list[DocumentRow]
    files: dict[str, Key] = field(default_factory=dict)
    texts: dict[str, Document] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # path to reason: these keep their earlier state
    keep_gone: bool = False  # the naive sync: what has left the folder stays

    @property
    def kept(self) -> list[DocumentRow]:
        """The rows that stay as they are, but for their path."""
        here = {key for path, key in self.files.items() if path not in self.texts}
        old = {self.files[path] for path in self.failed}
        changed = set(self.files.values()) - here
        return [row for row in self.rows if row.key in here or row.key in old or row.path in self.failed
                or (self.keep_gone and row.key not in changed)]

    @property
    def add(self) -> list[Document]:
        return [document for path, document in self.texts.items() if path not in self.failed]

    @property
    def remove(self) -> list[Key]:
        kept = {row.key for row in self.kept}
        return [row.key for row in self.rows if row.key not in kept]

    @property
    def paths(self) -> dict[Key, str]:
        """Where document versions lie that stay but moved."""
        places = {key: path for path, key in self.files.items() if path not in self.failed}
        return {row.key: places[row.key] for row in self.kept if places.get(row.key, row.path) != row.path}

    @property
    def needs_work(self) -> bool:
        return bool(self.texts or self.remove or self.paths)


def ingest(corpus: Path | str, index: Path | str | Engine, embedder: Embedder | None = None,
           chunker: Chunker | None = None, *, rebuild: bool = False, verify: bool = False, allow_empty: bool = False,
           progress: Notify | None = None) -> Report:
    """Bring the index up to date with `corpus`/documents and report what was done.

    `embedder` and `chunker` default to the course's own. `rebuild` makes a new index from nothing in place of the old;
    `verify` reads every byte of every file; `allow_empty` lets an empty folder empty the index. `progress` is told what
    is being done, how much of it and of how many. Raises LabError, the index untouched: files that cannot be read or
    claim the same version (all of them listed), another chunker or model than the index was built with, an index that
    cannot be written. A document whose text the model fails on keeps its earlier state and is in `Report.failed`.
    """
    return synchronise(corpus, index, embedder, chunker, rebuild=rebuild, verify=verify, allow_empty=allow_empty,
                       progress=progress)


def synchronise(corpus: Path | str, index: Path | str | Engine, embedder: Embedder | None, chunker: Chunker | None, *,
                rebuild: bool = False, verify: bool = False, allow_empty: bool = False, keep_gone: bool = False,
                progress: Notify | None = None) -> Report:
    """`ingest`, and with `keep_gone` the naive sync of naive.py."""
    engine = IndexFile(index) if isinstance(index, str | Path) else index
    embedder, chunker = _models(embedder, chunker)
    run = _Run(Path(corpus), engine, embedder, chunker, verify, allow_empty, keep_gone, progress or (lambda *_: None))
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
    verify: bool
    allow_empty: bool
    keep_gone: bool
    notify: Notify
    notes: list[str] = field(default_factory=list)

    def wait(self, what: str, done: int, total: int) -> None:
        self.notes.append(what.replace("waiting", "waited"))
        self.notify(what, done, total)

    def look(self) -> Report | None:
        """The report if there is nothing to do. Nothing is locked for that."""
        index = self.engine.open()
        if index is None:
            return None
        with closing(index):
            check_identity(index.meta(), chunker=self.chunker, embedder=self.embedder)
            if self.engine.untidy(index):
                return None
            rows = index.documents()
        plan, hashes = self.plan(rows, only_look=True)
        if plan.needs_work:
            return None
        hashes.save()
        return self.report(plan, [])

    def update(self) -> Report:
        """Change the index by what the folder asks for; make it where there is none."""
        index = self.engine.open()
        if index is None:
            return self.build()
        with closing(index):
            check_identity(index.meta(), chunker=self.chunker, embedder=self.embedder)
            plan, hashes = self.plan(index.documents())
            chunks = self.cut(plan)
            entries, embedded = self.embed(plan, chunks, index)
            remove = plan.remove
            if remove or entries or plan.paths:
                index.replace(remove, entries, plan.paths)
            untidy = self.engine.untidy(index)
        if untidy:
            self.notes += self.engine.tidy()
        hashes.save()
        return replace(self.report(plan, entries), embedded=embedded)

    def build(self) -> Report:
        """A new index in place of the old, or the first one. Nothing of the old one is used, not even its vectors."""
        try:
            old = self.engine.open()
            first = old is None
            if old:
                old.close()
        except Replaceable:
            first = False
        plan, hashes = self.plan([])
        chunks = self.cut(plan)
        entries, embedded = self.embed(plan, chunks, None)
        if plan.failed and not first:
            raise Refused(f"{path}: {reason}" for path, reason in plan.failed.items())
        self.engine.rebuild(entries, identity(self.chunker, self.embedder))
        if not first:
            self.notes += ["built anew, in place of the old index", *self.engine.tidy()]
        hashes.save()
        return replace(self.report(plan, entries), embedded=embedded, first=True)

    def plan(self, rows: list[DocumentRow], only_look: bool = False) -> tuple[Plan, FileHashes]:
        """Read what has changed. Raises Refused with every fault; `only_look` stops at the first change instead."""
        plan = Plan(rows, keep_gone=self.keep_gone)
        known = {row.sha256: row.key for row in rows}
        hashes = FileHashes(self.engine.memo, self.verify)
        faults = []
        for name, path in self.files().items():
            try:
                digest, data = hashes.read(name, path)
                if digest in known:
                    plan.files[name] = known[digest]
                    continue
                if only_look:
                    plan.texts[name] = None
                    return plan, hashes
                plan.texts[name] = document = read_document(path, self.corpus, data)
                plan.files[name] = document.doc_id, document.version
            except FileNotFoundError:
                continue  # deleted since the folder was listed
            except OSError as error:
                faults.append(f"{name}: cannot be read ({error.strerror}); mend or remove the file.")
            except CorpusError as error:
                faults += error.faults
        faults += clashes((name, *key) for name, key in plan.files.items())
        if faults:
            raise Refused(faults)
        return plan, hashes

    def files(self) -> dict[str, Path]:
        folder = (self.corpus / "documents").as_posix()
        try:
            found = document_files(self.corpus)
        except LabError as error:
            if not (self.allow_empty and not (self.corpus / "documents").exists()):
                raise LabError(f"{UNCHANGED}{error} Name the corpus folder with --corpus; it keeps its documents in a "
                               "folder named documents.") from error
            found = {}
        if not found and not self.allow_empty:
            raise LabError(f"{UNCHANGED}{folder} has no Markdown files. Name the corpus folder with --corpus, or say "
                           "--allow-empty if the index is to become empty.")
        return found

    def cut(self, plan: Plan) -> dict[str, Sequence[Chunk]]:
        faults, chunks = [], {}
        for name, document in plan.texts.items():
            try:
                chunks[name] = self.chunker.chunk(document)
            except LabError as error:
                faults.append(f"{name}: {error}")
        if faults:
            raise Refused(faults)
        return chunks

    def embed(self, plan: Plan, chunks: dict[str, Sequence[Chunk]], index: Index | None) -> tuple[list[Entry], int]:
        """The documents to add, with their vectors, and how many texts were embedded; fills `plan.failed`."""
        import numpy as np

        texts = {text_hash(chunk.text): chunk.text for some in chunks.values() for chunk in some}
        vectors = index.vectors_of_texts(list(texts)) if index else {}
        new = {one: text for one, text in texts.items() if one not in vectors}
        found, failures = embed_texts(self.embedder, new, self.notify)
        vectors |= found
        entries = []
        for name, some in chunks.items():
            hashes = [text_hash(chunk.text) for chunk in some]
            if bad := [failures[one] for one in hashes if one in failures]:
                plan.failed[name] = bad[0]
                continue
            empty = np.empty((0, self.embedder.dimensions), dtype=np.float32)
            entries.append(Entry(plan.texts[name], some, np.vstack([empty, *(vectors[one] for one in hashes)])))
        return entries, len(new)

    def report(self, plan: Plan, entries: Sequence[Entry]) -> Report:
        """Compares by path, as people see the folder."""
        before = {row.path: row for row in plan.rows}
        by_key = {row.key: row for row in plan.rows}
        count = {key: row.chunks for key, row in by_key.items()}
        count |= {(entry.document.doc_id, entry.document.version): len(entry.chunks) for entry in entries}
        files = {path: key for path, key in plan.files.items() if path not in plan.failed}
        kept_paths = {row.path for row in plan.kept}
        added = [path for path in files if path not in before]
        updated = [path for path, key in files.items() if path in before
                   and (path in plan.texts or before[path].key != key)]
        gone = [] if plan.keep_gone else [path for path in sorted(before) if path not in plan.files and (
            path not in kept_paths or before[path].key in plan.paths)]
        unchanged = [path for path in files if path in before and path not in updated]
        renamed = [(by_key[files[path]].path, path, path in plan.texts) for path in (*added, *updated)
                   if files[path] in by_key and by_key[files[path]].path != path]
        now = [row for row in plan.rows if row.key not in plan.remove] + [entry.document for entry in entries]
        return Report(
            added=tuple(added), updated=tuple(updated), unchanged=tuple(unchanged), removed=tuple(gone),
            chunks_added=sum(count[files[path]] for path in (*added, *updated)),
            chunks_removed=sum(before[path].chunks for path in (*updated, *gone)),
            renamed=tuple(renamed), failed=tuple(plan.failed.items()),
            notes=(*self.notes, *overlaps(now)))


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
        except MemoryError:
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
