"""What an ingest costs: nothing changed, one document changed, everything rebuilt, in one run with the model loaded.

    python benchmarks/ingest.py                        36 documents, the course's own
    python benchmarks/ingest.py --documents 36 3600    and copies of them under other ids and titles (several minutes)
    python benchmarks/ingest.py --json FILE            the figures for a program
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from labsupport.pipeline.chunking import make_chunker
from labsupport.pipeline.corpus import document_paths
from labsupport.pipeline.embedding import load_embedder
from labsupport.pipeline.report import Report
from labsupport.pipeline.updates import ingest

CORPUS = Path(__file__).parents[1] / "corpus"
AT_REST = 2.5  # seconds after which ingest may go by a file's times
LIMITS = {("nothing changed", 36): 1000, ("one changed", 3600): 200}  # at most one part in so many of the rebuild


def fill(corpus: Path, wanted: int) -> None:
    """So many documents: the course's own, then copies with a number in id and title, so that every text is new."""
    (corpus / "documents").mkdir(parents=True)
    originals = document_paths(CORPUS)
    for number in range(wanted):
        source, round_ = originals[number % len(originals)], number // len(originals)
        target = corpus / "documents" / (f"{source.stem}-{round_}.md" if round_ else source.name)
        if round_ == 0:
            shutil.copyfile(source, target)
            continue
        lines = source.read_text(encoding="utf-8").split("\n")
        title = next(line.removeprefix("title:").strip().strip('"') for line in lines if line.startswith("title:"))
        changed = []
        for line in lines:
            if line.startswith(("doc_id:", "# ")):
                line = f"{line}-{round_}"
            elif line.startswith("title:"):
                line = f'title: "{title}-{round_}"'
            changed.append(line)
        target.write_text("\n".join(changed), encoding="utf-8", newline="\n")


def timed(work: Callable[[], Report], expected: str, times: int = 1) -> tuple[float, Report]:
    """Median seconds, and the last report, whose line has to begin as expected."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        report = work()
        seconds.append(time.perf_counter() - began)
        assert report.line.startswith(expected), report.line
    return statistics.median(seconds), report


def measure(home: Path, documents: int) -> dict:
    corpus, index = home / "corpus", home / "index.sqlite"
    fill(corpus, documents)
    embedder = load_embedder()
    embedder.embed(["The model is loaded before anything is timed."])
    chunker = make_chunker("structure", embedder)

    def run(**options) -> Report:
        return ingest(corpus, index, embedder, chunker, **options)

    ingest_line = f"0 added, 0 updated, {documents} unchanged, 0 removed"
    first, report = timed(run, f"{documents} added")
    fresh, _ = timed(run, ingest_line, 5)
    time.sleep(AT_REST)
    run()  # remembers the files, now at rest
    nothing, _ = timed(run, ingest_line, 51)
    verify, _ = timed(lambda: run(verify=True), ingest_line, 5)
    one_changed, path = [], corpus / "documents" / "gift-cards.md"
    for number in range(5):  # each time another section
        text = path.read_text(encoding="utf-8")
        text = text.replace(" gift card ", f" gift card no. {number} ", number + 1)
        path.write_text(text, encoding="utf-8", newline="\n")
        seconds, changed = timed(run, "0 added, 1 updated")
        one_changed.append(seconds)
    # Of thousands, the first ingest stands for the rebuild: it embeds and stores the same and has nothing to replace.
    rebuild = first if documents > 100 else timed(lambda: run(rebuild=True), f"{documents} added", 3)[0]
    return {"documents": documents, "chunks": report.chunks_added, "first": first, "rebuild": rebuild,
            "one changed": statistics.median(one_changed), "texts embedded for it": changed.embedded,
            "nothing changed": nothing, "files just written": fresh, "verify": verify}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--documents", type=int, nargs="+", default=[36])
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    rows = []
    for documents in asked.documents:
        with tempfile.TemporaryDirectory() as home:
            row = measure(Path(home), documents)
        rows.append(row)
        print(f"{documents} documents, {row['chunks']} chunks: rebuild {row['rebuild']:.2f} s "
              f"(first ingest {row['first']:.2f} s)")
        for name in ("one changed", "nothing changed", "files just written", "verify"):
            ratio = row["rebuild"] / row[name]
            limit = LIMITS.get((name, documents))
            verdict = "" if limit is None else f"; at most 1/{limit} wanted: {'kept' if ratio >= limit else 'MISSED'}"
            print(f"  {name:18}  {1000 * row[name]:8.2f} ms  1/{ratio:,.0f} of the rebuild{verdict}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
