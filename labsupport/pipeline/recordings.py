"""Recorded answers: what an answerer really said, kept with all that is needed to replay and audit it.

One file for each answerer and method, `corpus/recordings/<answerer>-<method>.jsonl`, one line for each question. A line
is written and flushed as soon as its answer is there, so a run that is stopped goes on where it broke off; a last line
cut short by a crash is taken off first. Nothing here is written by hand: `produced_by` says which command made it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.citations import Checked
from labsupport.pipeline.context import Context, estimate_tokens
from labsupport.pipeline.search import METHODS
from labsupport.pipeline.sqlite_file import RECORD


@dataclass(frozen=True)
class Passage:
    """A passage as the answerer saw it: `sha256` of the chunk's text, `tokens` estimated with its header."""

    id: str
    sha256: str
    tokens: int


@dataclass(frozen=True)
class RecordedCheck:
    """What the citation check said when the answer was recorded. `sha256` and `document` are those of the cited chunk;
    empty where there was none, or the caller could not read it."""

    claim: int
    cited: str
    id: str
    status: str
    sha256: str = ""
    document: str = ""  # doc_id
    version: str = ""

    @property
    def served(self) -> bool:
        """Whether the index served the cited passage for this question then; if not, the fault is the answer's own."""
        return self.status in ("ok", "not_in_context")


@dataclass(frozen=True)
class Recording:
    """One recorded answer. `asked` is the date the question is asked on, `as_of` the date whose documents were searched
    (they differ where the question names a day of delivery)."""

    qid: str
    question: str
    asked: str
    as_of: str
    audience: str
    answerer: str
    method: str
    k: int
    passages: tuple[Passage, ...]
    prompt_version: str
    posture: str
    answer: Answer
    checks: tuple[RecordedCheck, ...]
    date: str
    produced_by: dict[str, str]
    history: tuple[str, ...] = ()
    path: str = field(default="", compare=False)  # file and line it was read from
    line: int = field(default=0, compare=False)

    @property
    def grounded(self) -> bool:
        """Answerable, and every claim had a citation that was valid when it was recorded."""
        supported = {check.claim for check in self.checks if check.status == "ok"}
        return self.answer.answerable and bool(self.answer.claims) and supported == set(range(len(self.answer.claims)))

    def as_json(self) -> str:
        """The line of the file, without its line end."""
        data = {
            "qid": self.qid, "question": self.question, "history": list(self.history), "asked": self.asked,
            "as_of": self.as_of, "audience": self.audience, "answerer": self.answerer, "method": self.method,
            "k": self.k, "passages": [asdict(passage) for passage in self.passages],
            "prompt_version": self.prompt_version, "posture": self.posture,
            "answer": self.answer.as_dict(), "checks": [asdict(check) for check in self.checks],
            "model": self.answer.model, "tokens_in": self.answer.tokens_in, "tokens_out": self.answer.tokens_out,
            "seconds": self.answer.seconds, "notes": list(self.answer.notes), "date": self.date,
            "produced_by": self.produced_by,
        }
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, path: str = "", line: int = 0) -> Recording:
        """The reverse of `as_json`. LabError, naming file and line, for text that is no recording."""
        try:
            data = json.loads(text)
            about = {name: data[name] for name in ("model", "tokens_in", "tokens_out", "seconds")}
            answer = Answer.from_dict(data["answer"], notes=tuple(data.get("notes", ())), **about)
            plain = ("qid", "question", "asked", "as_of", "audience", "answerer", "method", "k", "prompt_version",
                     "posture", "date", "produced_by")
            return cls(
                **{name: data[name] for name in plain}, answer=answer, history=tuple(data.get("history", ())),
                passages=tuple(Passage(**passage) for passage in data["passages"]),
                checks=tuple(RecordedCheck(**check) for check in data["checks"]), path=path, line=line,
            )
        except ValueError:
            problem = "is not JSON"
        except KeyError as error:
            problem = f"has no {error.args[0]!r}"
        except (TypeError, AttributeError):
            problem = "is no recorded answer"
        raise LabError(f"{path}, line {line} {problem}; take the line out and record the question again.")


