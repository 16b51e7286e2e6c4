"""How good are the recorded answers? Each is held against the reference facts of its question.

| verdict | meaning |
|---|---|
| right | answered, and every reference fact stands in the answer |
| wrong | answered, and a fact is missing, or the corpus does not answer the question at all |
| abstained rightly | not answered, and the corpus does not answer it |
| abstained wrongly | not answered, though it could have been |

A fact such as "3 business days" or "PK-2400-03" stands in an answer when its words do, in the answer's text or in its
claims: a short one with a figure word after word, another one with all its content words. That is strict where an
answer puts a fact in other words, and blind to what else the answer says: the verdict counts facts, it does not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labsupport.pipeline.answering import Answer
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.recordings import Recording
from labsupport.pipeline.terms import STOP_WORDS, holds, translate

VERDICTS = ("right", "wrong", "abstained rightly", "abstained wrongly")
_SAME = [
    (r"(?<![\w-])(\d{1,3}) ?[-–] ?(\d{1,3})(?![\w-])", r"\1 to \2"),
    (r"\bjours? ouvrables?\b", "business days"), (r"\bjours?\b|\bday\b", "days"),
    (r"\b(?:ans?|années?|year)\b", "years"), (r"\b(?:heures?|hour)\b", "hours"), (r"\bminute\b", "minutes"),
    (r"(?<=\d) à (?=\d)", " to "), (r"(\d)\s*°\s*c\b", r"\1 °c"),
]
_FIGURES = dict(zip(
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), map(str, range(1, 11)), strict=True
))


@dataclass(frozen=True)
class Score:
    """One recorded answer with its verdict; `missing` are the reference facts that do not stand in it."""

    recording: Recording
    verdict: str
    missing: tuple[str, ...]
    invalid: int
    grounded: bool


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table: counts over the questions one answerer was asked with one method."""

    answerer: str
    method: str
    questions: int
    right: int
    wrong: int
    abstained_rightly: int
    abstained_wrongly: int
    citations: int
    invalid: int
    grounded: int


def verdict(answer: Answer, question: Question) -> tuple[str, tuple[str, ...]]:
    """The verdict on one answer and the facts missing from it."""
    if not answer.answerable:
        return ("abstained wrongly" if question.answerable else "abstained rightly"), ()
    missing = tuple(fact.fact for fact in question.facts if not _stands(fact.fact, answer))
    return ("right" if question.answerable and not missing else "wrong"), missing


def score(recordings: Iterable[Recording], questions: Sequence[Question]) -> list[Score]:
    """One Score for each recording of a known question."""
    known = {question.qid: question for question in questions}
    scores = []
    for one in recordings:
        if one.qid in known:
            outcome, missing = verdict(one.answer, known[one.qid])
            scores.append(Score(one, outcome, missing, sum(check.status != "ok" for check in one.checks), one.grounded))
    return scores


def table(scores: Sequence[Score]) -> list[ScoreRow]:
    """One row for each answerer and method, in the order in which they first come."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for one in scores:
        groups.setdefault((one.recording.answerer, one.recording.method), []).append(one)
    rows = []
    for (answerer, method), some in groups.items():
        counts = [sum(one.verdict == outcome for one in some) for outcome in VERDICTS]
        rows.append(ScoreRow(
            answerer, method, len(some), *counts, sum(len(one.recording.checks) for one in some),
            sum(one.invalid for one in some), sum(one.grounded for one in some),
        ))
    return rows


def markdown_table(rows: Sequence[ScoreRow]) -> str:
    """The table as Markdown, as it stands in the README."""
    head = ["answerer", "method", "questions", "right", "wrong", "abstained rightly", "abstained wrongly",
            "citations", "invalid", "grounded"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(getattr(row, name.replace(' ', '_'))) for name in head)} |" for row in rows]
    return "\n".join(lines)


def _stands(fact: str, answer: Answer) -> bool:
    return any(covers(text, fact) for text in (answer.answer, " ".join(claim.text for claim in answer.claims)))


def covers(text: str, fact: str) -> bool:
    """Whether every word of `fact` stands in `text`; numbers next to their unit, amounts and codes as a whole."""
    there, wanted = _words(text), _words(fact)
    if any(char.isdigit() for char in fact) and len(wanted) <= 4:
        # "5 business days" stands neither in "10 business days, 5 stores" nor in "3 to 5 business days".
        places = [at for at in range(len(there) - len(wanted) + 1) if there[at : at + len(wanted)] == wanted]
        return any(at < 2 or there[at - 1] != "to" or not there[at - 2].isdigit() for at in places)
    content = {_stem(word) for word in wanted if word not in STOP_WORDS}
    if content and content <= {_stem(word) for word in there}:
        return True
    # A French fact told in English, as far as the glossary goes: every word of it translated.
    known = translate(fact, "fr")
    rest = content - {_stem(word) for form, _ in known for word in _words(form)}
    return bool(known) and not rest and all(holds(text, (form, *forms)) for form, forms in known)


def _stem(word: str) -> str:
    """Without the s of a plural or of "expires"."""
    return word[:-1] if word.isalpha() and len(word) > 3 and word.endswith("s") else word


def _words(text: str) -> list[str]:
    """Words and numbers, case folded; "$2,000", "14,95", "PK-2400-03" and "x@y.example" are one word each.

    Units of time are the same in French and English, "5–8 days" is "5 to 8 days", and "three" is "3".
    """
    text = text.casefold().replace("’", "'")
    for pattern, same in _SAME:
        text = re.sub(pattern, same, text)
    return [_FIGURES.get(word, word) for word in re.findall(r"[$€£]?\w+(?:[-.,@']\w+)*%?", text)]
