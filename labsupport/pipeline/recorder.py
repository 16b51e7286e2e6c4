"""Make recordings: ask an answerer the questions of the course and keep what it said, one line at a time.

A run goes on where the last one stopped. A line whose question, date, audience or prompt has changed since is taken out
and recorded again; every other line stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from filelock import FileLock, Timeout

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answerer
from labsupport.pipeline.ask import DEFAULT_K, Asked, ask
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.folder import move
from labsupport.pipeline.index import Filters
from labsupport.pipeline.prompting import PROMPT_VERSION
from labsupport.pipeline.recordings import (
    Recording,
    append,
    mend,
    passages_of,
    read_recordings,
    recorded_checks,
    recording_path,
)
from labsupport.pipeline.search import Retriever

PACKAGE = "grounded-answers-lab"
GIVE_UP_AFTER = 3  # failures in a row: the server has gone


@dataclass
class RecordReport:
    """What a run did. `failed` holds (qid, reason): these are tried again by the next run."""

    path: Path
    done: int = 0
    kept: int = 0
    again: int = 0  # of `done`, in place of an outdated line
    failed: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        again = f" ({self.again} of them again, the question had changed)" if self.again else ""
        return f"{self.path.as_posix()}: {self.done} recorded{again}, {self.kept} kept, {len(self.failed)} failed"


def record(
    questions: Sequence[Question], retriever: Retriever, answerer: Answerer, folder: Path, *, method: str,
    name: str | None = None, command: str = "labsupport.pipeline.recorder.record", k: int = DEFAULT_K,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> RecordReport:
    """Record the answers of `answerer` to `questions` in `folder`, under `name` (default: the answerer's own).

    Raises LabError when another run is writing the same file. An answer that fails is reported, not recorded.
    """
    name = name or answerer.name
    path = recording_path(folder, name, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LabError(f"{path.as_posix()} is being written by another run; wait for it to end.") from None
    try:
        report = RecordReport(path)
        if note := mend(path):
            report.notes.append(note)
        todo = _still_to_do(questions, path, report)
        in_a_row = 0
        for place, question in enumerate(todo, 1):
            progress(f"{name}, {method}: {question.qid}", place - 1, len(todo))
            try:
                asked = ask(question.text, retriever, answerer, method=method, k=k, history=question.history,
                            filters=Filters(question.as_of, question.audience), qid=question.qid)
            except LabError as error:
                report.failed.append((question.qid, str(error)))
                if (in_a_row := in_a_row + 1) == GIVE_UP_AFTER:
                    report.notes.append(f"stopped after {in_a_row} failures in a row; run it again to go on")
                    break
                continue
            in_a_row = 0
            append(path, recording_of(asked, name, retriever, _provenance(command, answerer)))
            report.done += 1
        progress(f"{name}, {method}", len(todo), len(todo))
        return report
    finally:
        lock.release()
        with suppress(OSError):  # the next run has it open already (Windows)
            path.with_suffix(".lock").unlink(missing_ok=True)


def recording_of(asked: Asked, answerer: str, retriever: Retriever, produced_by: dict[str, str]) -> Recording:
    """What is recorded of one checked answer."""
    found = asked.found
    cited = retriever.store.get([check.chunk_id for check in asked.checked.checks])
    return Recording(
        qid=found.qid, question=found.question, asked=found.asked or "", as_of=found.filters.as_of or "",
        audience=found.filters.audience, answerer=answerer, method=found.method, k=found.k,
        passages=passages_of(found.context), prompt_version=found.prompt.version, posture=found.prompt.posture,
        answer=asked.answer, checks=recorded_checks(asked.checked, cited),
        date=datetime.now(UTC).date().isoformat(), produced_by=produced_by, history=found.history,
    )


def _still_to_do(questions: Sequence[Question], path: Path, report: RecordReport) -> list[Question]:
    """Questions without a recording that is still theirs; lines that are not are taken out of the file."""
    recorded, faults = read_recordings(path)
    report.notes += faults
    wanted = {question.qid: question for question in questions}
    outdated = {one.line for one in recorded if one.qid in wanted and not _same(one, wanted[one.qid])}
    if outdated:
        lines = path.read_bytes().split(b"\n")
        kept = [line for number, line in enumerate(lines, 1) if number not in outdated]
        spare = path.with_suffix(".new")
        spare.write_bytes(b"\n".join(kept))
        move(spare, path)
        report.again = len(outdated)
    done = {one.qid for one in recorded if one.line not in outdated}
    report.kept = len(done)
    return [question for question in questions if question.qid not in done]


def _same(one: Recording, question: Question) -> bool:
    return (one.question, one.asked, one.audience, one.history, one.prompt_version) == (
        question.text, question.as_of, question.audience, question.history, PROMPT_VERSION)


def _provenance(command: str, answerer: Answerer) -> dict[str, str]:
    try:
        version = metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        version = "not installed"
    return {"command": command, "answerer": answerer.name, "model": answerer.model, "package": f"{PACKAGE} {version}"}
