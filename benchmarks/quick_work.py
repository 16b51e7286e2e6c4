"""What should take no time: reading and cutting documents, and whole commands that load no model.

    python benchmarks/quick_work.py        the least of five runs each, in seconds
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from labsupport.pipeline.chunking import FixedChunker, StructureChunker
from labsupport.pipeline.corpus import read_documents
from labsupport.pipeline.embedding import load_embedder

ROOT = Path(__file__).parents[1]


def least(work: Callable[[], object], times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def command(*arguments: str) -> Callable[[], object]:
    line = [sys.executable, "-m", "labsupport", *arguments]
    return lambda: subprocess.run(line, cwd=ROOT, check=True, capture_output=True)


def main() -> None:
    chunker = StructureChunker(load_embedder().count_tokens)
    documents = read_documents(ROOT / "corpus")
    long = replace(documents[0], source="# Long\n\n" + "Wear gloves when you clean it. " * 10_000)
    work = {
        "read and cut the 36 documents": lambda: [chunker.chunk(one) for one in read_documents(ROOT / "corpus")],
        "cut one section of 310,000 characters": lambda: chunker.chunk(long),
        "the same in windows of 50 words, 49 repeated": lambda: FixedChunker(50, 49).chunk(long),
        "python -m labsupport evidence": command("evidence"),
        "python -m labsupport --help": command("--help"),
    }
    for name, run in work.items():
        print(f"{least(run):8.3f}  {name}")


if __name__ == "__main__":
    main()
