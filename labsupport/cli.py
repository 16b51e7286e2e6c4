"""The command line: `python -m labsupport COMMAND`. Every command prints one clear sentence when it cannot do its work.

Exit codes: 0 done, 1 the work found a fault, 2 bad usage or input (nothing was changed).
"""

import json
import sys
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from labsupport.pipeline import LabError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Answers from documents, with citations that are checked.",
)

Corpus = Annotated[Path, typer.Option(help="Folder of the corpus; its documents are in DIR/documents.", metavar="DIR")]
Index = Annotated[str, typer.Option(help="The index: a SQLite file, or a postgresql:// address.", metavar="FILE")]
AsOf = Annotated[str | None, typer.Option(help="Answer as of this day, YYYY-MM-DD. Default: the corpus's own today.")]
Audience = Annotated[str | None, typer.Option(help="Who asks: staff or public. Default: the corpus's own.")]
Method = Annotated[str, typer.Option(help="bm25, dense, hybrid or rerank.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
PROGRAM = "python -m labsupport"
UsageError = typer.BadParameter.__base__  # of click, or of the copy that newer typers bring along
ADDRESSES = ("postgresql://", "postgres://")
DEFAULT_CORPUS = Path("corpus")
DEFAULT_INDEX = "index.sqlite"


def run(argv: list[str]) -> int:
    """Run one command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a Windows console may not be UTF-8
            stream.reconfigure(encoding="utf-8", errors="replace")
    argv = argv or ["--help"]
    try:
        result = typer.main.get_command(app).main(argv, prog_name=PROGRAM, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except LabError as fault:
        print(fault, file=sys.stderr)
    except UsageError as usage:
        path = usage.ctx.command_path if usage.ctx else PROGRAM
        print(f"{usage.format_message().rstrip('.')}; `{path} --help` shows how to call it.", file=sys.stderr)
    except (KeyboardInterrupt, typer.Abort):
        print("Stopped. What was not finished has changed nothing.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
    return 2


def show(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def filters_for(
    corpus: Path, as_of: str | None, audience: str | None, language: str | None = None, doc_type: str | None = None
):
    """The filters of a command: what was said, else the corpus's own defaults."""
    from labsupport.pipeline.corpus import course_defaults
    from labsupport.pipeline.index import Filters

    default_as_of, default_audience = course_defaults(corpus)
    return Filters(as_of or default_as_of, audience or default_audience, language, doc_type)


def open_index(index: str):
    """The store behind `--index`: SQLite for a file, PostgreSQL for an address."""
    if index.startswith(ADDRESSES):
        from labsupport.engines.postgres import PostgresStore

        return PostgresStore(index)
    from labsupport.pipeline.store import Store

    return Store(Path(index))


def engine_of(index: str):
    """What `ingest` writes to: a path, or an engine of its own for an address."""
    if index.startswith(ADDRESSES):
        from labsupport.engines.postgres import PostgresEngine

        return PostgresEngine(index)
    return Path(index)


@contextmanager
def progress_bar():
    """Yields a callback (what, done, total) that draws a bar on standard error; nothing is drawn for quick work."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, int] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None)
            bar.update(tasks[what], completed=done, total=total or None)

        yield progress


@app.command()
def ingest(
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
    rebuild: Annotated[bool, typer.Option(help="Build the whole index anew, beside the old one, then swap.")] = False,
    verify: Annotated[bool, typer.Option(help="Read every byte, whatever size and modification time say.")] = False,
    allow_empty: Annotated[bool, typer.Option(help="Let an empty folder empty the index.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make the index equal to the folder, doing only the work the changes need."""
    from labsupport.pipeline.updates import ingest as run_ingest

    with progress_bar() as progress:
        report = run_ingest(
            corpus, engine_of(index), rebuild=rebuild, verify=verify, allow_empty=allow_empty, progress=progress
        )
    show(asdict(report)) if as_json else print(report)
    return 1 if report.failed else 0


@app.command()
def chunks(
    doc: Annotated[str, typer.Argument(help="A document id, such as gift-cards.")],
    version: Annotated[str | None, typer.Option(help="Only this version.")] = None,
    index: Index = DEFAULT_INDEX,
    corpus: Corpus = DEFAULT_CORPUS,
    as_json: AsJson = False,
) -> int:
    """List the chunks of a document with their offsets."""
    with open_index(index) as store:
        found = store.chunks(doc, version)
    if as_json:
        show([chunk.as_dict() for chunk in found])
    elif not found:
        print(f"No chunks for {doc}" + (f" version {version}" if version else ""))
    for chunk in [] if as_json else found:
        part = f" | part {chunk.part} of {chunk.parts}" if chunk.parts > 1 else ""
        where = " > ".join(chunk.breadcrumb) or "-"
        place = f"{chunk.start}-{chunk.end}"
        print(f"{chunk.seq:>3}  [{chunk.chunk_id}] {chunk.label} | {place} | {chunk.kind} | {where}{part}")
    return 0 if found else 1


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="The question, in any words.")],
    method: Method = "rerank",
    k: Annotated[int, typer.Option(help="How many passages.")] = 5,
    as_of: AsOf = None,
    audience: Audience = None,
    language: Annotated[str | None, typer.Option(help="Only documents in this language: en or fr.")] = None,
    doc_type: Annotated[str | None, typer.Option(help="Only this type of document, such as policy.")] = None,
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Search the index and list the best passages with their scores."""
    from labsupport.pipeline.search import Retriever

    filters = filters_for(corpus, as_of, audience, language, doc_type)
    with open_index(index) as store:
        results = Retriever(store).search(text, method=method, k=k, filters=filters)
    if as_json:
        return show(
            {
                "question": text,
                "method": method,
                "k": k,
                "filters": asdict(results.filters),
                "searched": results.searched,
                "notes": results.notes,
                "results": [
                    {"rank": one.rank, "score": one.score, "scored_by": one.scored_by, "scores": one.parts}
                    | one.chunk.as_dict()
                    for one in results
                ],
            }
        )
    for result in results:
        chunk = result.chunk
        place = f"{chunk.label} | {chunk.section or '-'} | {chunk.audience}"
        print(f"{result.rank}.  {result.score:.4f}  [{chunk.chunk_id}] {place}")
        print(f"   {' '.join(chunk.text.split())[:100]}…")
    for note in results.notes:
        print(f"note: {note}")
    print(f"{method}, top {k}, as of {results.filters.as_of}, audience {filters.audience}")


@app.command()
def info(index: Index = DEFAULT_INDEX, as_json: AsJson = False) -> None:
    """Say what the index holds and what made it."""
    with open_index(index) as store:
        rows, meta = store.documents(), store.meta()
    held = sum(row.chunks for row in rows)
    if as_json:
        return show({"index": index, "documents": len(rows), "chunks": held} | meta)
    made_by = f"chunker {meta.get('chunker_label', '-')} | embeddings {meta.get('embedder', '-')}"
    print(f"index {index}: {len(rows)} documents, {held} chunks | {made_by}")