def recording_path(folder: Path, answerer: str, method: str) -> Path:
    return Path(folder) / f"{answerer}-{method}.jsonl"


def read_recordings(path: Path) -> tuple[list[Recording], list[str]]:
    """The recordings of one file, and one sentence for every line that is none. A missing file has none of either."""
    found, faults = [], []
    if not path.is_file():
        return found, faults
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(Recording.from_json(line.decode("utf-8"), path.as_posix(), number))
        except UnicodeDecodeError:
            faults.append(f"{path.as_posix()}, line {number} is not UTF-8; take it out and record the question again.")
        except LabError as error:
            faults.append(str(error))
    return found, faults


def read_all(folder: Path) -> tuple[list[Recording], list[str]]:
    """All recordings of a folder, file by file, and the faults of their lines."""
    found, faults = [], []
    for path in sorted(Path(folder).glob("*.jsonl")):
        some, more = read_recordings(path)
        found += some
        faults += more
    return found, faults


def find_recording(folder: Path, answerer: str, method: str, qid: str) -> Recording:
    """The recording of one question. LabError where there is none."""
    path = recording_path(folder, answerer, method)
    found, _ = read_recordings(path)
    for recording in found:
        if recording.qid.casefold() == qid.casefold():
            return recording
    there = ", ".join(sorted(one.stem for one in path.parent.glob("*.jsonl")))
    who = "endpoint" if answerer == "chat" else answerer
    make = f"record it with: {RECORD} --answerer {who} --method {method}, or " if method in METHODS else ""
    raise LabError(
        f"No recorded answer to {qid} by {answerer} with {method} in {path.as_posix()}; {make}ask with --answerer "
        f"extractive; there are recordings of: {there or 'nothing yet'}."
    )


def mend(path: Path) -> str:
    """Take off a last line that a crash cut short, so that the next one starts clean. A note; "" if all was well."""
    if not path.is_file() or not (data := path.read_bytes()) or data.endswith(b"\n"):
        return ""
    whole, _, tail = data.rpartition(b"\n")
    try:
        Recording.from_json(tail.decode("utf-8"))
    except (LabError, UnicodeDecodeError):
        with path.open("r+b") as file:
            file.truncate(len(whole) + 1 if whole else 0)
        return f"{path.as_posix()}: the last line was cut short and has been taken off"
    with path.open("ab") as file:  # only the line end was missing
        file.write(b"\n")
    return f"{path.as_posix()}: the last line had no end and has been given one"


def append(path: Path, recording: Recording) -> None:
    """Add one line and see it on the disk before going on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(recording.as_json().encode("utf-8") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def passages_of(context: Context) -> tuple[Passage, ...]:
    return tuple(
        Passage(chunk.chunk_id, text_sha256(chunk), estimate_tokens(text))
        for chunk, text in zip(context.kept, context.passages, strict=True)
    )


def recorded_checks(checked: Checked, cited: Iterable[Chunk]) -> tuple[RecordedCheck, ...]:
    """The checks of an answer as they are recorded; `cited` are the cited chunks that the caller may read."""
    known = {chunk.chunk_id: chunk for chunk in cited}
    found = []
    for check in checked.checks:
        chunk = known.get(check.chunk_id) if check.status not in ("missing_id", "not_allowed") else None
        about: dict[str, Any] = {}
        if chunk is not None:
            about = {"sha256": text_sha256(chunk), "document": chunk.doc_id, "version": chunk.version}
        found.append(RecordedCheck(check.claim, check.cited, check.chunk_id, check.status, **about))
    return tuple(found)


def text_sha256(chunk: Chunk) -> str:
    return hashlib.sha256(chunk.text.encode("utf-8")).hexdigest()
