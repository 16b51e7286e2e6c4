"""The words of a text, cut exactly as the SQLite engine cuts them: by SQLite's own FTS5, in memory.

PostgreSQL's parser takes "PW-2400" for a word and a negative number, an address for one word, and keeps accents without
an extension that many servers lack. One tokenizer for both engines makes the same words, and so the same ranking.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing

TOKENIZER = "unicode61 remove_diacritics 2"  # as in pipeline/sqlite_file.py
LONGEST = 2046  # bytes of a word in a tsvector; what is longer is cut, in texts and questions alike
LAST = 16383  # the highest position a tsvector keeps
REPEATS = 255  # and the most positions of one word; more would hardly change its BM25

_guard = threading.Lock()  # one reader of texts at a time is fast enough: a question takes 0.1 ms


def cut(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text, in order, in lower case and without accents."""
    found: list[list[str]] = [[] for _ in texts]
    with _guard, closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize='{TOKENIZER}')")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab (texts, instance)")
        connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(map(_legal, texts)))
        for row, word in connection.execute("SELECT doc, term FROM words ORDER BY doc, offset"):
            found[row].append(word.encode()[:LONGEST].decode("utf-8", "ignore"))
    return found


def _legal(text: str) -> str:
    return text.encode("utf-8", "ignore").decode().replace("\0", " ")


def tsvector(words: Sequence[str]) -> str:
    """`words` as PostgreSQL writes a tsvector: each with its places, counted from 1."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words, start=1):
        if place <= LAST and len(places.setdefault(word, [])) < REPEATS:
            places[word].append(place)
    return " ".join(f"{quoted(word)}:{','.join(map(str, at))}" for word, at in places.items())


def tsquery(phrases: Iterable[Sequence[str]]) -> str:
    """Any of `phrases`, each a word or words that follow one another, as PostgreSQL writes a tsquery."""
    return " | ".join(dict.fromkeys(" <-> ".join(map(quoted, phrase)) for phrase in phrases))


def quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"

