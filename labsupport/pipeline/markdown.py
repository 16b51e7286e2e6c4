"""Markdown to plain text with exact offsets.

The plain text is what chunks quote: the title line, then the document's blocks, one blank line between them. Structure
comes from markdown-it-py (CommonMark and tables), which says which source lines each block spans and where each link is.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import autolink, html_inline, image, link
from markdown_it.token import Token

from .corpus import Document

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".bmp"}
KINDS = {"heading_open": "heading", "paragraph_open": "paragraph", "bullet_list_open": "list", "ordered_list_open": "list",
         "list_item_open": "item", "table_open": "table", "fence": "code", "code_block": "code",
         "blockquote_open": "quote", "html_block": "html", "hr": "rule"}


@dataclass(frozen=True)
class Block:
    """One block; `start` and `end` are character offsets in the plain text.

    `rows` are a table's rows, header first. `children` are the items of a list and the blocks inside an item or a
    quotation. `pictures` are the addresses of the images the block shows or links to.
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
    """`text` and its blocks in order. A first heading that repeats the title is the title line itself: it starts at 0."""

    text: str
    blocks: tuple[Block, ...]


def to_plain(document: Document) -> PlainText:
    """The plain text of a document. Unicode NFC, `\\n` line ends; never fails on any Markdown."""
    source = _Source(document.source)
    text, blocks = document.title, []
    for node in source.nodes:
        made = source.render(node, len(text) + 2)
        if made is None:
            continue
        body, block = made
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
    """The chain of (level, heading) after a further heading, which closes all of its own level and deeper."""
    return [entry for entry in path if entry[0] < level] + [(level, name)]


@dataclass
class _Node:
    """A block token with the inline and block tokens inside it."""

    token: Token
    lines: tuple[int, int]
    inline: list[Token] = field(default_factory=list)
    children: list["_Node"] = field(default_factory=list)


@dataclass(frozen=True)
class _Edit:
    """Replace source[start:end] by `text`."""

    start: int
    end: int
    text: str = ""


