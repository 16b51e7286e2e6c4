"""What the commands share: their options, the index behind `--index`, filters with the corpus's defaults, progress."""

import json
import re
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from labsupport.pipeline import LabError
from labsupport.pipeline.terminal import ADDRESSES

DEFAULT_CORPUS = Path("corpus")
DEFAULT_INDEX = "index.sqlite"
OWN = "NAME of a file of your own, labsupport/pipeline/NAME.py"  # with a make_answerer in it
NO_REPLAY = "A recording answers nothing anew; give --answerer extractive, endpoint, or the name of a file of your own."

Corpus = Annotated[Path, typer.Option(help="Folder of the corpus; its documents are in DIR/documents.", metavar="DIR")]
Index = Annotated[str, typer.Option(help="The index: a SQLite file, or a postgresql:// address.", metavar="FILE")]
AsOf = Annotated[str | None, typer.Option(help="Answer as of this day, YYYY-MM-DD. Default: the corpus's own today.")]
Audience = Annotated[str | None, typer.Option(help="Who asks: staff or public. Default: the corpus's own.")]
Method = Annotated[str, typer.Option(help="bm25, dense, hybrid or rerank.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def show(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def filters_for(
    corpus: Path, as_of: str | None, audience: str | None, language: str | None = None, doc_type: str | None = None
):
    """The filters of a command: what was said, else the corpus's own defaults."""
    from labsupport.pipeline.corpus import course_defaults, documents_folder
    from labsupport.pipeline.index import Filters

    default_as_of, default_audience = course_defaults(corpus)
    documents_folder(corpus)  # a folder above or below the corpus has no course.yaml either: it would be today
    return Filters(as_of or default_as_of, audience or default_audience, language, doc_type)


def one_of(what: str, value: str | None, allowed: Iterable[str]) -> None:
    """Refuse a value before any work is done. None: nothing was said."""
    if value is not None and value not in (known := tuple(allowed)):
        raise LabError(f"Unknown {what} {value!r}; use one of: {', '.join(known)}.")


def is_replay(answerer: str) -> bool:
    return answerer.partition(":")[0] == "replay"


def refuse_unknown(answerer: str, no_replay: str = NO_REPLAY) -> None:
    """Refuse an answerer that is none, or that only repeats, before a model is loaded."""
    from labsupport.pipeline.answering import answerer_module

    if is_replay(answerer):
        raise LabError(no_replay)
    answerer_module(answerer)


def file_of(index: str) -> Path:
    if not index.strip() or Path(index).is_dir():
        raise LabError(f"--index {index!r} names no file; give one such as index.sqlite.")
    if "://" in index:
        scheme = index.partition("://")[0]
        raise LabError(f"--index {scheme}://… is no address this program knows; give a file such as index.sqlite, or "
                       "an address that begins with postgresql://.")
    if re.search(r"\bpassword\s*=", index):  # not repeated
        raise LabError("--index is no file, but looks like settings for a server; give these as an address that begins "
                       "with postgresql://.")
    return Path(index)


@contextmanager
def mends_named(corpus: Path, index: str):
    """What is advised inside, is advised with the --corpus and --index of this command."""
    from labsupport.pipeline.sqlite_file import mend_for

    try:
        yield
    except LabError as error:
        shown = index
        if index.startswith(ADDRESSES):
            from labsupport.engines.address import Address

            with suppress(LabError):
                shown = Address(index).shown  # without its password
        raise LabError(mend_for(str(error), corpus, shown)) from error


@contextmanager
def open_index(index: str, corpus: Path = DEFAULT_CORPUS):
    """The store behind `--index`: SQLite for a file, PostgreSQL for an address."""
    with mends_named(corpus, index):
        if index.startswith(ADDRESSES):
            from labsupport.engines.postgres import PostgresStore as Store

            place = index
        else:
            from labsupport.pipeline.store import Store

            place = file_of(index)
        with Store(place) as store:
            yield store


def engine_of(index: str):
    """What `ingest` writes to: a path, or an engine of its own for an address."""
    if index.startswith(ADDRESSES):
        from labsupport.engines.postgres import PostgresEngine

        return PostgresEngine(index)
    return file_of(index)


@contextmanager
def progress_bar():
    """Yields a callback (what, done, total) that draws bars on standard error, for a person who looks at it.

    In a pipe or a log only that is said which cannot be counted, such as that another run is waited for.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, int] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None)
                if not total and not console.is_terminal:
                    console.print(what, markup=False, highlight=False, soft_wrap=True)
            bar.update(tasks[what], completed=done, total=total or None)

        yield progress
