"""The context that would be sent: cut the documents, rank the passages, keep what the budget allows.

The simplest retrieval there is, with SQLite's FTS5 alone, so that the evidence check runs on any Python. Positions are
words of the source, [start, end), from 0.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from labsupport.pipeline import LabError
from labsupport.pipeline.evidence_cases import Document

CUTS = ("fixed_48_0", "fixed_96_0", "fixed_48_16", "paragraphs")  # fixed_SIZE_OVERLAP, in words
BUDGET_WORDS = 120
TOP = 3
STOP_WORDS = frozenset(  # so frequent in French that they say nothing about what is asked
    """a à au aux avec ce ces cette d dans de des du elle en est et être faire il ils je l la le les leur leurs lui mais
    n ne on ont ou où par pas plus pour qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont
    sur t un une y""".split()  # noqa: SIM905 (a list of sixty literals is harder to read)
)


@dataclass(frozen=True)
class Passage:
    """Words [start, end) of a document."""

    id: str
    document: str
    start: int
    end: int

    @property
    def words(self) -> int:
        return self.end - self.start

    @property
    def positions(self) -> list[tuple[str, int]]:
        return [(self.document, n) for n in range(self.start, self.end)]


@dataclass(frozen=True)
class Hit:
    passage: str
    score: float  # bm25, positive: higher is better
    matched: tuple[str, ...]  # words of the passage that the question asked for


def windows(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """[start, end) of windows of `size` words, the last one shorter where the text ends."""
    if size < 1:
        raise LabError(f"A passage of {size} words cannot be cut; the size must be 1 or more.")
    if not 0 <= overlap < size:
        raise LabError(f"An overlap of {overlap} words must be 0 or more and smaller than the size, {size} words.")
    return [(start, min(start + size, length)) for start in range(0, max(length - overlap, 1), size - overlap)]


def cut(document: Document, how: str) -> list[Passage]:
    """Cut one document; `how` is one of CUTS or any other fixed_SIZE_OVERLAP."""
    fixed = re.fullmatch(r"fixed_(-?\d+)_(-?\d+)", how)
    if not fixed and how != "paragraphs":
        raise LabError(f"Unknown cut {how!r}; use fixed_SIZE_OVERLAP, such as fixed_48_16, or paragraphs.")
    spans = windows(len(document.words), int(fixed[1]), int(fixed[2])) if fixed else document.paragraphs
    return [Passage(f"{document.id}:{start:04d}-{end:04d}", document.id, start, end) for start, end in spans]


def terms(question: str) -> list[str]:
    """The words of a question that are worth searching for."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", question).casefold())
    return [word for word in dict.fromkeys(words) if word not in STOP_WORDS]


class Index:
    """The passages in an FTS5 table in memory. Raises LabError where SQLite has no FTS5."""

    def __init__(self, passages: Iterable[Passage], documents: Mapping[str, Document]):
        self.connection = sqlite3.connect(":memory:")
        tokens = "unicode61 remove_diacritics 2"
        try:
            self.connection.execute(f"CREATE VIRTUAL TABLE p USING fts5(id UNINDEXED, body, tokenize='{tokens}')")
        except sqlite3.OperationalError as error:
            self.close()
            raise LabError(
                f"The SQLite of this Python ({sqlite3.sqlite_version}) has no usable FTS5 ({error}); use a Python from"
                " python.org, conda-forge or your system, whose SQLite has it."
            ) from error
        texts = ((p.id, " ".join(documents[p.document].words[p.start : p.end])) for p in passages)
        self.connection.executemany("INSERT INTO p VALUES (?, ?)", texts)

    def rank(self, question: str) -> list[Hit]:
        """Every passage that holds a word of the question: best bm25 first, then by id."""
        if not (query := " OR ".join(f'"{term}"' for term in terms(question))):
            return []
        marked = "highlight(p, 1, char(2), char(3))"
        rows = self.connection.execute(
            f"SELECT id, bm25(p), {marked} FROM p WHERE p MATCH ? ORDER BY bm25(p), id", (query,)
        )
        found = [(passage, score, re.findall("\2(.*?)\3", text)) for passage, score, text in rows]
        return [Hit(passage, -score, tuple(dict.fromkeys(map(str.casefold, seen)))) for passage, score, seen in found]

    def close(self) -> None:
        self.connection.close()


def keep(hits: Sequence[str], passages: Mapping[str, Passage], budget: int = BUDGET_WORDS) -> list[Passage]:
    """What is sent: the passages in rank order, the last one cut at a word where the budget ends."""
    kept, left = [], budget
    for hit in hits:
        if hit not in passages:
            raise LabError(f"Unknown passage {hit!r}: it is not among the {len(passages)} passages of this cut.")
        passage = passages[hit]
        end = min(passage.end, passage.start + left)
        if end > passage.start:
            kept.append(replace(passage, end=end))
            left -= kept[-1].words
    return kept
