"""Cutting a document into chunks: along its headings (the default), by a fixed number of words, or by paragraphs.

Every chunk quotes the plain text exactly: its body is `plain.text[start:end]`. Together the chunks of a document cover
all of it after the title line, blank lines aside.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import PurePosixPath
from typing import Protocol

from . import LabError
from .corpus import Document
from .fitting import covered_end, fit, line_start
from .markdown import Block, PlainText, to_plain
from .sections import Section, is_text, merge, sections

LIMIT = 400  # tokens, title line included; the default embedding model reads 512
CountTokens = Callable[[str], int]
SHARED = ("doc_id", "version", "title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One passage of one document version. `start` and `end` are character offsets in the document's plain text.

    `kind`: section, subsection (names its `parent`), merged (short subsections taken in), loose (under no heading).
    `section` is the heading it stands under, `breadcrumb` the chain of headings down to it. A section too long for the
    model is cut: this is then `part` of `parts`, and all parts share `section_start`. A part that begins inside a table
    repeats the header row in `table_header`.
    """

    chunk_id: str
    doc_id: str
    version: str
    seq: int
    start: int
    end: int
    title: str
    section: str | None
    breadcrumb: tuple[str, ...]
    parent: str | None
    kind: str
    content_kind: str
    part: int = 1
    parts: int = 1
    section_start: int = 0
    doc_type: str
    audience: str
    language: str
    effective_from: str
    effective_to: str | None
    owner: str
    table_header: str = ""
    body: str

    @property
    def text(self) -> str:
        """What is embedded, searched and sent: the title line, a repeated table header if any, the body."""
        header = self.table_header + "\n" if self.table_header else ""
        return f"{self.title}\n{header}{self.body}"

    @property
    def label(self) -> str:
        return f"{self.doc_id} v{self.version}"

    def as_dict(self) -> dict:
        """Ready for JSON."""
        return asdict(self) | {"breadcrumb": list(self.breadcrumb)}

    @classmethod
    def from_dict(cls, values: dict) -> "Chunk":
        known = {entry.name: values[entry.name] for entry in fields(cls)}
        return cls(**known | {"breadcrumb": tuple(values["breadcrumb"])})


def chunk_id(doc_id: str, version: str, start: int, end: int) -> str:
    """Twelve hex digits: the same as long as the text stands at the same place of the same document version."""
    return hashlib.sha256(f"{doc_id}|{version}|{start}|{end}".encode()).hexdigest()[:12]


class Chunker(Protocol):
    """`name` tells all parameters: an index made with another name must be rebuilt. `label` is its short form."""

    name: str
    label: str

    def chunk(self, document: Document) -> list[Chunk]: ...


class StructureChunker:
    """One chunk for each section of the heading tree, cut again where it is over `limit` tokens."""

    label = "structure"

    def __init__(self, count_tokens: CountTokens, limit: int = LIMIT):
        _check_limit(limit)
        self.count_tokens, self.limit = count_tokens, limit
        self.name = f"structure(limit={limit},overlap=1,v1)"

    def chunk(self, document: Document) -> list[Chunk]:
        plain = to_plain(document)

        def fits(start: int, end: int) -> bool:
            return self.count_tokens(f"{document.title}\n{plain.text[start:end]}") <= self.limit

        return _chunks(document, plain, merge(sections(plain), fits), self.count_tokens, self.limit)


