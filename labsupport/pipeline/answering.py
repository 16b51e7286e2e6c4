"""An answer, and the small protocol that everything which answers keeps to.

An answerer is one file in this package with a class and a function `make_answerer(**needs)`; `load_answerer` finds it
by the file's name. It has to write only `stream`: pieces of the answer's text as they are produced, then the Answer.
The pieces joined are exactly `Answer.answer`. Closing the stream stops the work.
"""

from __future__ import annotations

import importlib
import re
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from labsupport.pipeline import LabError
from labsupport.pipeline.context import Context
from labsupport.pipeline.intents import Intent
from labsupport.pipeline.prompting import Prompt


@dataclass(frozen=True)
class Claim:
    """One statement of an answer and the chunk ids it cites, as the answerer wrote them."""

    text: str
    citations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What an answerer gives back. Tokens are the model's count where it tells one, else an estimate (see `notes`)."""

    answerable: bool
    answer: str
    claims: tuple[Claim, ...] = ()
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """{answerable, answer, claims: [{text, citations}]}, ready for JSON."""
        claims = [{"text": claim.text, "citations": list(claim.citations)} for claim in self.claims]
        return {"answerable": self.answerable, "answer": self.answer, "claims": claims}

    @classmethod
    def from_dict(cls, data: dict[str, Any], **about: Any) -> Answer:
        """The reverse of `as_dict`; `about` fills model, tokens, seconds and notes."""
        claims = tuple(Claim(claim["text"], tuple(claim["citations"])) for claim in data["claims"])
        return cls(data["answerable"], data["answer"], claims, **about)


@runtime_checkable
class Answerer(Protocol):
    """What answers: `name` picks it, `model` says what is behind it."""

    name: str
    model: str

    def stream(
        self, question: str, context: Context, *, prompt: Prompt | None = None, intent: Intent | None = None
    ) -> Iterator[str | Answer]:
        """Pieces of the answer's text, then the Answer. Raises LabError. `close()` on the iterator stops the work."""
        ...


def answer_from(pieces: Iterator[str | Answer]) -> Answer:
    """Read a stream to its end and return the Answer."""
    answer = None
    for piece in pieces:
        if isinstance(piece, Answer):
            answer = piece
    if answer is None:
        raise LabError("The answerer stopped before it gave an answer; ask again.")
    return answer


class StreamingAnswerer:
    """Base of our answerers: `answer` is the stream read to its end."""

    name = ""
    model = ""

    def stream(
        self, question: str, context: Context, *, prompt: Prompt | None = None, intent: Intent | None = None
    ) -> Iterator[str | Answer]:
        raise NotImplementedError

    def answer(
        self, question: str, context: Context, *, prompt: Prompt | None = None, intent: Intent | None = None
    ) -> Answer:
        return answer_from(self.stream(question, context, prompt=prompt, intent=intent))


NOTHING = {
    "en": "The passages found do not answer this question.",
    "fr": "Les passages trouvés ne répondent pas à cette question.",
}


def in_words(text: str) -> Iterator[str]:
    """Cut a finished text into words with the spaces after them; joined they are the text again."""
    yield from re.findall(r"\S+\s*|\s+", text)


def timed(answer: Answer, started: float) -> Answer:
    """`answer` with the seconds since `started` (a `time.perf_counter()`)."""
    return replace(answer, seconds=round(time.perf_counter() - started, 3))


def load_answerer(name: str, **needs: Any) -> Answerer:
    """The answerer whose file is `name`: extractive, endpoint, replay or one of your own. Unknown name: LabError.

    `needs` is what the caller can lend: `reranker`, `embedder`; each answerer takes what it knows and leaves the rest.
    """
    module = answerer_module(name)
    with _faults_of(name, "make_answerer of "):
        return module.make_answerer(**needs)


def answerer_module(name: str) -> ModuleType:
    """The file of the answerer `name`. LabError where there is none, or it cannot be imported."""
    module_name = f"labsupport.pipeline.{name}"
    module = None
    if re.fullmatch(r"[a-z][a-z0-9_]*", name):
        with _faults_of(name):
            try:
                module = importlib.import_module(module_name)
            except ModuleNotFoundError as error:
                if error.name != module_name:
                    raise
    if not hasattr(module, "make_answerer"):
        raise LabError(_unknown(name))
    return module


@contextmanager
def _faults_of(name: str, part: str = "") -> Iterator[None]:
    """A file that somebody writes has faults at first: one sentence with the file, the line and Python's own words."""
    try:
        yield
    except LabError:
        raise
    except Exception as error:
        file, frames = f"{name}.py", traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename).name == file]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
        what = " ".join(str(getattr(error, "msg", None) or error).split())
        where = f"labsupport/pipeline/{file}" + (f", line {line}" if line else "")
        raise LabError(f"{part}{where} fails ({type(error).__name__}: {what}); mend that, then run the command again."
                       ) from error


def _unknown(name: str) -> str:
    return (f"Unknown answerer {name!r}; choose extractive, endpoint, replay:NAME of a recording, or the name of a "
            "file of your own in labsupport/pipeline that has make_answerer.")
