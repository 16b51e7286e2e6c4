"""Markdown to plain text with exact offsets.

The plain text is what chunks quote: the title line, then the document's blocks, one blank line between them. Headings
lose their marks, tables become rows of cells joined by " | ", links become their text (a picture, shown or linked to,
keeps its address), HTML comments go. Everything else stays as it was written.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

from markdown_it.token import Token

from .commonmark import Edit, Node, inline_edits, parse_blocks, split_row
from .corpus import Document


@dataclass(frozen=True)
class Block:
    """One block; `start` and `end` are character offsets in the plain text.

    `kind`: heading (with its `level`), paragraph, list, item, table, code, quote, html or rule. `rows` are a table's
    rows, header first. `children` are the items of a list and the blocks inside an item or a quotation. `pictures` are
    the addresses of the images the block shows or links to.
    """

    kind: str
    start: int
    end: int
    level: int = 0
    rows: tuple[tuple[int, int], ...] = ()
    children: tuple["Block", ...] = ()
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlainText:
    """`text` and its blocks in order. A first heading that repeats the title is the title line: it starts at 0."""

    text: str
    blocks: tuple[Block, ...]


def to_plain(document: Document) -> PlainText:
    """The plain text of a document: Unicode NFC, `\\n` line ends. No Markdown is an error."""
    source = _Source(document.source)
    text, blocks = document.title, []
    for node in source.nodes:
        body, block = source.render(node, len(text) + 2)
        if not body.strip():
            continue
        if not blocks and block.kind == "heading" and block.level == 1 and body == document.title:
            blocks.append(Block("heading", 0, len(text), level=1))
            continue
        text += "\n\n" + body
        blocks.append(block)
    return PlainText(text, tuple(blocks))


def headings(document: Document) -> list[tuple[int, str, tuple[str, ...]]]:
    """Every heading outside lists, quotations and code: level, text, and the path of headings down to it."""
    plain = to_plain(document)
    found, path = [], []
    for block in plain.blocks:
        if block.kind == "heading":
            path = extend_path(path, block.level, plain.text[block.start:block.end])
            found.append((block.level, path[-1][1], tuple(name for _, name in path)))
    return found


def extend_path(path: list[tuple[int, str]], level: int, name: str) -> list[tuple[int, str]]:
    """The chain of (level, heading) after a further heading, which ends all of its own level and deeper."""
    return [entry for entry in path if entry[0] < level] + [(level, name)]


class _Source:
    """A parsed source and the rendering of its nodes. Each rendering gives the text and its block at offset `base`."""

    def __init__(self, source: str):
        self.text = source
        self.starts = [0]  # offset of each line, and of a line after the last
        for line in source.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.nodes, self.environment = parse_blocks(source)

    def render(self, node: Node, base: int) -> tuple[str, Block]:
        if node.kind == "heading":
            return self.render_heading(node, base)
        if node.kind == "table":
            return self.render_table(node, base)
        edits, pictures = self.edits(node)
        piece = _Piece(self.text, self.starts[node.lines[0]], self.line_end(node.lines[1] - 1), edits, base)
        block = self.block(node, piece)
        return piece.text, replace(block, end=base + len(piece.text), pictures=tuple(pictures))

    def render_heading(self, node: Node, base: int) -> tuple[str, Block]:
        text, _ = self.render_inline(node.inline[0].content)
        text = " ".join(line.strip() for line in text.split("\n")).strip()
        return text, Block(node.kind, base, base + len(text), node.level)

    def render_table(self, node: Node, base: int) -> tuple[str, Block]:
        lines, rows, pictures, at = [], [], [], base
        for number in node.rows:
            cells = []
            for cell in split_row(self.text[self.starts[number]:self.line_end(number)]):
                text, seen = self.render_inline(cell)
                cells.append(text.strip())
                pictures += seen
            line = " | ".join(cells)
            if line.strip():
                lines.append(line)
                rows.append((at, at + len(line)))
                at += len(line) + 1
        text = "\n".join(lines)
        return text, Block(node.kind, base, base + len(text), rows=tuple(rows), pictures=tuple(pictures))

    def render_inline(self, content: str) -> tuple[str, list[str]]:
        edits, pictures = inline_edits(content, self.environment)
        for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
            content = content[:edit.start] + edit.text + content[edit.end:]
        return content, pictures

    def block(self, node: Node, piece: "_Piece") -> Block:
        """The block of a node inside a rendered piece, with the blocks below it."""
        start, end = piece.place(self.starts[node.lines[0]]), piece.place(self.line_end(node.lines[1] - 1))
        edges = [piece.place(self.starts[number]) for number in node.rows] + [end]
        rows = [piece.trimmed(first, after) for first, after in zip(edges, edges[1:], strict=False)]
        children = [self.block(child, piece) for child in node.children]
        return Block(node.kind, *piece.trimmed(start, end), rows=tuple(rows),
                     children=tuple(child for child in children if child.start < child.end))

    def edits(self, node: Node) -> tuple[list[Edit], list[str]]:
        """What changes in the source of a node, and its pictures."""
        found: list[Edit] = []
        pictures: list[str] = []
        cursor = 0  # cells are looked for behind the one found before
        for token in node.inline:
            edits, seen = inline_edits(token.content, self.environment)
            pictures += seen
            place = self.locate(token, cursor) if edits else None
            if place:
                cursor = place(len(token.content))
                found += [Edit(place(edit.start), place(edit.end), edit.text) for edit in edits]
        found += self.comments(node)
        return sorted(map(self.whole_lines, found), key=lambda edit: edit.start), pictures

    def comments(self, node: Node) -> list[Edit]:
        if node.kind != "html":
            return [edit for child in node.children for edit in self.comments(child)]
        found, at, end = [], self.starts[node.lines[0]], self.line_end(node.lines[1] - 1)
        while (at := self.text.find("<!--", at, end)) >= 0:
            close = self.text.find("-->", at, end)
            if close < 0:  # never closed: it is text, and text is never lost
                break
            found.append(Edit(at, close + 3))
            at = close + 3
        return found

    def whole_lines(self, edit: Edit) -> Edit:
        """An edit that would leave a blank line takes the line with it."""
        first = self.starts[bisect_right(self.starts, edit.start) - 1]
        last = self.line_end(bisect_right(self.starts, edit.end) - 1)
        if edit.text or self.text[first:edit.start].strip() or self.text[edit.end:last].strip():
            return edit
        return Edit(first, min(last + 1, len(self.text)))

    def locate(self, token: Token, cursor: int) -> Callable[[int], int] | None:
        """A function from offsets in an inline token's content to source offsets; None where the two differ."""
        begins, columns, offset = [], [], 0
        for number, line in enumerate(token.content.split("\n"), token.map[0]):
            wanted = line.strip()
            source = self.text[self.starts[number]:self.line_end(number)].rstrip()
            column = len(source) - len(wanted)
            if token.meta["cell"] or not source.endswith(wanted):  # more follows on the line
                column = self.text.find(wanted, max(cursor, self.starts[number]), self.line_end(number))
                if column < 0:
                    return None
                column -= self.starts[number]
            begins.append(offset)
            columns.append(self.starts[number] + column - (len(line) - len(line.lstrip())))
            offset += len(line) + 1

        def place(position: int) -> int:
            index = bisect_right(begins, position) - 1
            return columns[index] + position - begins[index]

        return place

    def line_end(self, number: int) -> int:
        return min(self.starts[number + 1] - 1, len(self.text))


class _Piece:
    """source[start:end] after its edits, at offset `base` of the plain text; maps source offsets to plain ones."""

    def __init__(self, source: str, start: int, end: int, edits: list[Edit], base: int):
        self.base, text, at = base, "", start
        self.froms, self.tos = [], []  # where a stretch that is kept, or replaced, begins: in the source, in the text
        for edit in [*edits, Edit(end, end)]:
            if edit.start >= at:
                self.froms += [at, edit.start]
                self.tos += [len(text), len(text) + edit.start - at]
                text += source[at:edit.start] + edit.text
                at = edit.end
        lines = text.split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        blank = next((number for number, line in enumerate(lines) if line.strip()), 0)
        self.lead = sum(len(line) + 1 for line in lines[:blank])
        self.text = "\n".join(lines[blank:])

    def place(self, offset: int) -> int:
        index = max(0, bisect_right(self.froms, offset) - 1)
        moved = self.tos[index] + offset - self.froms[index]
        if index + 1 < len(self.tos):
            moved = min(moved, self.tos[index + 1])
        return self.base + min(max(0, moved - self.lead), len(self.text))

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """Without blank lines and spaces at the end."""
        return start, start + len(self.text[start - self.base:end - self.base].rstrip())
