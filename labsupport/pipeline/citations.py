"""Is what an answer cites really there? Every citation is looked up, in code, in the index and in the context sent.

| status | the cited id |
|---|---|
| ok | was sent with the question, is in force and allowed to the caller |
| missing_id | is not in the index: invented, misspelt, or deleted since |
| not_in_context | is in the index, but was not sent: the model cannot have read it |
| not_in_force | belongs to a version that is not in force on the date |
| not_allowed | belongs to a document that the caller may not read; nothing of it is looked at or shown |

A valid id proves that a passage exists, not that it says so. So each check also tells which share of the claim's words
stand in the passage, and quotations in the claim are searched in it word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from labsupport.pipeline.answering import Answer
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.context import Context
from labsupport.pipeline.index import Filters, Index
from labsupport.pipeline.terms import content_words, words

WEAK_BELOW = 0.5
STATUSES = ("ok", "missing_id", "not_in_context", "not_in_force", "not_allowed")

_ID = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{12}(?![0-9A-Za-z])")
# Square brackets around ids, or around what a model puts where ids belong: "[7839ded2d52b.]", "[1, 2]".
_BRACKETED = re.compile(r"\[\s*[0-9a-fA-F]+(?:\s*[,;]\s*[0-9a-fA-F]+)*\s*[.,;]?\s*\](?!\()")
_QUOTED = re.compile(r"“([^“”]+)”|«\s*([^«»]+?)\s*»|\"([^\"]+)\"")


@dataclass(frozen=True)
class Check:
    """One citation of one claim. `chunk_id` is the id as read, `cited` what the answer wrote, `claim` counts from 0.

    `words_in_passage` is the share of the claim's content words found in the passage, 0.0 to 1.0; None where the
    passage is missing or not for the caller, or the claim has no content words.
    """

    claim: int
    cited: str
    chunk_id: str
    status: str
    words_in_passage: float | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def weak(self) -> bool:
        """A valid id, but fewer than half of the claim's words stand there: read it (it may be in another language)."""
        return self.ok and self.words_in_passage is not None and self.words_in_passage < WEAK_BELOW

    @property
    def flag(self) -> str:
        """"" if ok, otherwise "missing_id:c13d27947ed1"."""
        return "" if self.ok else f"{self.status}:{self.chunk_id}"


@dataclass(frozen=True)
class Checked:
    """An answer with all its checks. `grounded`: answerable, and every claim has at least one valid citation."""

    answer: Answer
    checks: tuple[Check, ...]
    uncited: tuple[int, ...]  # claims without any citation
    missing_quotations: tuple[tuple[int, str], ...]  # (claim, quotation) that stand in no passage the claim cites
    notes: tuple[str, ...]

    @property
    def grounded(self) -> bool:
        claims = range(len(self.answer.claims))
        supported = {check.claim for check in self.checks if check.ok}
        return self.answer.answerable and bool(claims) and all(claim in supported for claim in claims)

    @property
    def invalid(self) -> list[Check]:
        return [check for check in self.checks if not check.ok]

    def of(self, claim: int) -> list[Check]:
        return [check for check in self.checks if check.claim == claim]


def read_citation(cited: str) -> list[tuple[str, str]]:
    """The ids meant by one citation as written: [(id, note)]. What holds no id is given back as it stands.

    "[7839DED2D52B, c13d27947ed1.]" means two ids; "[1, 2]" means "1" and "2", which are none.
    """
    text = cited.strip()
    found = _ID.findall(text)
    if found:
        odd = "" if text in (found[0], f"[{found[0]}]") else f"read from {_short(text)!r}"
        return [(one.lower(), odd or ("upper case" if one != one.lower() else "")) for one in found]
    bracketed = re.fullmatch(r"[\[(].*[\])]\.?", text)
    parts = [part.strip(" .[]()") for part in re.split(r"[,;]", text)] if bracketed else [text]
    return [(_short(part), "no passage id") for part in parts if part] or [(_short(text), "no passage id")]


