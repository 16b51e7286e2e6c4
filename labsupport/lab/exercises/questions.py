"""Predictions and knowledge questions: a guess kept before the outcome is shown, and choices with feedback for each."""

from __future__ import annotations

from html import escape
from typing import Any

from labsupport.lab import blank
from labsupport.lab.exercises.content import Choice, Knowledge, Prediction, same, short
from labsupport.lab.exercises.discovery import find
from labsupport.lab.exercises.grading import current_lab, in_words, keep, kept
from labsupport.lab.source import say
from labsupport.pipeline import LabError


def predict(prediction_id: str, guess: Any = blank.BLANK) -> None:
    """Keep a guess. Once the outcome has been shown beside a guess, that guess stays."""
    try:
        prediction = find(prediction_id, Prediction)
    except LabError as error:
        return say(f"{prediction_id} error: {error}")
    if blank.was_used() or blank.holds_blank(guess):
        blank.forget()
        return say(f"{prediction.id} not attempted: put your guess in place of ____, then run on.")
    before = kept("predictions", prediction.id)
    if before.get("seen"):
        return say(f"{prediction.id}: you have seen the outcome, so your guess {short(before['guess'])} stays.")
    keep("predictions", prediction.id, guess=_plain(guess), seen=False)
    say(f"{prediction.id}: your guess {short(guess)} is kept. Run on to see what happens.")


def reveal(prediction_id: str) -> None:
    """The outcome, worked out now, beside the guess."""
    try:
        prediction = find(prediction_id, Prediction)
        outcome = prediction.outcome(current_lab())
        shown = prediction.show(outcome)
    except (Exception, SystemExit) as error:
        return say(f"{prediction_id} error: {in_words(error)}")
    before = kept("predictions", prediction.id)
    if "guess" not in before:
        said = f"no guess was made; it is {shown}."
    elif same(before["guess"], _plain(outcome)) or str(before["guess"]).strip() == str(outcome):
        said = f"you guessed {short(before['guess'])}, and so it is: {shown}."
    else:
        said = f"you guessed {short(before['guess'])}; it is {shown}."
    say(f"{prediction.id}: {said}" + (f"\n{prediction.explain}" if prediction.explain else ""))
    if "guess" in before:
        keep("predictions", prediction.id, guess=before["guess"], seen=True)


def _plain(value: Any) -> Any:
    """As JSON keeps it; what it cannot keep, in words."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in (sorted(value, key=repr) if isinstance(value, set) else value)]
    return value if isinstance(value, str | int | float | bool | None) else short(value)


def knowledge(question_id: str, choice: str | None = None) -> Any:
    """The question as radio buttons; with a choice ("b"), its feedback as text."""
    try:
        question = find(question_id, Knowledge)
    except LabError as error:
        return say(f"{question_id} error: {error}")
    if choice is None:
        from labsupport.lab.exercises.widget import KnowledgeQuestion

        return KnowledgeQuestion(question, kept("knowledge", question.id).get("choice"))
    say(answer(question, choice))


def answer(question: Knowledge, key: str) -> str:
    """The feedback on a choice, which is kept."""
    chosen = next((one for one in question.choices if one.key == str(key).strip().lower()), None)
    if chosen is None:
        there = ", ".join(one.key for one in question.choices)
        return f"{question.id} error: there is no choice {key!r}; choose one of {there}."
    keep("knowledge", question.id, choice=chosen.key, right=chosen.right)
    return feedback(question, chosen)


def feedback(question: Knowledge, choice: Choice) -> str:
    return f"{question.id} ({choice.key}) {'right' if choice.right else 'not right'}: {choice.feedback}"


def knowledge_text(question_id: str) -> str:
    """The question and its choices as text: the same content without a widget."""
    question = find(question_id, Knowledge)
    return "\n".join([f"{question.id} {question.question}", *(f"  ({one.key}) {one.text}" for one in question.choices)])


def as_html(question: Knowledge) -> str:
    return f"<p><strong>{escape(question.id)}</strong> {escape(question.question)}</p>"
