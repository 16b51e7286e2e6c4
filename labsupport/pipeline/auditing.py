"""Which citations of the recorded answers does the index no longer serve?

Each citation that was served when its answer was recorded is looked up again, for the date and audience recorded:

| reason | what happened since |
|---|---|
| id gone | the passage, or its document, is no longer in the index |
| audience narrowed | the document is now for staff only, the answer was recorded for the public |
| only in a newer version | on the date of the recording another version of the document is in force |
| no longer in force | on the date of the recording no version of it is in force any more |
| text changed | the id names other words now: an edit before it moved the text of the document |

An id that the answerer made up was never served. The citation check names that as `missing_id`; it is a fault of the
answer, no news about the index, and not counted here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.citations import status_of
from labsupport.pipeline.index import DocumentRow, Filters, Index
from labsupport.pipeline.recordings import RecordedCheck, Recording, read_all, text_sha256

REASONS = ("id gone", "audience narrowed", "only in a newer version", "no longer in force", "text changed")


@dataclass(frozen=True)
class Finding:
    """One recorded citation that the index no longer serves."""

    recording: Recording
    check: RecordedCheck
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        one = self.recording
        where = f"{one.qid} {one.answerer} {one.method}, claim {self.check.claim + 1}"
        source = f" ({self.check.document} v{self.check.version})" if self.check.document else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{where}: [{self.check.id}]{source} {self.reason}{detail}"


@dataclass(frozen=True)
class Audit:
    """`answers` recorded answers were looked at; `faults` are lines that are none."""

    answers: int
    findings: tuple[Finding, ...]
    faults: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Every finding, every faulty line, and the count last."""
        last = (f"{self.answers} recorded answers | {len(self.findings)} citations to passages that are removed, "
                "not in force or not allowed")
        return [*map(str, self.findings), *self.faults, last]

    @property
    def exit_code(self) -> int:
        """1 when there is something to mend."""
        return int(bool(self.findings or self.faults))


def audit(folder: Path, index: Index) -> Audit:
    """Look up the citations of all recordings in `folder`. A line that is no recording does not stop the others."""
    recordings, faults = read_all(folder)
    return audit_recordings(recordings, index, faults)


def audit_recordings(recordings: Sequence[Recording], index: Index, faults: Sequence[str] = ()) -> Audit:
    with index.snapshot():
        documents = index.documents()
        findings = [finding for recording in recordings for finding in _of(recording, index, documents)]
    return Audit(len(recordings), tuple(findings), tuple(faults))


def _of(recording: Recording, index: Index, documents: Sequence[DocumentRow]) -> Iterator[Finding]:
    served = [check for check in recording.checks if check.served]
    now = {chunk.chunk_id: chunk for chunk in index.get([check.id for check in served])}
    filters = Filters(as_of=recording.as_of, audience=recording.audience)
    for check in served:
        if reason := _reason(check, now.get(check.id), filters, documents):
            yield Finding(recording, check, *reason)


def _reason(
    check: RecordedCheck, chunk: Chunk | None, filters: Filters, documents: Sequence[DocumentRow]
) -> tuple[str, str] | None:
    status = status_of(chunk, filters)
    if status == "not_allowed":
        return "audience narrowed", "now for staff only"
    if status in ("missing_id", "not_in_force"):
        versions = [row for row in documents if row.doc_id == check.document]
        edited = status == "missing_id" and any(row.version == check.version for row in versions)
        others = [row.version for row in versions if row.version != check.version and _serves(row, filters)]
        if others and not edited:
            return "only in a newer version", f"on {filters.as_of} version {', '.join(others)} is in force"
        return ("id gone", "") if status == "missing_id" else ("no longer in force", f"on {filters.as_of}")
    if check.sha256 and chunk is not None and text_sha256(chunk) != check.sha256:
        return "text changed", ""
    return None


def _serves(row: DocumentRow, filters: Filters) -> bool:
    allowed = row.audience == "public" or filters.audience == "staff"
    in_force = row.effective_from <= filters.as_of and (not row.effective_to or filters.as_of <= row.effective_to)
    return allowed and in_force
