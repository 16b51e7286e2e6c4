"""What an ingest says it did, to the line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .corpus import Document
from .index import DocumentRow, Entry
from .plan import Changes, Folder

SHOWN = 20  # files listed of each kind


@dataclass(frozen=True)
class Report:
    """Files are counted by their path, so a renamed file is one added and one removed, and its chunks come and go.

    `renamed` holds (old path, new path, whether the text changed too); `failed` (path, reason): these documents are in
    the index as they were before, and the command line exits with 1.
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    chunks_added: int = 0
    chunks_removed: int = 0
    renamed: tuple[tuple[str, str, bool], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    embedded: int = 0  # texts given to the model
    first: bool = False  # nothing was there before, so its files are not listed

    @property
    def line(self) -> str:
        return (f"{len(self.added)} added, {len(self.updated)} updated, {len(self.unchanged)} unchanged, "
                f"{len(self.removed)} removed | chunks: +{self.chunks_added} -{self.chunks_removed}")

    @property
    def lines(self) -> list[str]:
        """The line, then what happened to which file, then notes."""
        old = {path for path, _, _ in self.renamed}
        new = {path for _, path, _ in self.renamed}
        return [
            self.line,
            *_listed("added", () if self.first else (path for path in self.added if path not in new)),
            *_listed("updated", (path for path in self.updated if path not in new)),
            *_listed("removed", (path for path in self.removed if path not in old)),
            *(f"  renamed{' and changed' * changed}: {before} -> {after}" for before, after, changed in self.renamed),
            *(f"  failed: {path}: {reason} Its earlier state stays in the index." for path, reason in self.failed),
            *(f"  note: {note}" for note in self.notes),
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def _listed(what: str, paths: Iterable[str]) -> list[str]:
    paths = list(paths)
    more = [f"  {what}: … and {len(paths) - SHOWN} more"] if len(paths) > SHOWN else []
    return [f"  {what}: {path}" for path in paths[:SHOWN]] + more


def describe(rows: list[DocumentRow], folder: Folder, changes: Changes, entries: Sequence[Entry],
             failed: Mapping[str, str], keep_gone: bool = False) -> Report:
    """The report of a run that found `rows` and made these changes. Compares by path, as people see the folder."""
    before = {row.path: row for row in rows}
    by_key = {row.key: row for row in rows}
    count = {row.key: row.chunks for row in rows}
    count |= {(entry.document.doc_id, entry.document.version): len(entry.chunks) for entry in entries}
    files = {path: key for path, key in folder.files.items() if path not in failed}
    added = [path for path in files if path not in before]
    updated = [path for path, key in files.items()
               if path in before and (path in folder.parsed or before[path].key != key)]
    still = {row.path for row in changes.kept if row.key not in changes.paths}
    removed = [] if keep_gone else [path for path in sorted(before) if path not in folder.files and path not in still]
    fresh = {*added, *updated}
    renamed = [(by_key[key].path, path, path in folder.parsed) for path, key in files.items()
               if path in fresh and key in by_key and by_key[key].path != path]
    return Report(
        added=tuple(added), updated=tuple(updated), removed=tuple(removed),
        unchanged=tuple(path for path in files if path not in fresh),
        chunks_added=sum(count[files[path]] for path in fresh),
        chunks_removed=sum(before[path].chunks for path in (*updated, *removed)),
        renamed=tuple(renamed), failed=tuple(failed.items()),
        notes=(*_empty(entries), *overlaps([*changes.kept, *(entry.document for entry in entries)])))


def _empty(entries: Iterable[Entry]) -> list[str]:
    return [f"{entry.document.path} has no text below its front matter: no chunks." for entry in entries
            if not entry.chunks]


def overlaps(rows: Iterable[DocumentRow | Document]) -> list[str]:
    """Where two versions of one document are in force on the same day: a search would answer from both."""
    notes, versions = [], {}
    for row in sorted(rows, key=lambda row: (row.doc_id, row.effective_from, row.version)):
        for earlier in versions.setdefault(row.doc_id, []):
            if earlier.effective_to is None or earlier.effective_to >= row.effective_from:
                ends = [one.effective_to for one in (earlier, row) if one.effective_to]
                until = f"to {min(ends)}" if ends else "on, without end"
                notes.append(f"{row.doc_id} versions {earlier.version} and {row.version} are both in force from "
                             f"{row.effective_from} {until}; end the older one with effective_to")
        versions[row.doc_id].append(row)
    return notes
