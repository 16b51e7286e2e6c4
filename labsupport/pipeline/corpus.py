"""Reading a corpus folder: documents with front matter, the inventory, the questions, the course's defaults.

Nothing is guessed. A document whose front matter is missing, incomplete or doubtful is refused with the file, the line
and what to write instead: a wrong guess about `audience` would show staff text to everybody.
"""

import csv
import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from . import LabError
from .folder import document_files
from .front_matter import AUDIENCES, CHOICES, DOC_TYPES, KEYS, LANGUAGES, CorpusError, is_date, parse

__all__ = ["AUDIENCES", "CHOICES", "DOC_TYPES", "KEYS", "LANGUAGES", "CorpusError", "Document", "Fact", "InventoryRow",
           "Question", "clashes", "course_defaults", "document_paths", "documents_folder", "read_document",
           "read_documents", "read_inventory", "read_questions"]

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


def documents_folder(corpus: Path) -> Path:
    """Where a corpus keeps its documents. LabError where there is no such folder."""
    folder = Path(corpus) / "documents"
    if not folder.is_dir():
        raise LabError(f"No folder {folder.as_posix()}. Name the corpus folder with --corpus; it keeps its documents "
                       "in a folder named documents.")
    return folder


def document_paths(corpus: Path) -> list[Path]:
    """The document files of a corpus, sorted by their relative path; files and folders named .something are no part."""
    documents_folder(corpus)
    return [Path(path) for path in document_files(Path(corpus)).values()]


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
            faults.append(f"{first} and {path} are both {doc_id} version {version}. "
                          "Keep one file per document version; a new version needs a new version number.")
        other, where = spellings.setdefault(doc_id.lower(), (doc_id, path))
        if other != doc_id:
            faults.append(f"{where} and {path} have ids that differ in capitals only ({other}, {doc_id}). "
                          "Write the id of one document the same way everywhere.")
    return faults


def read_document(path: Path, corpus: Path, data: bytes | None = None) -> Document:
    """One document, from its file or from the bytes given. Raises CorpusError with every fault of the file."""
    name = Path(path).relative_to(corpus).as_posix()
    if not name.isprintable():
        shown = "".join(char if char.isprintable() else "?" for char in name)
        raise CorpusError([f"{shown}: the file name holds characters that cannot be shown; rename the file."])
    if data is None:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise CorpusError([f"{name}: cannot be read ({error.strerror}); mend or remove the file."]) from None
    values, source = parse(name, _decode(name, data))
    return Document(**values, path=name, sha256=hashlib.sha256(data).hexdigest(), source=source)


def _decode(name: str, data: bytes) -> str:
    """The text of a file: UTF-8 without byte order mark, Unicode NFC, `\\n` line ends."""
    bare = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = bare.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start + len(data) - len(bare)
        line = bare.count(b"\n", 0, error.start) + 1
        raise CorpusError([f"{name}, line {line}: not UTF-8 (byte 0x{data[offset]:02x} at offset {offset}); "
                           "save the file as UTF-8."]) from None
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise CorpusError([f"{name}, line {line}: contains a NUL character; remove it."])
    if not text.strip():
        raise CorpusError([f"{name}, line 1: the file is empty; begin it with front matter between two lines of ---."])
    return text


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
        groups = [key.removeprefix("fact_") for key in row if key.startswith("fact_") and row[key]]
        parts = ("fact", "quotation", "doc_id", "version", "section")
        facts = [Fact(*(row.get(f"{part}_{group}", "") for part in parts)) for group in groups]
        checks = {"language": LANGUAGES, "audience": AUDIENCES, "answerable": ("yes", "no"), "split": ("tune", "test")}
        for key, allowed in checks.items():
            if row[key] not in allowed:
                faults.append(f'{name}: {key} is "{row[key]}"; write {" or ".join(allowed)}.')
        if not is_date(row["as_of"]):
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
    if not path.parent.is_dir():
        raise LabError(f"No folder {path.parent.as_posix()}; name the folder of the corpus with --corpus.")
    if not path.is_file():
        return datetime.now(UTC).date().isoformat(), "staff"
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict) or not is_date(str(found.get("as_of"))) or found.get("audience") not in AUDIENCES:
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