class _Source:
    """A parsed source: its top-level nodes, and their rendering as plain text."""

    def __init__(self, source: str):
        self.text = source
        self.env: dict = {}
        self.starts = [0]
        for line in source.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        tokens: list[Token] = []
        _parser().block.parse(source, _parser(), self.env, tokens)
        self.nodes = _tree(tokens)

    def line(self, number: int) -> str:
        return self.text[self.starts[number]:self.starts[number + 1] - 1]

    def render(self, node: _Node, base: int) -> tuple[str, Block] | None:
        """The node's text and its block, placed at offset `base`; None when nothing of it is to be read."""
        kind = KINDS[node.token.type]
        if kind == "heading":
            content = node.inline[0].content if node.inline else ""
            edits, _ = self.inline_edits(content)
            text = " ".join(line.strip() for line in _apply(content, edits).split("\n")).strip()
            return (text, Block(kind, base, base + len(text), level=int(node.token.tag[1]))) if text else None
        if kind == "table":
            return self.render_table(node, base)
        edits, pictures = self.edits(node)
        first, last = self.starts[node.lines[0]], self.starts[node.lines[1]] - 1
        piece = _Piece(self.text, first, min(last, len(self.text)), edits, base)
        if not piece.text.strip():
            return None
        return piece.text, self.block(node, piece, pictures)

    def render_table(self, node: _Node, base: int) -> tuple[str, Block] | None:
        text, rows, pictures = "", [], []
        for number in _row_lines(node):
            cells = []
            for cell in split_row(self.line(number)):
                edits, seen = self.inline_edits(cell)
                cells.append(_apply(cell, edits).strip())
                pictures += seen
            row = " | ".join(cells)
            if row.strip():
                text += ("\n" if text else "") + row
                rows.append((base + len(text) - len(row), base + len(text)))
        if not text:
            return None
        return text, Block("table", base, base + len(text), rows=tuple(rows), pictures=tuple(pictures))

    def block(self, node: _Node, piece: "_Piece", pictures: tuple[str, ...] = ()) -> Block:
        """The block of a node inside a rendered piece, with all blocks below it."""
        start, end = piece.place(self.starts[node.lines[0]]), piece.place(self.starts[node.lines[1]] - 1)
        start, end = piece.trim(start, end)
        kind, rows, children = KINDS[node.token.type], (), []
        if kind == "table":  # inside a list: the delimiter line stays with the header row
            lines = _row_lines(node)
            edges = [piece.place(self.starts[number]) for number in lines] + [end]
            rows = tuple(piece.trim(a, b) for a, b in zip(edges, edges[1:], strict=False))
        for child in node.children:
            made = self.block(child, piece)
            if made.start < made.end:
                children.append(made)
        return Block(kind, start, end, rows=rows, children=tuple(children), pictures=pictures)

    def edits(self, node: _Node) -> tuple[list[_Edit], tuple[str, ...]]:
        """What changes in the source of a node: links become their text, HTML comments go."""
        found: list[_Edit] = []
        pictures: list[str] = []
        cursor = 0
        for token in node.inline:
            if "[" not in token.content and "<" not in token.content:
                continue
            changes, seen = self.inline_edits(token.content)
            pictures += seen
            if changes:
                place = self.locate(token, cursor)
                if place:
                    cursor = place(len(token.content))
                    found += [_Edit(place(e.start), place(e.end), e.text) for e in changes]
        for html in _html(node):
            found += self.comments(self.starts[html.lines[0]], self.starts[html.lines[1]] - 1)
        return sorted((self.whole_lines(edit) for edit in found), key=lambda edit: edit.start), tuple(pictures)

    def comments(self, start: int, end: int) -> list[_Edit]:
        found = []
        while (start := self.text.find("<!--", start, end)) >= 0:
            close = self.text.find("-->", start, end)
            if close < 0:  # never closed: it is text, and text is never lost
                break
            found.append(_Edit(start, close + 3))
            start = close + 3
        return found

    def whole_lines(self, edit: _Edit) -> _Edit:
        """An edit that would leave a blank line takes the line with it."""
        first = self.text.rfind("\n", 0, edit.start) + 1
        last = self.text.find("\n", edit.end)
        last = len(self.text) if last < 0 else last
        if edit.text or self.text[first:edit.start].strip() or self.text[edit.end:last].strip():
            return edit
        return _Edit(first, min(last + 1, len(self.text)))

    def locate(self, token: Token, cursor: int):
        """A function from offsets in the token's content to offsets in the source; None if it is not found there."""
        ends, columns, offset = [], [], 0
        for number, line in enumerate(token.content.split("\n"), token.map[0] if token.map else 0):
            source, begin = self.line(number), self.starts[number]
            wanted = line.strip()
            if source.rstrip().endswith(wanted) and not token.meta.get("cell"):
                column = begin + len(source.rstrip()) - len(wanted)
            else:  # a cell, or a heading with closing marks
                column = self.text.find(wanted, max(cursor, begin), begin + len(source))
                if column < 0:
                    return None
            lead = len(line) - len(line.lstrip())
            ends.append(offset)
            columns.append((column, lead))
            offset += len(line) + 1

        def place(position: int) -> int:
            index = bisect_right(ends, position) - 1
            column, lead = columns[index]
            return column + max(0, position - ends[index] - lead)

        return place

    def inline_edits(self, content: str) -> tuple[list[_Edit], list[str]]:
        """Edits within one inline text, and the addresses of the pictures that keep their Markdown form."""
        if "[" not in content and "<" not in content:
            return [], []
        tokens: list[Token] = []
        _parser().inline.parse(content, _parser(), self.env, tokens)
        edits, pictures = [], []
        for token in tokens:
            if "span" not in token.meta:
                continue
            start, label, label_end, end = token.meta["span"]
            if token.type == "html_inline":
                if token.content.startswith("<!--"):
                    edits.append(_Edit(start, end))
                continue
            address = token.attrGet("src" if token.type == "image" else "href") or ""
            if token.type == "image" or _is_image(address):
                pictures.append(address)
                if content[label_end:label_end + 2] != "](" and content[start] != "<":  # by reference: name the address
                    edits.append(_Edit(label_end, end, f"]({address})"))
            else:
                edits += [_Edit(start, label), _Edit(label_end, end)]
        return edits, pictures


