"""Reading a corpus folder: documents with front matter, the inventory, the questions, the course's defaults.

Nothing is guessed. A document whose front matter is missing, incomplete or doubtful is refused with the file, the line
and what to write instead: a wrong guess about `audience` would show staff text to everybody.
"""

import csv
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import yaml

from . import LabError

DOC_TYPES = ("policy", "procedure", "help article", "guide", "vendor content", "screen guide")
AUDIENCES = ("public", "staff")
LANGUAGES = ("en", "fr")
KEYS = ("doc_id", "version", "title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner")
CHOICES = {"doc_type": DOC_TYPES, "audience": AUDIENCES, "language": LANGUAGES}
TITLE_LIMIT = 200  # characters: every chunk repeats the title


class CorpusError(LabError):
    """What is wrong with a corpus: `faults` holds every fault of the run, one sentence each, sorted."""

    def __init__(self, faults: Iterable[str]):
        self.faults = sorted(faults)
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True)
class Document:
    """One version of one document. Dates are ISO dates, the last day inclusive; `effective_to` None: no end date."""

    doc_id: str
    version: str
    title: str
    doc_type: str
    audience: str
    language: str
    effective_from: str
    effective_to: str | None
    owner: str
    path: str  # "documents/gift-cards.md", relative to the corpus folder
    sha256: str  # of the file's bytes
    source: str  # the Markdown after the front matter: NFC, "\n" line ends

    @property
    def label(self) -> str:
        return f"{self.doc_id} v{self.version}"


@dataclass(frozen=True)
class InventoryRow:
    """One line of inventory.csv, the list of documents that people keep by hand."""

    doc_id: str
    version: str
    title: str
    doc_type: str
    audience: str
    language: str
    effective_from: str
    effective_to: str | None
    owner: str


@dataclass(frozen=True)
class Fact:
    """A fact an answer needs, and the exact quotation that proves it."""

    fact: str
    quotation: str
    doc_id: str
    version: str
    section: str


@dataclass(frozen=True)
class Question:
    """One test question. `history` holds the earlier turns of a conversation, oldest first."""

    qid: str
    text: str
    language: str
    as_of: str
    audience: str
    answerable: bool
    kind: str
    split: str  # "tune" or "test"
    history: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


def document_paths(corpus: Path) -> list[Path]:
    """The document files of a corpus, sorted by their relative path."""
    folder = Path(corpus) / "documents"
    if not folder.is_dir():
        raise LabError(f"No folder {folder.as_posix()}: a corpus keeps its documents in a folder named documents.")
    found = (path for path in folder.rglob("*") if path.suffix.lower() == ".md" and path.is_file())
    return sorted(found, key=lambda path: path.relative_to(corpus).as_posix())


def read_documents(corpus: Path) -> list[Document]:
    """All documents, sorted by path. Raises CorpusError with every fault of every file at once."""
    documents, faults = [], []
    for path in document_paths(corpus):
        try:
            documents.append(read_document(path, corpus))
        except CorpusError as error:
            faults += error.faults
    faults += clashes((document.path, document.doc_id, document.version) for document in documents)
    if faults:
        raise CorpusError(faults)
    return documents


