"""What an ingest says it did, to the line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .index import DocumentRow

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


def overlaps(rows: Iterable[DocumentRow]) -> list[str]:
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
