"""check, hint and solution: they print one clear line and never raise."""

from __future__ import annotations

import inspect
import textwrap
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from labsupport.lab import blank
from labsupport.lab.exercises.content import Exercise, short
from labsupport.lab.exercises.discovery import find
from labsupport.lab.source import say
from labsupport.pipeline import LabError

PASS, FAIL, ERROR, NOT_ATTEMPTED = "pass", "fail", "error", "not attempted"
MOST_KEPT = 2000  # characters of a function's source
_hints_given: dict[str, int] = {}


@dataclass(frozen=True)
class Verdict:
    """`outcome`: "pass", "fail", "error" or "not attempted"; `text`: the rest of the line that is printed."""

    id: str
    outcome: str
    text: str

    def __str__(self) -> str:
        return f"{self.id} {self.outcome}: {self.text}"


class NoLab:
    """Stands where a check needs the opened module and none is open."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise LabError("no module is open; run the first cell of the notebook, then this one.")


def check(exercise_id: str, answer: Any = blank.BLANK) -> None:
    """Say whether the answer is right: pass, fail (seen, expected, where to look again), error, or not attempted."""
    verdict = grade(exercise_id, answer, current_lab())
    say(str(verdict))
    if verdict.outcome in (PASS, FAIL):
        keep("exercises", exercise_id, answer=as_given(answer), by="learner", **_passed(verdict))


def as_given(answer: Any) -> str:
    """The answer as text to be kept: of a function its source, as its name says nothing. Raises nothing."""
    try:
        if callable(answer):
            with suppress(Exception):  # made by `exec`, written in C, or its file is gone
                source = textwrap.dedent(inspect.getsource(answer)).strip()
                return source if len(source) <= MOST_KEPT else source[:MOST_KEPT] + "…"
        return short(answer)
    except Exception:
        return f"an answer of type {type(answer).__name__}"


def _passed(verdict: Verdict) -> dict[str, bool]:
    """What the learner once passed stays passed, whatever is tried later; a snapshot's solution is nobody's pass."""
    before = kept("exercises", verdict.id)
    return {"passed": verdict.outcome == PASS or (before.get("by") != "snapshot" and bool(before.get("passed")))}


def grade(exercise_id: str, answer: Any, lab: Any = None) -> Verdict:
    """The verdict on an answer. Raises nothing: whatever goes wrong is an outcome."""
    try:
        exercise = find(exercise_id, Exercise)
    except LabError as error:
        return Verdict(str(exercise_id), ERROR, str(error))
    waiting = Verdict(exercise.id, NOT_ATTEMPTED, f'put your answer in place of ____; hint("{exercise.id}") helps.')
    if blank.was_used() or blank.holds_blank(answer):
        blank.forget()
        return waiting
    try:
        wrong = exercise.check(answer, lab if lab is not None else NoLab())
    except (Exception, SystemExit) as error:
        wrong = None
        verdict = Verdict(exercise.id, ERROR, f"{in_words(error)} {_look_again(exercise)}")
    else:
        verdict = Verdict(exercise.id, PASS, exercise.explain)
    if blank.was_used() or (wrong and repr(blank.BLANK) in wrong.seen):  # in a function the learner is to complete
        blank.forget()
        return waiting
    if wrong is not None:
        note = f" {wrong.note}" if wrong.note else ""
        return Verdict(
            exercise.id, FAIL, f"seen {wrong.seen}; expected {wrong.expected}.{note} {_look_again(exercise)}"
        )
    return verdict


def in_words(error: BaseException) -> str:
    """An exception as one sentence."""
    text = " ".join(str(error).split())
    if isinstance(error, LabError):
        return text
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return said if said.endswith((".", "!", "?")) else said + "."


def _look_again(exercise: Exercise) -> str:
    return f'Go back to "{exercise.revisit}".'


def hint(exercise_id: str) -> None:
    """The first hint; called again, the next."""
    try:
        exercise = find(exercise_id, Exercise)
    except LabError as error:
        return say(str(error))
    given = _hints_given.get(exercise.id, 0)
    if given >= len(exercise.hints):
        return say(f'{exercise.id}: no more hints; solution("{exercise.id}") shows the solution.')
    _hints_given[exercise.id] = given + 1
    say(f"{exercise.id}, hint {given + 1} of {len(exercise.hints)}: {exercise.hints[given]}")


def solution(exercise_id: str) -> None:
    """The solution and why it is right."""
    try:
        exercise = find(exercise_id, Exercise)
    except LabError as error:
        return say(str(error))
    sources = (exercise.solution,) if isinstance(exercise.solution, str) else exercise.solution
    print(f"{exercise.id}, solution: " + "\n".join(sources))
    say(exercise.explain)


def keep(kind: str, key: str, **values: object) -> None:
    """Keep an answer in the workspace. A disk that is full must not stop a lesson, so that is only said."""
    lab = current_lab()
    if isinstance(lab, NoLab):
        return
    try:
        lab.answers.record(kind, key, **values)
    except OSError as error:
        say(f"(This could not be kept in your workspace: {error.strerror or error}.)")


def kept(kind: str, key: str) -> dict:
    """What is kept in the workspace for one exercise, prediction or question; {} where nothing is."""
    lab = current_lab()
    return {} if isinstance(lab, NoLab) else lab.answers.read()[kind].get(key, {})


def current_lab() -> Any:
    """The module that is open, or an object that says that none is."""
    from labsupport.lab import workspace

    return workspace.current() or NoLab()
