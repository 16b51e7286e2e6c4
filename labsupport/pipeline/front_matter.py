"""Front matter: the block of `key: value` lines between two lines of --- that opens every document.

Values are read as the text that stands there: version 1.10 stays "1.10", audience no is not False but an unknown
audience. Whatever is missing, unknown, doubled or doubtful is a fault that names the file, the line and the way out.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date

import yaml

from . import LabError

DOC_TYPES = ("policy", "procedure", "help article", "guide", "vendor content", "screen guide")
AUDIENCES = ("public", "staff")
LANGUAGES = ("en", "fr")
KEYS = ("doc_id", "version", "title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner")
CHOICES = {"doc_type": DOC_TYPES, "audience": AUDIENCES, "language": LANGUAGES}
# The keys as a first error names them, so that the second try can be right.
ALLOWED = {key: f"{', '.join(values[:-1])} or {values[-1]}" for key, values in CHOICES.items()}
ALLOWED |= {"effective_from": "YYYY-MM-DD", "effective_to": "YYYY-MM-DD or nothing"}
KEYS_SHOWN = ", ".join(f"{key} ({ALLOWED[key]})" if key in ALLOWED else key for key in KEYS)
TITLE_LIMIT = 200  # characters: every chunk repeats the title
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class CorpusError(LabError):
    """What is wrong with a corpus: `faults` holds every fault of the run, one sentence each, by file and line."""

    def __init__(self, faults: Iterable[str]):
        self.faults = sorted(faults, key=_natural)
        super().__init__("\n".join(self.faults))


def parse(name: str, text: str) -> tuple[dict[str, str | None], str]:
    """The nine values of a file's text and the Markdown after them. Raises CorpusError with every fault."""
    header, body = _split(name, text)
    faults: list[str] = []
    values: dict[str, str | None] = {}
    lines: dict[str, int] = {}
    for key, value, line in _pairs(name, _events(name, header), faults):
        if key not in KEYS:
            faults.append(f"{name}, line {line}: unknown key {_shown(key)}; the keys are {', '.join(KEYS)}.")
        elif key in lines:
            faults.append(f"{name}, line {line}: {key} is given twice (first in line {lines[key]}); keep one.")
        else:
            lines[key] = line
            values[key] = _checked(name, key, value, line, faults)
    faults += [f"{name}, line 1: {key} is missing; add the key and {_advice(key)}." for key in KEYS if key not in lines]
    start, end = values.get("effective_from"), values.get("effective_to")
    if start and end and start > end:
        faults.append(f"{name}, line {lines['effective_to']}: effective_to {end} lies before effective_from {start}; "
                      "write the last day on which the document holds, or leave it empty.")
    if faults:
        raise CorpusError(faults)
    return values, body


def is_date(text: str) -> bool:
    """Whether `text` is a day that exists, written YYYY-MM-DD."""
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _split(name: str, text: str) -> tuple[list[str], str]:
    """The lines of the front matter and the text after it."""
    lines = text.split("\n")
    blank = None
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], 1):
            if line.rstrip() in ("---", "..."):
                return lines[1:number], "\n".join(lines[number + 1:])
            if not line.strip():
                blank = blank or number
            elif blank and not re.match(r"[A-Za-z_]+\s*:", line):
                break  # the body has begun: a thematic break further down must not count as the closing line
    if lines[0].rstrip() != "---" or blank == 1:
        raise CorpusError([f"{name}, line 1: no front matter; begin the file with a line ---, then a line "
                           f"key: value for each of {KEYS_SHOWN}, then a line ---."])
    line = blank + 1 if blank else len(lines)
    raise CorpusError([f"{name}, line {line}: the front matter is never closed; write a line --- right "
                       "after its last key."])


