"""The chunk explorer: one document cut four ways, with the borders shown on its text.

`chunks_view` gives the same content without a widget. A border that falls inside a paragraph, list or table is
marked with scissors and named: that is how a cut by counting words fails, and nothing else tells.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import ipywidgets as widgets

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk, make_chunker
from labsupport.pipeline.corpus import Document
from labsupport.pipeline.markdown import PlainText, to_plain

from .base import Panel, View, escape, make_view
from .controls import label_width, slider_row

NAME = "ChunksPanel"
WIDTH = 100  # of a line of the text alternative
CUTS = (("Structure: along the headings", "structure"), ("Fixed: a number of words", "fixed"),
        ("Fixed, with words repeated", "overlap"), ("Paragraphs", "paragraphs"))

CSS = """
.lab-panel .lab-cut { white-space: pre-wrap; overflow-wrap: anywhere; }
.lab-cut .border { display: block; font-size: 0.85em; margin-top: 10px; padding: 1px 6px;
  border-top: 2px solid #1f88c4; }
.lab-cut .border.inside { border-top: 2px dashed #cf6a1d; }
.lab-cut .odd { background: rgba(31, 136, 196, 0.12); }
.lab-cut .again { background: rgba(207, 106, 29, 0.22); text-decoration: underline dotted; }
.lab-cut .none { opacity: 0.7; }
"""


class Counter(Protocol):
    """Any embedder will do: it is asked only how long a text is."""

    max_tokens: int

    def count_tokens(self, text: str) -> int: ...


@dataclass(frozen=True)
class Piece:
    """A run of the plain text: the chunks it belongs to (numbers, from 1) and the chunk that starts with it, if any."""

    text: str
    chunks: tuple[int, ...]
    opens: Chunk | None = None

    @property
    def kind(self) -> str:
        if len(self.chunks) == 1:
            return ("even", "odd")[self.chunks[0] % 2]
        return "again" if self.chunks else "none"

    @property
    def place(self) -> str:
        return f"chunk {' and '.join(map(str, self.chunks))}" if self.chunks else "the title line, part of every chunk"


def cut_label(cut: str, words: int = 48, repeated: int = 16) -> str:
    """The chunker's name for one of the four ways."""
    return {"fixed": f"fixed_{words}_0", "overlap": f"fixed_{words}_{repeated}"}.get(cut, cut)


def chunks_view(document: Document, cut: str, counter: Counter) -> View:
    """One document under one way of cutting: "structure", "paragraphs" or such as "fixed_48_16"."""
    plain, chunks = to_plain(document), make_chunker(cut, counter).chunk(document)
    split = {chunk.seq: torn(plain, chunk.start) for chunk in chunks}
    inside = sum(bool(what) for what in split.values())
    repeated = sum(len(piece.text.split()) for piece in pieces(plain, chunks) if len(piece.chunks) > 1)
    summary = (f"cut {cut}, {document.label}: {len(chunks)} chunk{'' if len(chunks) == 1 else 's'}, {inside} "
               f"border{'' if inside == 1 else 's'} inside a block, {repeated} words repeated")
    html, lines = [], [summary + "."]
    for piece in pieces(plain, chunks):
        if not piece.chunks and not piece.text.strip():
            continue
        if piece.opens:
            what = split[piece.opens.seq]
            said = describe(piece.opens, what)
            sign = "✂" if what else "▼"
            html.append(f'<span class="border{" inside" if what else ""}">{sign} {escape(said)}</span>')
            lines += ["", said]
        lines += _in_words(piece)
        html.append(f'<span class="{piece.kind}" title="{piece.place}">{escape(piece.text)}</span>')
    key = "✂ the border is inside a paragraph, heading, list or table. Dotted underline: words that two chunks hold."
    body = f'<p class="quiet">{key}</p><div class="lab-cut">{"".join(html)}</div>'
    return make_view(NAME, summary, body, "\n".join(lines), CSS)


def pieces(plain: PlainText, chunks: Sequence[Chunk]) -> Iterator[Piece]:
    """The plain text in runs that lie in the same chunks."""
    starts = {chunk.start: chunk for chunk in chunks}
    places = sorted({0, len(plain.text), *starts, *(chunk.end for chunk in chunks)})
    for start, end in zip(places, places[1:], strict=False):
        inside = tuple(chunk.seq for chunk in chunks if chunk.start <= start and end <= chunk.end)
        yield Piece(plain.text[start:end], inside, starts.get(start))


def torn(plain: PlainText, at: int) -> str:
    """What a border at this offset tears apart: "" where it lies between two blocks."""
    for block in plain.blocks:
        if block.start < at < block.end:
            rows_or_items = [start for start, _ in block.rows] or [item.start for item in block.children]
            return f"between two parts of a {block.kind}" if at in rows_or_items else f"inside a {block.kind}"
    return ""


def describe(chunk: Chunk, what: str) -> str:
    part = f", part {chunk.part} of {chunk.parts}" if chunk.parts > 1 else ""
    header = ", table header repeated" if chunk.table_header else ""
    section = f" | {' > '.join(chunk.breadcrumb)}" if chunk.breadcrumb else ""
    return (f"chunk {chunk.seq} [{chunk.chunk_id}] characters {chunk.start} to {chunk.end}, {len(chunk.body.split())} "
            f"words, {chunk.kind}{part}{header}{', starts ' + what if what else ''}{section}")


def _in_words(piece: Piece) -> Iterator[str]:
    """All of a piece's text, its paragraphs and rows kept, under a line that names its chunks if they are not one.

    Where repeated words end within a line, the rest of it begins with dots.
    """
    text, count = piece.text.strip(), len(piece.text.split())
    if not piece.chunks or piece.text.startswith("\n\n") and not piece.opens:
        yield ""
    if piece.chunks and not piece.opens and not piece.text.startswith("\n"):
        text = f"… {text}"
    if len(piece.chunks) > 1 and count:
        them = f"the next {count} words stand" if count > 1 else "the next word stands"
        yield f"   ({them} in {' and '.join(f'chunk {number}' for number in piece.chunks)})"
    elif not piece.chunks:
        yield f"   ({piece.place})"
    for line in text.split("\n"):
        hanging = line.startswith("- ") or " | " in line
        yield textwrap.fill(line, WIDTH, initial_indent="   ", subsequent_indent="     " if hanging else "   ",
                            break_long_words=False, break_on_hyphens=False) if line.strip() else ""


class ChunksPanel(Panel):
    """Choose a document and a way of cutting. Controls: `.document`, `.cut`, `.words`, `.repeated` (with boxes)."""

    def __init__(self, documents: Sequence[Document], counter: Counter, document: str = "", cut: str = "structure"):
        if not documents:
            raise LabError("There is no document to cut: give at least one.")
        self.documents, self.counter = {one.label: one for one in documents}, counter
        wide = {"style": label_width(), "layout": widgets.Layout(width="420px")}
        names = list(self.documents)
        first = next((name for name in names if document in (name, self.documents[name].doc_id)), names[0])
        self.document = widgets.Dropdown(options=names, value=first, description="Document", **wide)
        self.cut = widgets.Dropdown(options=CUTS, value=cut, description="Cut", **wide)
        self.words, self.words_box, words = slider_row("Words", 48, 8, 200, 4, "in a chunk")
        self.repeated, self.repeated_box, repeated = slider_row("Repeated", 16, 0, 100, 4, "of them again in the next")
        rows = [widgets.HBox([self.document, self.cut], layout=widgets.Layout(flex_flow="row wrap")), words, repeated]
        super().__init__(rows, [self.document, self.cut, self.words, self.repeated], height=460)

    def look(self) -> View:
        cut = self.cut.value
        self.words.disabled = self.words_box.disabled = cut not in ("fixed", "overlap")
        self.repeated.disabled = self.repeated_box.disabled = cut != "overlap"
        label = cut_label(cut, self.words.value, self.repeated.value)
        return chunks_view(self.documents[self.document.value], label, self.counter)


def chunks_panel(documents: Sequence[Document], counter: Counter, document: str = "",
                 cut: str = "structure") -> ChunksPanel:
    return ChunksPanel(documents, counter, document, cut)
