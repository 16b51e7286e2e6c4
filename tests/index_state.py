"""Everything an index holds, as text to compare, and whether it hangs together: that of a file or another engine."""

import sqlite3
from contextlib import closing
from pathlib import Path

from labsupport.pipeline.index import Engine, Index
from labsupport.pipeline.sqlite_file import look_at
from labsupport.pipeline.store import Store


def opened(index: Path | Engine) -> Index:
    return Store(index) if isinstance(index, Path) else index.open()


def again(store: Index) -> Index:
    """The same index, opened once more, as another process would."""
    return Store(store.path) if isinstance(store, Store) else type(store)(store.url)


def state(path: Path | Engine) -> str | None:
    """All rows of all tables, FTS5's own among them; None where there is no index."""
    if not isinstance(path, Path):
        from postgres_server import state_in_server

        return state_in_server(path)
    if look_at(path) == "none":
        return None
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        return "\n".join(line for line in connection.iterdump() if "'untidy'" not in line)


def check(path: Path | Engine) -> None:
    """Raises AssertionError or sqlite3.DatabaseError where the index contradicts itself."""
    if not isinstance(path, Path):
        from postgres_server import check_in_server

        return check_in_server(path)
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        def one(sql):
            return connection.execute(sql).fetchone()[0]

        assert one("PRAGMA integrity_check") == "ok"
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO keywords (keywords) VALUES ('integrity-check')")
        chunks = one("SELECT count(*) FROM chunks")
        assert chunks == one("SELECT count(*) FROM vectors") == one("SELECT count(*) FROM keywords_docsize")
        assert chunks == one("SELECT coalesce(sum(chunks), 0) FROM documents")
        assert one("SELECT count(*) FROM vectors JOIN chunks USING (id)") == chunks