def clashes(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Faults between files, from (path, doc_id, version): one version in two files, ids that differ in case only."""
    faults, versions, spellings = [], {}, {}
    for path, doc_id, version in sorted(rows):
        first = versions.setdefault((doc_id, version), path)
        if first != path:
            faults.append(f"{first} and {path} are both {doc_id} version {version}. Keep one file per document version; "
                          "a new version needs a new version number.")
        other, where = spellings.setdefault(doc_id.lower(), (doc_id, path))
        if other != doc_id:
            faults.append(f"{where} and {path} have ids that differ in capitals only ({other}, {doc_id}). "
                          "Write the id of one document the same way everywhere.")
    return faults


def read_document(path: Path, corpus: Path, data: bytes | None = None) -> Document:
    """One document, from its file or from the bytes given. Raises CorpusError with every fault of the file."""
    name = Path(path).relative_to(corpus).as_posix()
    if data is None:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise CorpusError([f"{name}: cannot be read ({error.strerror}); mend or remove the file."]) from None
    text = _decode(name, data)
    header, body = _split(name, text)
    fields, faults = _fields(name, header)
    values = {key: _value(name, key, *fields[key], faults) for key in KEYS if key in fields}
    start, end = values.get("effective_from"), values.get("effective_to")
    if start and end and start > end:
        faults.append(f"{name}, line {fields['effective_to'][1]}: effective_to {end} lies before effective_from {start}; "
                      "write the last day on which the document holds, or leave it empty.")
    if faults:
        raise CorpusError(faults)
    return Document(**values, path=name, sha256=hashlib.sha256(data).hexdigest(), source=body)


def _decode(name: str, data: bytes) -> str:
    bare = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = bare.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start + len(data) - len(bare)
        raise CorpusError([f"{name}: not UTF-8 (byte 0x{data[offset]:02x} at offset {offset}); save the file as UTF-8."]) from None
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise CorpusError([f"{name}, line {line}: contains a NUL character; remove it."])
    if not text.strip():
        raise CorpusError([f"{name}: the file is empty; begin it with front matter between two lines of ---."])
    return text


def _split(name: str, text: str) -> tuple[list[str], str]:
    """The lines of the front matter and the text after it."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise CorpusError([f"{name}, line 1: no front matter; begin the file with a line --- and give {', '.join(KEYS)}."])
    blank = None
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in ("---", "..."):
            return lines[1:number], "\n".join(lines[number + 1:])
        if not line.strip():
            blank = number
        elif blank is not None and not re.match(r"[A-Za-z_]+\s*:", line):
            break  # a body has begun: a thematic break further down must not count as the closing line
    where = (blank or 0) + 1 if blank is not None else len(lines)
    raise CorpusError([f"{name}, line {where}: the front matter is never closed; write a line --- after its last key."])


def _fields(name: str, header: list[str]) -> tuple[dict[str, tuple[str, int]], list[str]]:
    """Each key's text and line, and the faults found. Values are the text as written: 1.10 stays 1.10, no stays no."""
    for number, line in enumerate(header, 2):
        if line.startswith("\t"):
            raise CorpusError([f"{name}, line {number}: not valid YAML (the line begins with a tab); write key: value."])
    try:
        events = list(yaml.parse("\n".join(header) + "\n", Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line + 2, len(header) + 1)
        raise CorpusError([f"{name}, line {line}: not valid YAML ({error.problem}); write key: value, and put a value "
                           'with a colon or other mark in "quotes".']) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", 0)
        line = "\n".join(header).count("\n", 0, position) + 2
        raise CorpusError([f"{name}, line {line}: a control character in the front matter; remove it."]) from None
    return _pairs(name, events)


def _pairs(name: str, events: list[yaml.Event]) -> tuple[dict[str, tuple[str, int]], list[str]]:
    fields: dict[str, tuple[str, int]] = {}
    faults = []
    nodes = [event for event in events if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent)]
    if nodes and not isinstance(nodes[0], yaml.MappingStartEvent):
        raise CorpusError([f"{name}, line {nodes[0].start_mark.line + 2}: the front matter is not a list of key: value "
                           f"lines; give {', '.join(KEYS)}."])
    at = 1
    while at < len(nodes) - 1:
        key, (value, after) = nodes[at], _skip(nodes, at + 1)
        line = key.start_mark.line + 2
        doubtful = [event for event in nodes[at:after] if not isinstance(event, yaml.ScalarEvent)
                    or event.anchor or event.tag]
        at = after
        if doubtful:
            what = doubtful[0]
            marks = "an alias" if isinstance(what, yaml.AliasEvent) else "an anchor" if what.anchor else \
                "a tag" if what.tag else "a nested value"
            named = key.value if isinstance(key, yaml.ScalarEvent) else "a key"
            faults.append(f"{name}, line {what.start_mark.line + 2}: {named} is {marks}; write plain text on one line.")
            if isinstance(key, yaml.ScalarEvent) and key.value in KEYS:
                fields.setdefault(key.value, (None, line))
        elif key.value not in KEYS:
            faults.append(f"{name}, line {line}: unknown key {key.value}; the keys are {', '.join(KEYS)}.")
        elif key.value in fields:
            faults.append(f"{name}, line {line}: {key.value} is given twice (first in line {fields[key.value][1]}); keep one.")
        else:
            fields[key.value] = (value.value, line)
    for key in KEYS:
        if key not in fields:
            faults.append(f"{name}: {key} is missing; {_advice(key)}.")
    return fields, faults


def _skip(nodes: list[yaml.Event], at: int) -> tuple[yaml.Event, int]:
    """The node at `at` and the index after it, collections and all."""
    first, depth = nodes[at], 0
    while True:
        depth += isinstance(nodes[at], yaml.CollectionStartEvent) - isinstance(nodes[at], yaml.CollectionEndEvent)
        at += 1
        if depth == 0:
            return first, at


def _value(name: str, key: str, text: str | None, line: int, faults: list[str]) -> str | None:
    """The checked value of a key; a fault is added to `faults`."""
    if text is None:  # a fault already
        return None
    text = text.strip()
    if key == "effective_to" and not text:
        return None
    if key.startswith("effective"):
        good = _is_date(text)
    elif key in CHOICES:
        good = text in CHOICES[key]
    elif key in ("doc_id", "version"):
        good = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text) is not None
    else:
        good = 0 < len(text) <= TITLE_LIMIT and not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text)
    if good:
        return text
    faults.append(f"{name}, line {line}: {key} is {_shown(text)}; {_advice(key)}.")
    return None


