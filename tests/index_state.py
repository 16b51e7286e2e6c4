"""Everything an index file holds, as text to compare, and whether it hangs together."""

import sqlite3
from contextlib import closing
from pathlib import Path

from labsupport.pipeline.sqlite_file import look_at


def state(path: Path) -> str | None:
    """All rows of all tables, FTS5's own among them; None where there is no index."""
    if look_at(path) == "none":
        return None
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        return "\n".join(line for line in connection.iterdump() if "'untidy'" not in line)


def check(path: Path) -> None:
    """Raises AssertionError or sqlite3.DatabaseError where the index contradicts itself."""
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
