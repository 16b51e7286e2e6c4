"""A second process that keeps the index open, to see what it still finds when another process has changed the index.

    with RunningProcess("index.sqlite", check_generation=False) as process:
        process.search(vector)

It holds vectors and names in memory as any service would. With the check it looks before each search whether they are
of today; without it, it goes on with what it once read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import LabError
from .index import Filters
from .store import Store

if TYPE_CHECKING:
    import numpy as np

    from .embedding import Embedder
    from .naive import CourseCopy


@dataclass(frozen=True)
class Hit:
    """A passage the process found: by cosine, and whether the index still holds it."""

    chunk_id: str
    score: float
    label: str  # "gift-cards v1"
    section: str | None
    in_index: bool


class RunningProcess:
    """Another Python process with `index` open; ends with the `with` block."""

    def __init__(self, index: Path | str, check_generation: bool = True):
        command = [sys.executable, "-m", "labsupport.pipeline.running", str(Path(index).absolute()),
                   "check" if check_generation else "no-check"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         encoding="utf-8")
        self.pid = self._process.pid
        self._answer()  # it has opened the index, or says why not

    def __enter__(self) -> RunningProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        with self._process:  # closes both pipes, on which it ends, and waits for that
            pass

    def search(self, vector: np.ndarray, limit: int = 5, filters: Filters | None = None) -> list[Hit]:
        """The passages nearest to `vector` as the process sees the index; filters default to staff, any date."""
        asked = {"vector": [float(value) for value in vector], "limit": limit,
                 "filters": asdict(filters or Filters(audience="staff"))}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return [Hit(*row) for row in self._answer()]

    def holds(self, chunk_ids: Iterable[str], vector: np.ndarray) -> int:
        """How many of these passages a search through all of its memory finds. `vector`: any of the right length."""
        return len({hit.chunk_id for hit in self.search(vector, limit=10**6)} & set(chunk_ids))

    def _answer(self) -> list:
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "The second process ended too early; start it again."}
        if isinstance(answer, dict):
            self.close()
            raise LabError(answer["error"])
        return answer


@dataclass(frozen=True)
class Moment:
    """What a running process found at one moment of the demonstration."""

    check_generation: bool
    moment: str
    hits: tuple[Hit, ...]
    found: bool  # the document that is deleted


def demonstrate(copy: CourseCopy, doc_id: str, question: str, embedder: Embedder) -> list[Moment]:
    """Delete a document of the copy and ingest while a second process runs, without the generation check and with it.

    The document is there again afterwards.
    """
    from .updates import ingest

    ingest(copy.corpus, copy.index, embedder)
    with Store(copy.index) as store:
        paths = [copy.corpus / row.path for row in store.documents() if row.doc_id == doc_id]
    if not paths:
        raise LabError(f"No document {doc_id} in the index; choose one that `info` lists.")
    kept = {path: path.read_bytes() for path in paths}
    vector, moments = embedder.embed([question], query=True)[0], []
    for check in (False, True):
        with RunningProcess(copy.index, check) as process:
            def look(moment: str, check: bool = check, process: RunningProcess = process) -> None:
                hits = process.search(vector)
                found = any(hit.label.startswith(f"{doc_id} v") for hit in hits)
                moments.append(Moment(check, moment, tuple(hits), found))

            look("before")
            for path in paths:
                path.unlink()
            try:
                ingest(copy.corpus, copy.index, embedder)
                look("deleted and ingested")
            finally:
                for path, data in kept.items():
                    path.write_bytes(data)
                ingest(copy.corpus, copy.index, embedder)
    return moments


def serve(index: str, check_generation: bool) -> None:
    """The other process: answers one search for each line of standard input."""
    import numpy as np

    def say(answer: object) -> None:
        print(json.dumps(answer), flush=True)

    try:
        store = Store(index)
    except LabError as error:
        return say({"error": str(error)})
    with store:
        store.check_generation = check_generation
        names, generation = {}, None
        say([])
        for line in sys.stdin:
            asked = json.loads(line)
            with store.snapshot() as now:
                if not names or (check_generation and now != generation):
                    names, generation = {chunk.chunk_id: chunk for chunk in store.all_chunks()}, now
                vector = np.array(asked["vector"], dtype=np.float32)
                found = store.dense(vector, Filters(**asked["filters"]), asked["limit"])
                there = {chunk.chunk_id for chunk in store.get([one for one, _ in found])}
            say([astuple(Hit(one, score, names[one].label, names[one].section, one in there)) for one, score in found])


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2] == "check")
