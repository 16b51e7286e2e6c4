"""What is handed to the answerer: passages in search order, each under its header, within a budget of estimated tokens.

Three rules decide, in this order, about one passage after another:
1. A near-duplicate of a passage already kept from ANOTHER document is dropped. Two versions of one document are never
   merged: what differs between them is the point.
2. A passage that would exceed the budget is skipped and the next one tried: a short one lower down may still fit.
3. Everything else is kept.

The estimate is ceil(characters / 4) and needs no tokenizer. `Context.tokens` adds up the passages kept, header and text
together; the budget holds for that sum and for the joined text with its blank lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk

DEFAULT_BUDGET = 1500
NEAR_DUPLICATE = 0.9
SEPARATOR = "\n\n"

_WORD = re.compile(r"\w+")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def estimate_tokens(text: str) -> int:
    """Estimated tokens of `text`: ceil(characters / 4). Close enough for prose, and the same on every machine."""
    return -(-len(text) // 4)


def word_set(text: str) -> frozenset[str]:
    """The distinct words of `text`, case folded. A word is a run of letters, digits and underscores."""
    return frozenset(_WORD.findall(text.casefold()))


def jaccard(a: str, b: str) -> float:
    """Shared words divided by all words of both texts, 0.0 to 1.0 (Jaccard 1901). Two texts without words: 0.0."""
    return _jaccard(word_set(a), word_set(b))


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def format_header(chunk: Chunk, position: str = "") -> str:
    """The one line that names a passage: id, title, type, version, dates in force and section.

    Brackets and line breaks in a title or section become parentheses and spaces: a header cannot hold a second one.
    """
    until = f" to {chunk.effective_to}" if chunk.effective_to else ", no end date"
    version, section = _one_line(chunk.version), _one_line(chunk.section) if chunk.section else "-"
    return (
        f"[{chunk.chunk_id}] {_one_line(chunk.title)} | {chunk.doc_type}, version {version}, in force from "
        f"{chunk.effective_from}{until} | section: {section}" + (f" | {position}" if position else "")
    )


def format_passage(chunk: Chunk, position: str = "", skip: int = 0) -> str:
    """Header, newline, chunk text. `skip` leaves out that many characters at the start of the body (see `assemble`)."""
    text = chunk.text
    if skip:
        lead = text[: len(text) - len(chunk.body)]
        text = lead + chunk.body[skip:].lstrip()
    return f"{format_header(chunk, position)}\n{text}"


def _one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text).replace("[", "(").replace("]", ")").strip()


@dataclass(frozen=True)
class Context:
    """The passages kept, in order, and every passage dropped with its reason."""

    kept: tuple[Chunk, ...]
    passages: tuple[str, ...]  # what is sent for each kept chunk, header included
    dropped: tuple[tuple[str, str], ...]  # (chunk id, "near-duplicate of ID" or "over budget"), in search order
    budget: int
    restored: frozenset[str]  # kept as sibling parts of a hit; no hits themselves

    @property
    def ids(self) -> list[str]:
        return [chunk.chunk_id for chunk in self.kept]

    @property
    def tokens(self) -> int:
        """Estimated tokens of the passages kept, header and text of each."""
        return sum(estimate_tokens(passage) for passage in self.passages)

    def text(self) -> str:
        return SEPARATOR.join(self.passages)


def check_budget(budget: int) -> None:
    if isinstance(budget, bool) or not isinstance(budget, Integral) or budget <= 0:
        raise LabError(f"The budget is {budget!r}; give a whole number of estimated tokens above 0.")


def assemble(chunks: Iterable[Chunk], budget: int = DEFAULT_BUDGET, hits: Sequence[str] | None = None) -> Context:
    """Choose from `chunks` (in search order) what fits into `budget` estimated tokens; their order is kept.

    `hits` (chunk ids, best first) belongs to a narrowed search, whose chunks include restored sibling parts: hits are
    tried before restored parts, wherever they stand; each part of a cut section carries its position, and text that a
    part shares with the part just before it is not shown twice.

    Raises LabError for a budget that is not a positive whole number, and when passages were given but none fits: an
    empty context would look as if nothing had been found.
    """
    check_budget(budget)
    candidates = list({chunk.chunk_id: chunk for chunk in chunks}.values())
    place = {chunk.chunk_id: at for at, chunk in enumerate(candidates)}
    rank = place if hits is None else {chunk_id: at for at, chunk_id in enumerate(hits)}
    positions = {c.chunk_id: _position(c, c.chunk_id in rank) if hits is not None else "" for c in candidates}

    # The title line is left out: two guides may say the same about two machines.
    words = {c.chunk_id: word_set(c.text[len(c.title) :]) for c in candidates}

    def alike(a: Chunk, b: Chunk) -> bool:
        return _jaccard(words[a.chunk_id], words[b.chunk_id]) >= NEAR_DUPLICATE

    kept: list[Chunk] = []
    reasons: dict[str, str] = {}
    tokens = characters = 0
    for chunk in sorted(candidates, key=lambda c: (rank.get(c.chunk_id, len(rank)), place[c.chunk_id])):
        twin = next((o for o in kept if o.doc_id != chunk.doc_id and alike(o, chunk)), None)
        passage = format_passage(chunk, positions[chunk.chunk_id])
        joined = characters + len(passage) + (len(SEPARATOR) if kept else 0)
        if twin is not None:
            reasons[chunk.chunk_id] = f"near-duplicate of {twin.chunk_id}"
        elif tokens + estimate_tokens(passage) > budget or -(-joined // 4) > budget:
            reasons[chunk.chunk_id] = "over budget"
        else:
            kept.append(chunk)
            tokens += estimate_tokens(passage)
            characters = joined
    if candidates and not kept:
        need = min(estimate_tokens(format_passage(c, positions[c.chunk_id])) for c in candidates)
        raise LabError(
            f"A budget of {budget} estimated tokens is too small for any passage found: the smallest needs {need}; "
            f"set the budget to {need} or more."
        )
    kept.sort(key=lambda c: place[c.chunk_id])
    passages = []
    for before, chunk in zip([None, *kept], kept, strict=False):
        skip = _shared(before, chunk) if hits is not None and before else 0
        passages.append(format_passage(chunk, positions[chunk.chunk_id], skip))
    return Context(
        tuple(kept),
        tuple(passages),
        tuple((c.chunk_id, reasons[c.chunk_id]) for c in candidates if c.chunk_id in reasons),
        int(budget),
        frozenset(c.chunk_id for c in kept if c.chunk_id not in rank),
    )


def _position(chunk: Chunk, hit: bool) -> str:
    if chunk.parts == 1:
        return ""
    return f"part {chunk.part} of {chunk.parts}" + ("" if hit else ", restored")


def _shared(before: Chunk, chunk: Chunk) -> int:
    """Characters at the start of `chunk` that end `before`, when it is the next part of the same section."""
    same_section = (before.doc_id, before.version, before.section_start) == (
        chunk.doc_id, chunk.version, chunk.section_start,
    )
    return max(0, before.end - chunk.start) if same_section and chunk.part == before.part + 1 else 0
