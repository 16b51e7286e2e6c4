"""The words of a text, cut exactly as the SQLite engine cuts them: by SQLite's own FTS5, in memory.

PostgreSQL's parser takes "PW-2400" for a word and a negative number, an address for one word, and keeps accents without
an extension that many servers lack. One tokenizer for both engines makes the same words, and so the same ranking.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing

TOKENIZER = "unicode61 remove_diacritics 2"  # as in pipeline/sqlite_file.py
_guard = threading.Lock()  # one at a time is fast enough: a question takes a tenth of a millisecond


def cut(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text, in order, in lower case and without accents."""
    found: list[list[str]] = [[] for _ in texts]
    with _guard, closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize='{TOKENIZER}')")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab (texts, instance)")
        connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(map(_legal, texts)))
        for row, word in connection.execute("SELECT doc, term FROM words ORDER BY doc, offset"):
            found[row].append(word)
    return found


def _legal(text: str) -> str:
    return text.encode("utf-8", "ignore").decode().replace("\0", " ")


def number(word: str) -> int:
    """64 bits of the word's SHA-256, signed, as a posting keeps it.

    A number is short however long the word is, and no sample that PostgreSQL takes of the column, to plan searches by,
    can keep a word of a deleted text. That two of a billion words share one is a matter of 3 in 100.
    """
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big", signed=True)


def places(words: Sequence[str]) -> dict[int, list[int]]:
    """Each word, as its number, with its places in the text, counted from 1."""
    found: dict[int, list[int]] = {}
    for place, word in enumerate(words, start=1):
        found.setdefault(number(word), []).append(place)
    return found