class _Piece:
    """A stretch of source after its edits, at offset `base` of the plain text; maps source offsets to plain ones."""

    def __init__(self, source: str, start: int, end: int, edits: list[_Edit], base: int):
        self.base, self.froms, self.tos, text, at = base, [], [], "", start
        for edit in [*edits, _Edit(end, end)]:
            if edit.start < at or edit.end > end + 1:
                continue
            self.froms.append(at)
            self.tos.append(len(text))
            text += source[at:edit.start]
            self.froms.append(edit.start)
            self.tos.append(len(text))
            text += edit.text
            at = edit.end
        lines = text.split("\n")
        blank = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
        self.lead = sum(len(line) + 1 for line in lines[:blank])
        while lines and not lines[-1].strip():
            lines.pop()
        self.text = "\n".join(lines[blank:])

    def place(self, offset: int) -> int:
        index = max(0, bisect_right(self.froms, offset) - 1)
        limit = self.tos[index + 1] if index + 1 < len(self.tos) else len(self.text) + self.lead
        moved = min(self.tos[index] + offset - self.froms[index], limit)
        return self.base + min(max(0, moved - self.lead), len(self.text))

    def trim(self, start: int, end: int) -> tuple[int, int]:
        """Without blank lines at the end."""
        return start, start + len(self.text[start - self.base:end - self.base].rstrip())


def split_row(line: str) -> list[str]:
    """The cells of one table row, unstripped: cut at pipes that are neither escaped nor inside a code span."""
    cells, cell, at = [], "", 0
    line = line.strip()
    while at < len(line):
        char = line[at]
        if char == "\\":
            cell += line[at:at + 2]
            at += 2
        elif char == "`":
            run = len(line) - at - len(line[at:].lstrip("`"))
            close = _closing_ticks(line, at + run, run)
            stop = close + run if close >= 0 else at + run
            cell += line[at:stop]
            at = stop
        elif char == "|":
            cells.append(cell)
            cell, at = "", at + 1
        else:
            cell += char
            at += 1
    if cell.strip() or not line.endswith("|"):
        cells.append(cell)
    return cells[1:] if line.startswith("|") else cells


def _closing_ticks(line: str, at: int, run: int) -> int:
    while (at := line.find("`", at)) >= 0:
        length = len(line) - at - len(line[at:].lstrip("`"))
        if length == run:
            return at
        at += length
    return -1


def _tree(tokens: list[Token]) -> list[_Node]:
    top: list[_Node] = []
    stack: list[_Node] = []
    cell = False
    for token in tokens:
        if token.type in KINDS:
            lines = tuple(token.map)
            node = _Node(token, lines)
            (stack[-1].children if stack else top).append(node)
            if token.nesting == 1:
                stack.append(node)
        elif token.type == "inline":
            token.meta["cell"], cell = cell, False
            for node in stack:
                node.inline.append(token)
        elif token.type == "tr_open":
            stack[-1].token.meta.setdefault("rows", []).append(token.map[0])
        elif token.type in ("td_open", "th_open"):
            cell = True
        elif token.nesting == -1 and stack and token.type == stack[-1].token.type.replace("_open", "_close"):
            stack.pop()
    return top


def _row_lines(node: _Node) -> list[int]:
    return node.token.meta["rows"]


def _html(node: _Node) -> list[_Node]:
    own = [node] if node.token.type == "html_block" else []
    return own + [found for child in node.children for found in _html(child)]


def _apply(text: str, edits: list[_Edit]) -> str:
    for edit in reversed(sorted(edits, key=lambda edit: edit.start)):
        text = text[:edit.start] + edit.text + text[edit.end:]
    return text


def _is_image(address: str) -> bool:
    try:
        return PurePosixPath(urlsplit(address).path).suffix.lower() in IMAGE_SUFFIXES
    except ValueError:
        return False


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    for name, rule in (("link", link), ("image", image), ("autolink", autolink), ("html_inline", html_inline)):
        parser.inline.ruler.at(name, _recording(name, rule))
    return parser


def _recording(name: str, rule):
    """The parser's own rule, which then notes on its token where it stood: start, label start, label end, end."""

    def wrapped(state, silent: bool) -> bool:
        start, made = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            types = {"link_open", "image", "html_inline"}
            token = next(token for token in state.tokens[made:] if token.type in types)
            label = start + {"link": 1, "image": 2, "autolink": 1, "html_inline": 0}[name]
            if name == "autolink":
                label_end = state.pos - 1
            elif name == "html_inline":
                label_end = state.pos
            else:
                label_end = state.md.helpers.parseLinkLabel(state, label - 1, name == "link")
            token.meta["span"] = (start, label, label_end, state.pos)
        return True

    return wrapped
