"""What an exercise, a prediction and a knowledge question are made of. The content lies in m00.py … m07.py."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any

from labsupport.lab.blank import Blank

CALL = re.compile(r"\b(check|predict)\(\"([0-9]+\.[a-z0-9]+)\"")
BLANK = "____"


@dataclass(frozen=True)
class Wrong:
    """Why an answer is not right: what was seen and what was expected, both as a learner would say it.

    `expected` may describe the answer without giving it away. `note` is one more sentence, for instance on the mistake.
    """

    seen: str
    expected: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise. `stub` is its code cell, to the letter; `prompt` stands to the letter in a Markdown cell before it.

    `solution` is source that takes the place of `____` (several blanks: a tuple, in their order); `wrong` holds sources
    in its place that `check(answer, lab)` must reject. `check` gives None or a Wrong; what it raises is shown as an
    error in the answer. `setup` is code that gives the names the stub needs outside the notebook; `lab` is there.
    """

    id: str
    title: str
    prompt: str
    stub: str
    solution: str | tuple[str, ...]
    wrong: tuple[str | tuple[str, ...], ...]
    hints: tuple[str, ...]
    explain: str
    revisit: str
    check: Callable[[Any, Any], Wrong | None]
    setup: str = ""

    @property
    def solution_text(self) -> str:
        return self.solution if isinstance(self.solution, str) else "; ".join(self.solution)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A guess before the outcome is seen. `outcome(lab)` works it out at that moment, `show(outcome)` says it."""

    id: str
    prompt: str
    stub: str
    solution: str
    outcome: Callable[[Any], Any]
    show: Callable[[Any], str] = str
    explain: str = ""


@dataclass(frozen=True)
class Choice:
    key: str
    text: str
    feedback: str
    right: bool = False


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """A knowledge question: one choice is right, and each has its feedback."""

    id: str
    question: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, kw_only=True)
class Module:
    number: str
    title: str
    exercises: tuple[Exercise, ...]
    predictions: tuple[Prediction, ...] = ()
    knowledge: tuple[Knowledge, ...] = ()


def compare(seen: object, expected: object, tolerance: float = 1e-6, note: str = "") -> Wrong | None:
    """None where the two are the same: lists, tuples, arrays by their elements, numbers within a relative tolerance."""
    return None if same(seen, expected, tolerance) else Wrong(short(seen), short(expected), note)


def same(seen: object, expected: object, tolerance: float = 1e-6) -> bool:
    if hasattr(seen, "tolist"):  # numpy
        seen = seen.tolist()
    if isinstance(expected, bool) or isinstance(seen, bool):
        return seen is expected
    if isinstance(expected, Number):
        if not isinstance(seen, Number):
            return False
        whole = isinstance(expected, Integral) and isinstance(seen, Integral)
        return seen == expected if whole else math.isclose(seen, expected, rel_tol=tolerance, abs_tol=1e-12)
    if isinstance(expected, str):
        return isinstance(seen, str) and seen.strip() == expected.strip()
    if isinstance(expected, list | tuple):
        alike = isinstance(seen, list | tuple) and len(seen) == len(expected)
        return alike and all(same(a, b, tolerance) for a, b in zip(seen, expected, strict=True))
    return type(seen) is type(expected) and bool(seen == expected)


def short(value: object) -> str:
    """The value as Python writes it, cut where it is long; never an address in memory, which differs in each run."""
    if callable(value) and not isinstance(value, Blank):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    shown = reprlib.Repr()
    shown.maxlist = shown.maxtuple = shown.maxset = shown.maxdict = 12
    shown.maxstring = shown.maxother = 120
    return re.sub(r" at 0x[0-9a-fA-F]+", "", shown.repr(value))


def solved(stub: str, sources: str | tuple[str, ...]) -> str:
    """The stub with these sources in the place of its blanks, in their order."""
    for source in (sources,) if isinstance(sources, str) else sources:
        stub = stub.replace(BLANK, source, 1)
    return stub