def check_answer(answer: Answer, context: Context, index: Index, filters: Filters) -> Checked:
    """Check every citation of `answer` against the passages sent, and the index, for the caller's date and audience."""
    cited: list[tuple[int, str, str, str]] = []  # claim, as written, id, note
    notes: list[str] = []
    bodies = "\n".join(chunk.text for chunk in context.kept)
    for place, claim in enumerate(answer.claims):
        meant = [(raw, *one) for raw in claim.citations for one in read_citation(raw)]
        for raw in _BRACKETED.findall(claim.text):
            if raw in bodies:
                notes.append(f"claim {place + 1} copies {raw} out of a passage: no evidence")
            else:
                meant += [(raw, chunk_id, "stands in the claim's text") for chunk_id, _ in read_citation(raw)]
        seen: set[str] = set()
        for raw, chunk_id, note in meant:
            if chunk_id in seen:
                notes.append(f"claim {place + 1} cites {chunk_id} more than once")
                continue
            seen.add(chunk_id)
            cited.append((place, raw, chunk_id, note))
    known = {chunk.chunk_id: chunk for chunk in index.get(sorted({chunk_id for _, _, chunk_id, _ in cited}))}
    checks = tuple(
        _check(Check(place, raw, one, "ok", note=note), answer.claims[place].text, known.get(one), context, filters)
        for place, raw, one, note in cited
    )
    with_citation = {check.claim for check in checks}
    uncited = tuple(place for place in range(len(answer.claims)) if place not in with_citation)
    notes += _inline_notes(answer, {check.chunk_id for check in checks}, bodies)
    if answer.answerable and not answer.claims:
        notes.append("the answer makes no claim that could be checked")
    return Checked(answer, checks, uncited, _missing_quotations(answer, checks, known), tuple(notes))


def status_of(chunk: Chunk | None, filters: Filters, sent: Iterable[str] | None = None) -> str:
    """The status of a cited chunk; `sent` are the ids of the context, None to leave that question out."""
    if chunk is None:
        return "missing_id"
    if chunk.audience == "staff" and filters.audience != "staff":
        return "not_allowed"
    if filters.as_of is not None and not in_force(chunk, filters.as_of):
        return "not_in_force"
    if sent is not None and chunk.chunk_id not in set(sent):
        return "not_in_context"
    return "ok"


def in_force(chunk: Chunk, as_of: str) -> bool:
    """Whether the chunk's version is in force on an ISO date, its last day included."""
    return chunk.effective_from <= as_of and (not chunk.effective_to or as_of <= chunk.effective_to)


def words_in_passage(claim: str, passage: str) -> float | None:
    """Share of the claim's content words that stand in the passage; None if the claim has none."""
    wanted = content_words(_BRACKETED.sub(" ", claim))
    there = set(words(passage))
    return round(sum(word in there for word in wanted) / len(wanted), 3) if wanted else None


def _check(check: Check, claim: str, chunk: Chunk | None, context: Context, filters: Filters) -> Check:
    status = status_of(chunk, filters, context.ids)
    readable = chunk is not None and status != "not_allowed"
    return replace(check, status=status, words_in_passage=words_in_passage(claim, chunk.text) if readable else None)


def _missing_quotations(answer: Answer, checks: Iterable[Check], known: dict[str, Chunk]) -> tuple:
    readable = [check for check in checks if check.status not in ("missing_id", "not_allowed")]
    missing = []
    for place, claim in enumerate(answer.claims):
        passages = [_plain(known[check.chunk_id].text) for check in readable if check.claim == place]
        for groups in _QUOTED.findall(claim.text):
            quotation = next(filter(None, groups))
            if not any(_plain(quotation) in passage for passage in passages):
                missing.append((place, quotation))
    return tuple(missing)


def _inline_notes(answer: Answer, cited: set[str], bodies: str) -> list[str]:
    """What looks like a citation in the answer's text. The text stays as it is; only claims can carry evidence."""
    notes = []
    for raw in dict.fromkeys(_BRACKETED.findall(answer.answer)):
        if raw in bodies:
            notes.append(f"the answer copies {raw} out of a passage: no evidence")
        elif any(chunk_id not in cited for chunk_id, _ in read_citation(raw)):
            notes.append(f"the answer's text holds {raw}, which no claim cites")
    return notes


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split()).strip(" .,;:!?")


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"