def _events(name: str, header: list[str]) -> list[yaml.Event]:
    for number, line in enumerate(header, 2):
        if line.startswith("\t"):
            raise CorpusError([f"{name}, line {number}: not valid YAML (it begins with a tab); write key: value."])
    source = "\n".join(header)
    try:
        return list(yaml.parse(source, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        begun, failed = error.context_mark, error.problem_mark
        at_end = begun and failed and source[failed.index:].strip() == ""  # a quotation mark that is never closed
        line = (begun if at_end or not failed else failed).line + 2
        raise CorpusError([f"{name}, line {line}: not valid YAML ({error.problem}); write key: value, and put a value "
                           'that holds a colon or another mark in "quotes".']) from None
    except yaml.reader.ReaderError as error:
        line = source.count("\n", 0, error.position) + 2
        raise CorpusError([f"{name}, line {line}: a control character in the front matter; remove it."]) from None


def _pairs(name: str, events: list[yaml.Event], faults: list[str]) -> Iterable[tuple[str, str | None, int]]:
    """Key, value and line of each entry; the value is None where a fault was noted: only plain scalars are read."""
    nodes = [event for event in events if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent)]
    if nodes and not isinstance(nodes[0], yaml.MappingStartEvent):
        raise CorpusError([f"{name}, line {nodes[0].start_mark.line + 2}: the front matter is not made of key: value "
                           f"lines; give {KEYS_SHOWN}, one a line."])
    at = 1
    while at < len(nodes) - 1:
        key, middle = nodes[at], _after(nodes, at)
        value, end = nodes[middle], _after(nodes, middle)
        line = key.start_mark.line + 2
        label = key.value if isinstance(key, yaml.ScalarEvent) else "the key"
        doubt = next(filter(None, map(_doubt, nodes[at:end])), None)
        if doubt:
            faults.append(f"{name}, line {line}: {_shown(label)} has {doubt}; write plain text on one line.")
        if not doubt or label in KEYS:
            yield label, None if doubt else value.value, line
        at = end


def _doubt(event: yaml.Event) -> str | None:
    if isinstance(event, yaml.AliasEvent):
        return "an alias (*)"
    if getattr(event, "anchor", None):
        return "an anchor (&)"
    if getattr(event, "tag", None):
        return "a tag (!)"
    return None if isinstance(event, yaml.ScalarEvent) else "a list or mapping for a value"


def _after(nodes: list[yaml.Event], at: int) -> int:
    """The index after the node that begins at `at`."""
    depth = 0
    while True:
        depth += isinstance(nodes[at], yaml.CollectionStartEvent) - isinstance(nodes[at], yaml.CollectionEndEvent)
        at += 1
        if depth == 0:
            return at


def _checked(name: str, key: str, text: str | None, line: int, faults: list[str]) -> str | None:
    if text is None:  # a fault already
        return None
    text = text.strip()
    if key == "effective_to" and not text:
        return None
    if key.startswith("effective"):
        good = is_date(text)
    elif key in CHOICES:
        good = text in CHOICES[key]
    elif key in ("doc_id", "version"):
        good = _NAME.fullmatch(text) is not None
    else:
        control = any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text)
        good = 0 < len(text) <= TITLE_LIMIT and not control
    if good:
        return text
    faults.append(f"{name}, line {line}: {key} is {_shown(text)}; {_advice(key)}.")
    return None


def _advice(key: str) -> str:
    if key in CHOICES:
        return f"write {ALLOWED[key]}"
    return {
        "doc_id": "write letters, digits, - _ and . only, such as gift-cards",
        "version": "write letters, digits, - _ and . only, such as 2 or 1.10",
        "title": f"write one line of at most {TITLE_LIMIT} characters",
        "owner": f"write who keeps the document, one line of at most {TITLE_LIMIT} characters",
        "effective_from": "write the first day as YYYY-MM-DD",
        "effective_to": "write the last day as YYYY-MM-DD, or nothing after the colon for no end date",
    }[key]


def _shown(text: str) -> str:
    """A value as a message quotes it: short and printable."""
    if not text:
        return "empty"
    short = "".join(char if char.isprintable() else "?" for char in text[:60]) + ("…" if len(text) > 60 else "")
    return short if short in KEYS else f'"{short}"'


def _natural(fault: str) -> list[tuple[int, str | int]]:
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"([0-9]+)", fault)]
