"""The cases of the evidence check: documents, questions, and the facts a right answer needs.

The format is in docs/evidence.md and corpus/evidence/schema.json. Reading collects every fault of a file and reports
them together, so that one run is enough to mend it. Standard library only.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labsupport.pipeline import LabError

STATUSES = ("current", "withdrawn")
ID = re.compile(r"[A-Za-z0-9._-]+")


class CasesError(LabError):
    """A cases file that cannot be used. `faults` holds every fault found; the text lists them one a line."""

    def __init__(self, where: str, faults: list[str]):
        self.faults = faults
        super().__init__("\n".join(f"{where}: {fault}" for fault in faults))


@dataclass(frozen=True)
class Document:
    """One source. Positions everywhere are positions in `words`, from 0, written [start, end)."""

    id: str
    title: str
    country: str
    status: str
    words: tuple[str, ...]
    paragraphs: tuple[tuple[int, int], ...]  # [start, end) of each paragraph


@dataclass(frozen=True)
class Fact:
    """A quotation found once in its document, at words [start, end)."""

    id: str
    document: str
    quotation: str
    start: int
    end: int


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    answerable: bool
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Cases:
    name: str
    documents: Mapping[str, Document]
    questions: tuple[Question, ...]
    sources: tuple[Path, ...] = ()  # the text files that were read


def read_cases(path: Path | str) -> Cases:
    """Read a cases file and the text files it names. Raises CasesError with every fault."""
    path = Path(path)
    text, fault = read_text(path)
    if fault:
        raise CasesError(path.as_posix(), [f"the file {fault}"])
    return cases_from(parse_json(text, path.as_posix()), path.as_posix(), path.parent)


def cases_from(data: object, name: str = "cases", folder: Path = Path()) -> Cases:
    """The same from data already parsed; `folder` is where the files it names are looked for."""
    faults: list[str] = []
    top = fields(data, "the file", {"documents": list, "questions": list}, {"$schema": str}, faults)
    faults += [f'"{kind}" is empty; write at least one' for kind, entries in top.items() if entries == []]
    documents = [read_document(entry, n, folder, faults) for n, entry in enumerate(top.get("documents", ()), 1)]
    known = {document.id: document for document in documents if document.id}
    questions = [read_question(entry, n, known, faults) for n, entry in enumerate(top.get("questions", ()), 1)]
    check_unique("document", documents, faults)
    check_unique("question", questions, faults)
    check_unique("fact", [fact for question in questions for fact in question.facts], faults)
    if faults:
        raise CasesError(name, faults)
    sources = tuple(folder / entry["file"] for entry in top["documents"] if "file" in entry)
    return Cases(name, known, tuple(questions), sources)


def parse_json(text: str, where: str) -> object:
    """JSON with no key written twice. Raises CasesError naming line and column."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"the key {', '.join(map(repr, twice))} is written twice in one object; keep one")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        fault = f"malformed JSON at line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        fault = "malformed JSON: nested too deeply"
    except ValueError as error:
        fault = f"malformed JSON: {error}"
    raise CasesError(where, [fault])


def read_text(path: Path) -> tuple[str, str]:
    """The text of a UTF-8 file, and what keeps it from being read (empty: nothing)."""
    try:
        return path.read_bytes().decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        return "", f"is not UTF-8 (byte {error.start}); save it as UTF-8"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        return "", f"cannot be read: {getattr(error, 'strerror', None) or error}"


def fields(data: object, where: str, required: dict, optional: dict, faults: list[str]) -> dict:
    """The fields of a JSON object that have the right type; what is missing, unknown or wrong goes to `faults`."""
    kinds = {str: "text", list: "a list", bool: "true or false"}
    if not isinstance(data, dict):
        faults.append(f"{where} must be an object {{…}}")
        return {}
    faults += [f'{where}: "{key}" is missing' for key in required if key not in data]
    faults += [f'{where}: unknown key "{key}"' for key in data if key not in required | optional]
    good = {}
    for key, kind in (required | optional).items():
        if key in data and type(data[key]) is not kind:
            faults.append(f'{where}: "{key}" must be {kinds[kind]}')
        elif kind is str and key in data and (fault := text_fault(data[key])):
            faults.append(f'{where}: "{key}" {fault}')
        elif key in data:
            good[key] = unicodedata.normalize("NFC", data[key]) if kind is str else data[key]
    if "id" in good and not ID.fullmatch(good["id"]):
        faults.append(f"{where}: the id {good['id']!r} may hold letters A-Z and a-z, digits, '.', '_' and '-' only")
    return good


