"""What should take no time: reading and cutting documents, and whole commands that load no model.

    python benchmarks/quick_work.py                  the least of five runs each, in seconds
    python benchmarks/quick_work.py --notebooks      all eight notebooks, run from top to bottom once, in seconds
"""

import os
import shutil
import subprocess
import sys
import tempfile
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


def command(*arguments: str, home: str = "") -> Callable[[], object]:
    line = [sys.executable, "-m", "labsupport", *arguments]
    env = os.environ | {"LAB_HOME": home or os.environ.get("LAB_HOME", "")}
    return lambda: subprocess.run(line, cwd=ROOT, env=env, check=True, capture_output=True)


def notebooks() -> None:
    """On copies: nothing that is committed changes."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "notebooks"
        shutil.copytree(ROOT / "notebooks", copy, ignore=shutil.ignore_patterns(".*"))
        began = time.perf_counter()
        subprocess.run([sys.executable, copy / "execute.py"], check=True, capture_output=True)
        print(f"{time.perf_counter() - began:8.1f}  all notebooks, run from top to bottom with nothing answered")


def main() -> None:
    if "--notebooks" in sys.argv[1:]:
        return notebooks()
    home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    chunker = StructureChunker(load_embedder().count_tokens)
    documents = read_documents(ROOT / "corpus")
    long = replace(documents[0], source="# Long\n\n" + "Wear gloves when you clean it. " * 10_000)
    work = {
        "read and cut the 36 documents": lambda: [chunker.chunk(one) for one in read_documents(ROOT / "corpus")],
        "cut one section of 310,000 characters": lambda: chunker.chunk(long),
        "the same in windows of 50 words, 49 repeated": lambda: FixedChunker(50, 49).chunk(long),
        "python -m labsupport evidence": command("evidence"),
        "python -m labsupport --help": command("--help"),
        "python -m labsupport snapshot restore end-of-m03":
            command("snapshot", "restore", "end-of-m03", home=home.name),
    }
    for name, run in work.items():
        print(f"{least(run):8.3f}  {name}")
    home.cleanup()


if __name__ == "__main__":
    main()