def _advice(key: str) -> str:
    if key in CHOICES:
        return f"write {', '.join(CHOICES[key][:-1])} or {CHOICES[key][-1]}"
    return {
        "doc_id": "write letters, digits, - _ and . only, such as gift-cards",
        "version": "write letters, digits, - _ and . only, such as 2 or 1.10",
        "title": f"write one line of at most {TITLE_LIMIT} characters, without control characters",
        "owner": f"write who keeps the document, on one line of at most {TITLE_LIMIT} characters",
        "effective_from": "write the first day as YYYY-MM-DD",
        "effective_to": "write the last day as YYYY-MM-DD, or `effective_to:` with nothing after it for no end date",
    }[key]


def _shown(text: str) -> str:
    if not text:
        return "empty"
    return '"' + "".join(char if char.isprintable() else "?" for char in text[:60]) + ('…"' if len(text) > 60 else '"')


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def read_inventory(corpus: Path) -> list[InventoryRow]:
    """The rows of inventory.csv as people wrote them; nothing here compares them with the documents."""
    rows = []
    for row in _rows(Path(corpus) / "inventory.csv", KEYS):
        rows.append(InventoryRow(**{key: row[key] or None if key == "effective_to" else row[key] for key in KEYS}))
    return rows


def read_questions(corpus: Path) -> list[Question]:
    """The questions of questions.csv, one row each.

    `history` holds earlier turns, one a line. Facts stand in numbered groups of columns: fact_1, quotation_1, doc_id_1,
    version_1, section_1, then fact_2 and so on. Raises CorpusError with every fault.
    """
    plain = ("qid", "text", "language", "as_of", "audience", "kind", "split")
    questions, faults = [], []
    for row in _rows(Path(corpus) / "questions.csv", (*plain, "answerable", "history")):
        name = f"questions.csv, {row['qid'] or 'a row without qid'}"
        groups = sorted({int(key.rsplit("_", 1)[1]) for key in row if key.startswith("fact_")})
        parts = ("fact", "quotation", "doc_id", "version", "section")
        facts = [Fact(*(row.get(f"{part}_{group}") or "" for part in parts)) for group in groups if row[f"fact_{group}"]]
        checks = {"language": LANGUAGES, "audience": AUDIENCES, "answerable": ("yes", "no"), "split": ("tune", "test")}
        for key, allowed in checks.items():
            if row[key] not in allowed:
                faults.append(f'{name}: {key} is "{row[key]}"; write {" or ".join(allowed)}.')
        if not _is_date(row["as_of"]):
            faults.append(f'{name}: as_of is "{row["as_of"]}"; write the day it is asked as YYYY-MM-DD.')
        if any(not fact.quotation or not fact.doc_id or not fact.version for fact in facts):
            faults.append(f"{name}: a fact lacks its quotation, doc_id or version; fill them in.")
        if row["qid"] in {question.qid for question in questions}:
            faults.append(f"{name}: the qid is given twice; number each question once.")
        history = tuple(turn for turn in row["history"].split("\n") if turn.strip())
        questions.append(Question(**{key: row[key] for key in plain}, answerable=row["answerable"] == "yes",
                                  history=history, facts=tuple(facts)))
    if faults:
        raise CorpusError(faults)
    return questions


def course_defaults(corpus: Path) -> tuple[str, str]:
    """The as-of date and audience used where none is named: course.yaml of the corpus, else today in UTC and staff."""
    path = Path(corpus) / "course.yaml"
    if not path.is_file():
        return datetime.now(UTC).date().isoformat(), "staff"
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict) or not _is_date(str(found.get("as_of"))) or found.get("audience") not in AUDIENCES:
        raise LabError(f"{path.as_posix()} must give as_of: YYYY-MM-DD and audience: {' or '.join(AUDIENCES)}.")
    return found["as_of"], found["audience"]


def _rows(path: Path, columns: Iterable[str]) -> list[dict[str, str]]:
    if not path.is_file():
        raise LabError(f"No file {path.as_posix()}: the corpus folder keeps its {path.stem} there.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [{key: (value or "").strip() for key, value in row.items() if key} for row in reader]
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
    except (UnicodeDecodeError, csv.Error) as error:
        raise CorpusError([f"{path.name}: cannot be read as UTF-8 CSV ({error}); save it as such."]) from None
    if missing:
        raise CorpusError([f"{path.name}: no column {column}; add it to the first line." for column in missing])
    return rows