def text_fault(text: str) -> str:
    if not text.split():
        return "is empty"
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return "holds a NUL or half a surrogate pair; remove it"
    return ""


def read_document(data: object, number: int, folder: Path, faults: list[str]) -> Document:
    required = dict.fromkeys(("id", "title", "country", "status"), str)
    good = fields(data, f"document {number}", required, {"text": str, "file": str}, faults)
    where = f"document {number} {good.get('id', '')}".strip()
    if "status" in good and good["status"] not in STATUSES:
        faults.append(f'{where}: "status" must be one of {", ".join(STATUSES)}')
    if "country" in good and not re.fullmatch("[A-Z]{2}", good["country"]):
        faults.append(f'{where}: "country" must be a code of two capitals, such as FR')
    if isinstance(data, dict) and ("text" in data) == ("file" in data):
        faults.append(f'{where}: write either "text" or "file"')
    text = good.get("text", "")
    if "file" in good:
        text, fault = read_text(folder / good["file"])
        if fault := fault or text_fault(text):
            faults.append(f"{where}: {good['file']} {fault}")
    words: list[str] = []
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", unicodedata.normalize("NFC", text).replace("\r\n", "\n")):
        start = len(words)
        words += paragraph.split()
        if len(words) > start:
            paragraphs.append((start, len(words)))
    named = [good.get(key, "") for key in required]
    return Document(*named, tuple(words), tuple(paragraphs))


def read_question(data: object, number: int, documents: Mapping[str, Document], faults: list[str]) -> Question:
    required = {"id": str, "text": str, "answerable": bool, "facts": list}
    good = fields(data, f"question {number}", required, {}, faults)
    where = f"question {number} {good.get('id', '')}".strip()
    entries = good.get("facts", [])
    if "answerable" in good and "facts" in good and good["answerable"] != bool(entries):
        needs = "is answerable but names no fact" if good["answerable"] else "is not answerable but names facts"
        faults.append(f"{where} {needs}; its references do not agree")
    facts = [read_fact(entry, f"{where}, fact {n}", documents, faults) for n, entry in enumerate(entries, 1)]
    places = [(fact.document, fact.start, fact.end) for fact in facts if fact.end]
    if len(set(places)) < len(places):
        faults.append(f"{where}: two facts quote the same words; keep one")
    return Question(good.get("id", ""), good.get("text", ""), good.get("answerable", False), tuple(facts))


def read_fact(data: object, where: str, documents: Mapping[str, Document], faults: list[str]) -> Fact:
    required = dict.fromkeys(("id", "document", "quotation"), str)
    good = fields(data, where, required, {}, faults)
    fact_id, document_id, quotation = (good.get(key, "") for key in required)
    where = f"{where} {fact_id}".strip()
    document = documents.get(document_id)
    starts: list[int] = []
    if document_id and document is None:
        faults.append(f"{where}: unknown document {document_id!r}")
    elif document and document.words and quotation:  # a document without words has its own fault
        starts = locate(quotation, document)
        if not starts:
            faults.append(f"{where}: {absence(quotation, document, documents)}")
        if len(starts) > 1:
            faults.append(f"{where}: quotation found {len(starts)} times in {document.id}; quote more words")
    start = starts[0] if starts else 0
    return Fact(fact_id, document_id, quotation, start, start + len(quotation.split()) if starts else 0)


def locate(quotation: str, document: Document) -> list[int]:
    """Every position of the quotation, word for word."""
    wanted = tuple(quotation.split())
    last = len(document.words) - len(wanted)
    return [n for n in range(last + 1) if document.words[n : n + len(wanted)] == wanted]


def absence(quotation: str, document: Document, documents: Mapping[str, Document]) -> str:
    fault = f"quotation absent from {document.id}"
    if others := [other.id for other in documents.values() if locate(quotation, other)]:
        return f"{fault}, but it stands in {', '.join(others)}: a wrong reference"
    if " ".join(quotation.split()) in " ".join(document.words):
        return f"{fault} as whole words; quote each word with its punctuation"
    return fault


def check_unique(kind: str, entries: Sequence[Document | Question | Fact], faults: list[str]) -> None:
    counts = Counter(entry.id for entry in entries if entry.id)
    faults += [f"the {kind} id {name!r} is used {count} times" for name, count in counts.items() if count > 1]
