"""Cutting a document into chunks: along its headings (the default), by a fixed number of words, or by paragraphs.

Every chunk quotes the plain text exactly: its body is `plain.text[start:end]`. Together the chunks of a document cover
all of it after the title line, blank lines aside.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import PurePosixPath
from typing import Protocol

from . import LabError
from .corpus import Document
from .fitting import covered_end, fit
from .markdown import Block, PlainText, extend_path, to_plain

LIMIT = 400  # tokens, title line included; the default embedding model reads 512
SHORT = 200  # characters: a subsection up to this length reads better with its parent
CountTokens = Callable[[str], int]


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

        return _chunks(document, plain, _merge(sections(plain), fits), self.count_tokens, self.limit)


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
        units = [Section((Block("paragraph", start, end),), kind="loose") for start, end in self.windows(plain)]
        return _chunks(document, plain, units, self.count_tokens, self.limit)

    def windows(self, plain: PlainText) -> Iterable[tuple[int, int]]:
        text, starts, ends = plain.text, [], []
        at = _body_start(plain)
        for word in text[at:].split():
            starts.append(text.index(word, at))
            at = starts[-1] + len(word)
            ends.append(at)
        for first in range(0, len(starts), self.words - self.overlap):
            stop = min(first + self.words, len(starts))
            cut = starts[stop] if stop < len(starts) else ends[-1]
            yield starts[first], covered_end(text, starts[first], cut)
            if stop == len(starts):
                return


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
                if _is_text(block):
                    units.append(replace(section, blocks=tuple(blocks)))
                    blocks = []
            if blocks and units and units[-1].breadcrumb == section.breadcrumb:  # a rule at the end
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


@dataclass(frozen=True)
class Section:
    """What becomes one chunk, or its parts: consecutive blocks under one heading."""

    blocks: tuple[Block, ...]
    kind: str
    path: tuple[tuple[int, str], ...] = field(default=())

    @property
    def start(self) -> int:
        return self.blocks[0].start

    @property
    def end(self) -> int:
        return self.blocks[-1].end

    @property
    def breadcrumb(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.path)

    @property
    def section(self) -> str | None:
        return self.path[-1][1] if self.kind != "loose" else None

    @property
    def parent(self) -> str | None:
        deep = self.kind != "loose" and len(self.path) > 1 and self.path[-1][0] > 2
        return self.path[-2][1] if deep else None


def sections(plain: PlainText) -> list[Section]:
    """The text under each heading, in order. A heading without text of its own goes to the head of what is below it."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    carried: list[Block] = []
    groups = _groups(plain)
    for number, group in enumerate(groups):
        heading = group[0] if group[0].kind == "heading" else None
        if heading:
            path = extend_path(path, heading.level, plain.text[heading.start:heading.end])
            if heading.start == 0:  # the title line, which every chunk carries anyway
                heading, group = None, group[1:]
        below = groups[number + 1:number + 2]
        if below and not any(map(_is_text, group)) and (heading is None or below[0][0].level > heading.level):
            carried += group
        elif carried or group:
            found.append(Section((*carried, *group), _kind(heading, path), tuple(path)))
            carried = []
    if len(found) > 1 and not any(_is_text(block) for block in plain.blocks):
        shared = tuple(entry for entry in found[0].path if all(entry in other.path for other in found))
        return [Section(tuple(block for one in found for block in one.blocks), "section" if shared else "loose", shared)]
    return found


def _kind(heading: Block | None, path: list[tuple[int, str]]) -> str:
    if heading is None:
        return "loose"
    return "subsection" if heading.level > 2 and len(path) > 1 else "section"


def _groups(plain: PlainText) -> list[list[Block]]:
    """The blocks before the first heading, if any, then each heading with the blocks that follow it."""
    groups: list[list[Block]] = []
    for block in plain.blocks:
        if block.kind == "heading" or not groups:
            groups.append([])
        groups[-1].append(block)
    return groups


def _merge(units: list[Section], fits: Callable[[int, int], bool]) -> list[Section]:
    """Short subsections that directly follow their parent's own text are taken into it while the whole fits."""
    merged: list[Section] = []
    open_ = False  # may the next subsection still join the last entry?
    for unit in units:
        if merged and open_:
            parent = merged[-1]
            below = unit.path[:len(parent.path)] == parent.path and len(unit.path) > len(parent.path)
            if below and unit.path[-1][0] > 2 and unit.end - unit.start <= SHORT and fits(parent.start, unit.end):
                merged[-1] = replace(parent, blocks=parent.blocks + unit.blocks, kind="merged")
                continue
        merged.append(unit)
        open_ = unit.kind != "loose" and any(map(_is_text, unit.blocks))
    return merged


def _chunks(document: Document, plain: PlainText, units: Sequence[Section], count_tokens: CountTokens | None,
            limit: int) -> list[Chunk]:
    def count(header: str, body: str) -> int:
        return count_tokens(f"{document.title}\n{header}\n{body}" if header else f"{document.title}\n{body}")

    made: list[Chunk] = []
    shared = {name: getattr(document, name) for name in ("doc_id", "version", "title", "doc_type", "audience", "language",
                                                         "effective_from", "effective_to", "owner")}
    for unit in units:
        parts = fit(plain.text, unit.blocks, count if count_tokens else lambda header, body: 0, limit)
        for number, part in enumerate(parts, 1):
            made.append(Chunk(
                **shared, chunk_id=chunk_id(document.doc_id, document.version, part.start, part.end), seq=len(made) + 1,
                start=part.start, end=part.end, section=unit.section,
                breadcrumb=unit.breadcrumb, kind=unit.kind, content_kind=_content_kind(document, unit),
                parent=unit.parent, part=number, parts=len(parts),
                section_start=unit.start, table_header=part.header, body=plain.text[part.start:part.end]))
    return made


def _content_kind(document: Document, unit: Section) -> str:
    """Screen: a screen guide, or a section that shows a picture from a folder named screens."""
    shown = any("screens" in PurePosixPath(address).parts for block in unit.blocks for address in block.pictures)
    return "screen" if shown or document.doc_type == "screen guide" else "prose"


def _is_text(block: Block) -> bool:
    return block.kind not in ("heading", "rule")


def _body_start(plain: PlainText) -> int:
    return next((block.start for block in plain.blocks if block.start > 0), len(plain.text))


def _check_limit(limit: int) -> None:
    if limit < 1:
        raise LabError(f"A limit of {limit} tokens is not possible: give at least 1.")