class FixedChunker:
    """Windows of `words` words, `overlap` of them repeated: blind to headings, sentences and tables, for comparison."""

    def __init__(self, words: int, overlap: int, count_tokens: CountTokens | None = None, limit: int = LIMIT):
        if words < 1 or overlap < 0 or overlap >= words:
            raise LabError(f"A fixed cut of {words} words with {overlap} repeated is not possible: the size must be at "
                           "least 1 and the overlap from 0 to one less than the size.")
        _check_limit(limit)
        self.words, self.overlap, self.count_tokens, self.limit = words, overlap, count_tokens, limit
        self.label = f"fixed_{words}_{overlap}"
        self.name = f"fixed(words={words},overlap={overlap},limit={limit if count_tokens else 'none'},v1)"

    def chunk(self, document: Document) -> list[Chunk]:
        plain = to_plain(document)
        starts = _word_starts(plain)
        places = [*starts, len(plain.text)]
        units, first, stop = [], 0, 0
        while stop < len(starts):
            reached = self.reach(document, plain, places, first)
            if reached <= stop:  # long words: the repeated ones alone fill the limit
                first = stop
                continue
            stop = reached
            window = Block("paragraph", places[first], covered_end(plain.text, places[first], places[stop]))
            units.append(Section((window,), kind="loose"))
            first = max(first + 1, stop - self.overlap)
        return _chunks(document, plain, units, self.count_tokens, self.limit)

    def reach(self, document: Document, plain: PlainText, places: Sequence[int], first: int) -> int:
        """The index after the last word of a window: `words` further on, or fewer where the limit is reached."""
        stop = min(first + self.words, len(places) - 1)
        while self.count_tokens and stop > first + 1 and \
                self.count_tokens(f"{document.title}\n{plain.text[places[first]:places[stop]]}") > self.limit:
            stop -= max(1, (stop - first) // 20)
        return stop


class ParagraphChunker:
    """One chunk for each block (a paragraph, a list, a table), with the headings directly above it."""

    label = "paragraphs"

    def __init__(self, count_tokens: CountTokens | None = None, limit: int = LIMIT):
        _check_limit(limit)
        self.count_tokens, self.limit = count_tokens, limit
        self.name = f"paragraphs(limit={limit if count_tokens else 'none'},v1)"

    def chunk(self, document: Document) -> list[Chunk]:
        plain, units = to_plain(document), []
        for section in sections(plain):
            blocks: list[Block] = []
            for block in section.blocks:
                blocks.append(block)
                if is_text(block):
                    units.append(replace(section, blocks=tuple(blocks)))
                    blocks = []
            if blocks and len(blocks) < len(section.blocks):  # a rule at the end
                units[-1] = replace(units[-1], blocks=(*units[-1].blocks, *blocks))
            elif blocks:
                units.append(replace(section, blocks=tuple(blocks)))
        return _chunks(document, plain, units, self.count_tokens, self.limit)


def make_chunker(label: str, embedder) -> Chunker:
    """The chunker called "structure", "paragraphs", "fixed" or "fixed_WORDS_OVERLAP", its limit set by the embedder.

    `embedder` needs `count_tokens` and `max_tokens`; the limit is well below the latter (400 for 512).
    """
    limit = min(LIMIT, embedder.max_tokens * 25 // 32)
    if label == "structure":
        return StructureChunker(embedder.count_tokens, limit)
    if label == "paragraphs":
        return ParagraphChunker(embedder.count_tokens, limit)
    name, *numbers = label.split("_")
    if name == "fixed" and (not numbers or len(numbers) == 2 and all(number.isdecimal() for number in numbers)):
        words, overlap = (int(number) for number in numbers or ("120", "20"))
        return FixedChunker(words, overlap, embedder.count_tokens, limit)
    raise LabError(f"No chunker {label}; use structure, paragraphs, fixed or fixed_WORDS_OVERLAP such as fixed_48_16.")


def _chunks(document: Document, plain: PlainText, units: Sequence[Section], count_tokens: CountTokens | None,
            limit: int) -> list[Chunk]:
    def count(header: str, body: str) -> int:
        lines = [document.title, header, body] if header else [document.title, body]
        return count_tokens("\n".join(lines)) if count_tokens else 0

    made: list[Chunk] = []
    shared = {name: getattr(document, name) for name in SHARED}
    for unit in units:
        try:
            parts = fit(plain.text, unit.blocks, count, limit)
        except LabError as error:
            raise LabError(f"{document.path}: {error}") from None
        shared |= {"section": unit.section, "breadcrumb": unit.breadcrumb, "parent": unit.parent, "kind": unit.kind,
                   "content_kind": _content_kind(document, unit), "section_start": unit.start}
        for number, part in enumerate(parts, 1):
            made.append(Chunk(
                **shared, chunk_id=chunk_id(document.doc_id, document.version, part.start, part.end),
                seq=len(made) + 1, start=part.start, end=part.end, part=number, parts=len(parts),
                table_header=part.header, body=plain.text[part.start:part.end]))
    return made


def _content_kind(document: Document, unit: Section) -> str:
    """Screen: a screen guide, or a section that shows a picture from a folder named screens."""
    shown = any("screens" in PurePosixPath(address).parts for block in unit.blocks for address in block.pictures)
    return "screen" if shown or document.doc_type == "screen guide" else "prose"


def _word_starts(plain: PlainText) -> list[int]:
    """Where each word after the title line starts; indentation belongs to the word it stands before."""
    at = next((block.start for block in plain.blocks if block.start > 0), len(plain.text))
    starts = []
    for word in plain.text[at:].split():
        found = plain.text.index(word, at)
        starts.append(line_start(plain.text, found))
        at = found + len(word)
    return starts


def _check_limit(limit: int) -> None:
    if limit < 1:
        raise LabError(f"A limit of {limit} tokens is not possible: give at least 1.")
