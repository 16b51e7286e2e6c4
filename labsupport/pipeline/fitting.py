"""Fitting a stretch of plain text into a token limit: where to cut what is too long.

Places to cut are ranked: between blocks, then between list items or table rows, then between sentences (in code,
lines), then between words, and inside a word only if that word alone is too long. A block that fits is never cut.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from . import LabError
from .markdown import Block

SENTENCE, WORD, INSIDE_WORD = 50, 60, 70  # ranks after every structural one
OVERLAP_SHARE = 5  # an overlap takes at most a fifth of the limit
OVERLAP_WORDS = 8  # where one sentence is more than that
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]*_]*\s+(?=[\"'“‘«(\[*_¿¡]*[^\W_a-zß-öø-ÿ])")
_GAP = re.compile(r"\s+")


@dataclass(frozen=True)
class Part:
    """text[start:end] of the plain text; `header` is the table header row the part must repeat before it."""

    start: int
    end: int
    header: str = ""


def fit(text: str, blocks: Sequence[Block], count: Callable[[str, str], int], limit: int) -> list[Part]:
    """Parts that cover the blocks, each of at most `limit` tokens.

    `count(header, body)` gives the tokens of what is embedded for a part, title line included. Parts of running text
    overlap by about one sentence; table rows, list items and code never do.
    """
    start, end = blocks[0].start, blocks[-1].end
    if count("", text[start:end]) <= limit:
        return [Part(start, end)]
    return _Cutter(text, blocks, count, limit).parts()


def covered_end(text: str, start: int, cut: int) -> int:
    """Where a part ends that is cut at `cut`: a space or line end before the cut belongs to it, blank lines do not."""
    last = start + len(text[start:cut].rstrip(" \t\n"))
    return text.index("\n", last) if text.count("\n", last, cut) > 1 else cut


def line_start(text: str, place: int) -> int:
    """The start of the line if only indentation stands between it and `place`, else `place`."""
    first = place
    while first and text[first - 1].isspace() and text[first - 1] != "\n":
        first -= 1
    return first if first == 0 or text[first - 1] == "\n" else place


class _Cutter:
    def __init__(self, text: str, blocks: Sequence[Block], count: Callable[[str, str], int], limit: int):
        self.text, self.blocks, self.count, self.limit = text, blocks, count, limit
        self.start, self.end = blocks[0].start, blocks[-1].end
        self.leaves = [leaf for block in blocks for leaf in _leaves(block)]
        self.tables = [leaf for leaf in self.leaves if leaf.kind == "table" and self.repeats_header(leaf)]
        self.cuts: dict[int, int] = {}
        self.glued: set[int] = set()  # starts of what stays with the text before it: a heading's text, an item's table

    def parts(self) -> list[Part]:
        self.blocks_inside(self.blocks, self.start, 0)
        self.refine(self.first_rows, SENTENCE)
        self.refine(self.sentence_starts, SENTENCE)
        self.refine(self.code_starts, SENTENCE)
        self.refine(self.word_starts, WORD)
        self.refine(self.anywhere, INSIDE_WORD)
        return list(self.pack())

    def fits(self, start: int, end: int) -> bool:
        end = covered_end(self.text, start, end)
        return self.count(self.header(start), self.text[start:end]) <= self.limit

    def header(self, start: int) -> str:
        for table in self.tables:
            if table.rows[1][0] <= start < table.end:
                return self.text[slice(*table.rows[0])]
        return ""

    def repeats_header(self, table: Block) -> bool:
        """A header row that would fill half of every part is not repeated."""
        return len(table.rows) > 1 and self.count(self.text[slice(*table.rows[0])], "") * 2 <= self.limit

    # Structural places to cut

    def blocks_inside(self, blocks: Sequence[Block], begin: int, depth: int) -> None:
        """Cuts between blocks, never after a heading or a line that announces what follows with a colon.

        `begin` is where the text starts that stays with the first block.
        """
        begin_next, glued = begin, True
        for block in blocks:
            if glued:
                self.glued.add(block.start)
            else:
                self.cuts[block.start] = depth
                begin_next = block.start
            glued = block.kind == "heading" or block.kind == "paragraph" and self.text[block.end - 1] == ":"
            if not self.fits(begin_next, block.end):
                self.inside(block, begin_next, depth + 1)

    def inside(self, block: Block, begin: int, depth: int) -> None:
        if block.kind == "list":
            for item in block.children:
                if item.start > block.start:
                    self.cuts[item.start] = depth
                    begin = item.start
                if not self.fits(begin, item.end):
                    self.inside(item, begin, depth + 1)
        elif block.kind == "item" and block.children:
            lead, rest = block.children[:2], block.children[2:]  # an item's first line keeps what hangs on it
            for child in lead:
                self.glued.add(child.start)
                if not self.fits(begin, child.end):
                    self.inside(child, begin, depth + 1)
            for child in rest:
                self.cuts[child.start] = depth
                if not self.fits(child.start, child.end):
                    self.inside(child, child.start, depth + 1)
        elif block.kind == "quote":
            self.blocks_inside(block.children, begin, depth)
        elif block.kind == "table":
            for row in block.rows[2:]:
                self.cuts[row[0]] = depth

    # Finer places, only where a stretch between two cuts is still too long

    def refine(self, places: Callable[[int, int], Iterable[int]], rank: int) -> None:
        edges = [self.start, *sorted(self.cuts), self.end]
        for start, end in zip(edges, edges[1:], strict=False):
            if not self.fits(start, end):
                for place in places(start, end):
                    if start < place < end:
                        self.cuts[place] = rank

    def first_rows(self, start: int, end: int) -> Iterable[int]:
        """A row stays whole, even if it must part from the header, which is then repeated."""
        return (leaf.rows[1][0] for leaf in self.leaves if len(leaf.rows) > 1)

    def sentence_starts(self, start: int, end: int) -> Iterable[int]:
        for leaf in self.leaves:
            first, last = max(leaf.start, start), min(leaf.end, end)
            if leaf.kind != "code":
                yield from _sentences(self.text, first, last)
            elif not self.fits(leaf.start, leaf.end):
                yield from _line_starts(self.text, first, last)
            if leaf.start not in self.glued:
                yield leaf.start

    def code_starts(self, start: int, end: int) -> Iterable[int]:
        """Code that fits alone stays whole, even if it must part from the line above it."""
        return (leaf.start for leaf in self.leaves if leaf.kind == "code")

    def word_starts(self, start: int, end: int) -> Iterable[int]:
        return (line_start(self.text, gap.end()) for gap in _GAP.finditer(self.text, start, end))

    def anywhere(self, start: int, end: int) -> Iterable[int]:
        while not self.fits(start, end):
            place = _furthest(partial(self.fits, start), start, end)
            while place > start and unicodedata.combining(self.text[place]):
                place -= 1
            if place == start:
                raise LabError(f"{self.limit} tokens leave no room for text beside the title line; shorten the title "
                               "or raise the limit.")
            yield place
            start = place

    # Filling the parts

    def pack(self) -> Iterable[Part]:
        places = [*sorted(self.cuts), self.end]
        start = done = self.start
        while True:
            first = bisect_right(places, max(start, done))  # an overlap must not end where the part before it did
            last = _furthest(lambda index, start=start: self.fits(start, places[index]), first, len(places))
            reached = places[last]
            if reached == self.end:
                yield Part(start, self.end, self.header(start))
                return
            half = start + (reached - start) / 2
            near = (place for place in places[first:last + 1] if place >= half)
            cut = min(near, key=lambda place: (self.cuts[place], -place))
            yield Part(start, covered_end(self.text, start, cut), self.header(start))
            start, done = self.overlapping(start, cut, places), cut

    def overlapping(self, start: int, cut: int, places: list[int]) -> int:
        """The start of the part after `cut`: about one sentence earlier in running text, else the cut itself."""
        before, after = self.leaf(cut - 1), self.leaf(cut)
        if not before or not after or before.kind != "paragraph" or after.kind != "paragraph":
            return cut
        if before != after and not (before in self.blocks and after in self.blocks):
            return cut  # two list items
        since = max(before.start, start)
        sentences = list(_sentences(self.text, since, cut))
        words = [place for place in self.word_starts(since, cut) if place < cut]
        for place in (*sentences[-1:], before.start, *words[-OVERLAP_WORDS:][:1]):
            small = self.count("", self.text[place:cut]) - self.count("", "") <= self.limit // OVERLAP_SHARE
            if start < place < cut and small and self.fits(place, places[bisect_right(places, cut)]):
                return place
        return cut

    def leaf(self, place: int) -> Block | None:
        """The leaf block around `place`, or the one before the blank line it lies in."""
        index = bisect_right(self.leaves, place, key=lambda leaf: leaf.start)
        return self.leaves[index - 1] if index else None


def _furthest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The last number from `low` to below `high` that fits, `low` taken for granted.

    The steps double: a text may be long where its parts are short.
    """
    step = 1
    while low + step < high and fits(low + step):
        low, step = low + step, step * 2
    high = min(low + step, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _leaves(block: Block) -> list[Block]:
    return [leaf for child in block.children for leaf in _leaves(child)] or [block]


def _sentences(text: str, start: int, end: int) -> Iterable[int]:
    """Starts of the sentences of text[start:end] but the first. The number of a list item is no sentence."""
    for found in _SENTENCE_END.finditer(text, start, max(start, end)):
        number = found.start()
        while number and text[number - 1].isdecimal():
            number -= 1
        numbered = number < found.start() and text[line_start(text, number) - 1] == "\n"
        place = line_start(text, found.end())
        if start < place < end and not numbered:
            yield place


def _line_starts(text: str, start: int, end: int) -> Iterable[int]:
    while 0 < (start := text.find("\n", start, end) + 1) < end:
        yield start
