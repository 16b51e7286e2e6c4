"""The sentences of a passage, verbatim and with their offsets: what an extractive answer is put together from.

A sentence is a sentence of running text, a list item or a table row. Headings and pictures are none, but each sentence
knows the heading it stands under: "They must be unused." means little without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from labsupport.pipeline.chunking import Chunk

_BLOCK = re.compile(r"\S(?:.|\n(?!\s*\n))*")
# A mark that ends a sentence, then closing quotation marks or brackets, then space and no small letter (so that
# "5 p.m. on weekdays" and "approx. 3 kg" stay whole).
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[^\sa-zà-ÿ])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|approx|incl|max|min|nos?|vs|Mrs?|Ms|Dr|St|env|p\.ex|[ap]\.m)\.\s*$")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s+")
_PICTURE = re.compile(r"\s*!?\[[^\]]*\]\([^)]*\)\s*$")


@dataclass(frozen=True)
class Sentence:
    """`body[start:end]` of its chunk is `text`. `header` is the header row when this is a table row."""

    chunk: Chunk
    start: int
    end: int
    text: str
    heading: str = ""
    header: str = ""

    @property
    def readable(self) -> str:
        """The sentence as a person would read it: a table row names its columns, a list item loses its marker."""
        if self.header:
            names, cells = self.header.split(" | "), self.text.split(" | ")
            rest = [f"{name}: {cell}" for name, cell in zip(names[1:], cells[1:], strict=False)]
            return f"{cells[0]} ({'; '.join(rest)})." if rest else self.text
        text = _LIST_ITEM.sub("", self.text, count=1)
        return " ".join(text.split())

    @property
    def in_context(self) -> str:
        """What a model judges: title and heading before the readable sentence."""
        heading = f"{self.heading}: " if self.heading else ""
        return f"{self.chunk.title}. {heading}{self.readable}"


def sentences(chunk: Chunk) -> list[Sentence]:
    """The sentences of a chunk's body, in order."""
    heading = chunk.section or ""
    header = ""
    found: list[Sentence] = []
    blocks = [match.span() for match in _BLOCK.finditer(chunk.body)]
    for place, (start, end) in enumerate(blocks):
        block = chunk.body[start:end]
        if _is_heading(block, chunk, last=place == len(blocks) - 1):
            heading = block.strip()
            continue
        if _PICTURE.match(block):
            continue
        lines = block.split("\n")
        if _is_table(lines):
            header = chunk.table_header if place == 0 and chunk.table_header else ""
        for low, high in _pieces(block, start):
            text = chunk.body[low:high]
            if _is_table(lines) and not header:
                header = text
                continue
            found.append(Sentence(chunk, low, high, text, heading, header if _is_table(lines) else ""))
    return found


def pictures(chunk: Chunk) -> list[str]:
    """The links to pictures in a chunk, as they stand there."""
    return re.findall(r"!\[[^\]]*\]\([^)\s]*\)", chunk.body)


def _is_heading(block: str, chunk: Chunk, last: bool) -> bool:
    """Plain text has no marks for headings: the breadcrumb knows it, or it is a short line without a full stop."""
    if "\n" in block.strip() or _LIST_ITEM.match(block) or " | " in block or _PICTURE.match(block):
        return False
    short = len(block) <= 80 and block.rstrip()[-1] not in ".!:;,…"
    return block.strip() in chunk.breadcrumb or (short and not last)


def _is_table(lines: list[str]) -> bool:
    return " | " in lines[0] and all(" | " in line for line in lines if line.strip())


def _pieces(block: str, offset: int) -> Iterator[tuple[int, int]]:
    """Spans of a block's sentences, list items or rows, without the space around them."""
    lines = block.split("\n")
    if _is_table(lines) or any(_LIST_ITEM.match(line) for line in lines):
        at = 0
        for line in lines:
            if line.strip():
                yield offset + at + len(line) - len(line.lstrip()), offset + at + len(line.rstrip())
            at += len(line) + 1
        return
    start = 0
    for mark in _SENTENCE_END.finditer(block):
        if not _ABBREVIATION.search(block, 0, mark.end()):
            yield offset + start, offset + start + len(block[start : mark.end()].rstrip())
            start = mark.end()
    yield offset + start, offset + len(block.rstrip())
