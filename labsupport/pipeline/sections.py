"""The heading tree of a plain text: which blocks stand together under one heading."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from .markdown import Block, PlainText, extend_path

SHORT = 200  # characters: a subsection up to this length reads better with its parent


@dataclass(frozen=True)
class Section:
    """What becomes one chunk, or its parts: consecutive blocks under one heading."""

    blocks: tuple[Block, ...]
    kind: str
    path: tuple[tuple[int, str], ...] = ()

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
        if below and not any(map(is_text, group)) and (heading is None or below[0][0].level > heading.level):
            carried += group
        elif carried or group:
            found.append(Section((*carried, *group), _kind(heading, path), tuple(path)))
            carried = []
    if len(found) > 1 and not any(is_text(block) for block in plain.blocks):
        shared = tuple(entry for entry in found[0].path if all(entry in other.path for other in found))
        kind = "section" if len(shared) > (plain.blocks[0].start == 0) else "loose"
        return [Section(tuple(block for one in found for block in one.blocks), kind, shared)]
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


def merge(units: list[Section], fits: Callable[[int, int], bool]) -> list[Section]:
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
        open_ = unit.kind != "loose" and any(map(is_text, unit.blocks))
    return merged


def is_text(block: Block) -> bool:
    """Whether a block says something: headings and rules only divide."""
    return block.kind not in ("heading", "rule")
