"""The Markdown parser, set up so that it tells where things stand: blocks by their lines, links by their characters."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import autolink, html_inline, image, link
from markdown_it.token import Token

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".bmp"}
KINDS = {"heading_open": "heading", "paragraph_open": "paragraph", "bullet_list_open": "list",
         "ordered_list_open": "list", "list_item_open": "item", "table_open": "table", "fence": "code",
         "code_block": "code", "blockquote_open": "quote", "html_block": "html", "hr": "rule"}
LABEL_STARTS = {"link": 1, "image": 2, "autolink": 1, "html_inline": 0}  # characters before the label: [ ![ <


@dataclass
class Node:
    """A block: its kind, its source lines (first, after the last), and what stands inside it.

    `inline` are the inline tokens at any depth below it; `rows` the source line of each row of a table, header first.
    """

    kind: str
    lines: tuple[int, int]
    level: int = 0
    inline: list[Token] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Edit:
    """Replace text[start:end] by `text`."""

    start: int
    end: int
    text: str = ""


def parse_blocks(source: str) -> tuple[list[Node], dict]:
    """The top-level blocks, and the parser's environment, which holds the link definitions."""
    tokens: list[Token] = []
    environment: dict = {}
    _parser().block.parse(source, _parser(), environment, tokens)
    top: list[Node] = []
    stack: list[Node] = []
    cell = False
    for token in tokens:
        if token.type in KINDS:
            level = int(token.tag[1]) if token.type == "heading_open" else 0
            node = Node(KINDS[token.type], (token.map[0], token.map[1]), level)
            (stack[-1].children if stack else top).append(node)
            if token.nesting == 1:
                stack.append(node)
        elif token.type == "inline":
            token.meta["cell"], cell = cell, False
            for node in stack:
                node.inline.append(token)
        elif token.type == "tr_open":
            stack[-1].rows.append(token.map[0])
        elif token.type in ("th_open", "td_open"):
            cell = True
        elif token.nesting == -1 and f"{token.type.removesuffix('_close')}_open" in KINDS:
            stack.pop()
    return top, environment


def inline_edits(content: str, environment: dict) -> tuple[list[Edit], list[str]]:
    """What turns inline Markdown into plain text, and the addresses of the pictures in it.

    A link becomes its text; an HTML comment goes. A picture, shown or linked to, keeps its Markdown form.
    """
    if "[" not in content and "<" not in content:
        return [], []
    tokens: list[Token] = []
    _parser().inline.parse(content, _parser(), environment, tokens)
    edits, pictures = [], []
    for token in tokens:
        if "span" not in token.meta:
            continue
        start, label, label_end, end = token.meta["span"]
        if token.type == "html_inline":
            if token.content.startswith("<!--"):
                edits.append(Edit(start, end))
            continue
        address = token.attrGet("src" if token.type == "image" else "href") or ""
        if token.type == "image" or _is_image(address):
            pictures.append(address)
            if content[start] != "<" and content[label_end:label_end + 2] != "](":  # by reference: say which
                edits.append(Edit(label_end, end, f"]({address})"))
        else:
            edits += [Edit(start, label), Edit(label_end, end)]
    return edits, pictures


def split_row(line: str) -> list[str]:
    """The cells of a table row: cut at pipes that are neither escaped nor inside a code span."""
    line = line.strip()
    cells, cell, at = [], "", 0
    while at < len(line):
        size = 1
        if line[at] == "\\":
            size = 2
        elif line[at] == "`":
            size = _code_span(line, at)
        if line[at] == "|":
            cells.append(cell)
            cell = ""
        else:
            cell += line[at:at + size]
        at += size
    if cell or not cells:
        cells.append(cell)
    return cells[1:] if line.startswith("|") and len(cells) > 1 else cells


def _code_span(line: str, at: int) -> int:
    """The length of the code span that begins at `at`, or of its backticks alone if nothing closes it."""
    run = _ticks(line, at)
    close = line.find("`", at + run)
    while close >= 0 and _ticks(line, close) != run:
        close = line.find("`", close + _ticks(line, close))
    return close + run - at if close >= 0 else run


def _ticks(line: str, at: int) -> int:
    return len(line) - at - len(line[at:].lstrip("`"))


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
            end, label = state.pos, start + LABEL_STARTS[name]
            if name in ("link", "image"):
                label_end = state.md.helpers.parseLinkLabel(state, label - 1, name == "link")
            else:
                label_end = end - 1 if name == "autolink" else end
            token = next(one for one in state.tokens[made:] if one.type in ("link_open", "image", "html_inline"))
            token.meta["span"] = (start, label, label_end, end)
        return True

    return wrapped
