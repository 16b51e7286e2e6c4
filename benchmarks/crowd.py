"""Two writers and eight readers at one index: does anybody see half a state, or an error?

    python benchmarks/crowd.py --seconds 30

Each writer puts a new text into a file of its own and ingests the folder, over and over, every tenth time with a
rebuild. All sections of a file bear the same number, so a reader can tell a mixture. Half of the readers keep the index
open, half open it anew each time.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from fakes import FakeEmbedder
from garden import front_matter, write
from index_state import check

from labsupport.pipeline.index import Filters
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

WRITERS, READERS, SECTIONS = 2, 8, 6
STAFF = Filters(audience="staff")


def put(corpus: Path, writer: int, number: int) -> None:
    """Write the file whole: an editor that saves in steps could be caught in the middle."""
    head = front_matter(doc_id=f"writer-{writer}", title="Care")
    body = "".join(f"## Part {part}\n\nstate{number}\n\n" for part in range(SECTIONS + number % 3))
    path = write(corpus, f"writer-{writer}.part", head + "# Care\n\n" + body)
    os.replace(path, path.with_suffix(".md"))


def writer(corpus: Path, index: Path, which: int, seconds: float, start, results) -> None:
    number, waited = 0, 0
    start.wait()
    until = time.time() + seconds
    try:
        while time.time() < until:
            number += 1
            put(corpus, which, number)
            report = ingest(corpus, index, FakeEmbedder(), rebuild=number % 10 == 0)
            waited += any("waited" in note for note in report.notes)
        results.put(("writer", number, waited, None))
    except Exception as error:
        results.put(("writer", number, waited, repr(error)))


def look(store: Store) -> None:
    """One read of everything, in one transaction. Raises AssertionError where two states are mixed."""
    with store.snapshot():
        documents = store.documents()
        assert len(documents) == WRITERS
        chunks = {chunk.chunk_id: chunk for chunk in store.all_chunks()}
        for row in documents:
            bodies = {chunk.body.split()[-1] for chunk in chunks.values() if chunk.doc_id == row.doc_id}
            assert len(bodies) == 1, f"mixed: {bodies}"
            held = store.keyword(list(bodies), STAFF, 99)
            assert {one for one, _ in held} >= {chunk.chunk_id for chunk in store.chunks(row.doc_id)}
        dense = store.dense(FakeEmbedder()._vector("Care"), STAFF, 99)
        assert {one for one, _ in dense} == chunks.keys() and sum(row.chunks for row in documents) == len(chunks)


def reader(index: Path, stay: bool, seconds: float, start, results) -> None:
    reads, generations = 0, set()
    start.wait()
    until = time.time() + seconds
    try:
        store = Store(index)
        while time.time() < until:
            if not stay:
                store.close()
                store = Store(index)
            look(store)
            generations.add(store.generation())
            reads += 1
            time.sleep(0.02)
        store.close()
        results.put(("reader", reads, len(generations), None))
    except Exception as error:
        results.put(("reader", reads, len(generations), repr(error)))


def crowd(home: Path, seconds: float) -> list[tuple[str, int, int, str | None]]:
    """One row for each process: what it was, how often it worked, waits or states seen, its error."""
    corpus, index = home / "corpus", home / "index.sqlite"
    for which in range(WRITERS):
        put(corpus, which, 0)
    ingest(corpus, index, FakeEmbedder())
    context = multiprocessing.get_context("spawn")
    results, start = context.Queue(), context.Barrier(WRITERS + READERS)
    shared = seconds, start, results
    work = [context.Process(target=writer, args=(corpus, index, which, *shared)) for which in range(WRITERS)]
    work += [context.Process(target=reader, args=(index, which % 2 == 0, *shared)) for which in range(READERS)]
    for process in work:
        process.start()
    rows = [results.get(timeout=seconds + 120) for _ in work]
    for process in work:
        process.join()
    ingest(corpus, index, FakeEmbedder())
    check(index)
    return sorted(rows, key=lambda row: row[0])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=30)
    seconds = options.parse_args().seconds
    with tempfile.TemporaryDirectory() as home:
        rows = crowd(Path(home), seconds)
    writes, reads = (sum(row[1] for row in rows if row[0] == kind) for kind in ("writer", "reader"))
    errors = [row[3] for row in rows if row[3]]
    waits = sum(row[2] for row in rows if row[0] == "writer")
    print(f"{WRITERS} writers and {READERS} readers for {seconds:g} s: {writes} ingests ({waits} waited), "
          f"{reads} reads, {len(errors)} errors")
    for error in errors:
        print(f"  {error}")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
