"""The command line: `python -m labsupport COMMAND`. Every command prints one clear sentence when it cannot do its work.

Exit codes: 0 done, 1 the work found a fault, 2 bad usage or input (nothing was changed).
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from labsupport.cli_answers import answers
from labsupport.cli_options import (
    DEFAULT_CORPUS,
    DEFAULT_INDEX,
    OWN,
    AsJson,
    AsOf,
    Audience,
    Corpus,
    Index,
    Method,
    engine_of,
    filters_for,
    mends_named,
    one_of,
    open_index,
    progress_bar,
    refuse_unknown,
    show,
)
from labsupport.lab.commands import snapshot
from labsupport.pipeline import LabError
from labsupport.pipeline.terminal import use_utf8

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Answers from documents, with citations that are checked.",
)

PROGRAM = "python -m labsupport"
INTERRUPTED = 130
UsageError = typer.BadParameter.__base__  # of click, or of the copy that newer typers bring along


def run(argv: list[str]) -> int:
    """Run one command line and return its exit code."""
    use_utf8()
    argv = argv or ["--help"]
    try:
        result = typer.main.get_command(app).main(argv, prog_name=PROGRAM, standalone_mode=False)
        if result == INTERRUPTED:  # typer turns Ctrl-C into this code and says nothing
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except LabError as fault:
        print(fault, file=sys.stderr)
    except UsageError as usage:
        path = usage.ctx.command_path if usage.ctx else PROGRAM
        what = usage.format_message().rstrip(".") or "A command is missing"
        print(f"{what}; `{path} --help` shows how to call it.", file=sys.stderr)
    except (KeyboardInterrupt, typer.Abort):
        print("Stopped. What was not finished has changed nothing.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
    return 2


@app.command()
def ingest(
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
    rebuild: Annotated[bool, typer.Option(help="Build the whole index anew, beside the old one, then swap.")] = False,
    verify: Annotated[bool, typer.Option(help="Read every byte of the files and every page of the index.")] = False,
    allow_empty: Annotated[bool, typer.Option(help="Let an empty folder empty the index.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make the index equal to the folder, doing only the work the changes need."""
    from labsupport.pipeline.updates import ingest as run_ingest

    with mends_named(corpus, index), progress_bar() as progress:
        report = run_ingest(
            corpus, engine_of(index), rebuild=rebuild, verify=verify, allow_empty=allow_empty, progress=progress
        )
    if as_json:
        show(asdict(report))
    else:
        print(report)
        info(index, corpus)
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
    with open_index(index, corpus) as store:
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
    with open_index(index, corpus) as store:
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
    if not results:
        print(f"nothing found (filters: {said(results.filters)})")
    for note in [*results.notes, *two_scales(results)]:
        print(f"note: {note}")
    print(f"{method}, top {k}, as of {results.filters.as_of}, audience {filters.audience}")


def said(filters) -> str:
    """The filters of a search in words."""
    named = {"as of": filters.as_of, "audience": filters.audience, "language": filters.language,
             "type": filters.doc_type}  # fmt: skip
    return ", ".join(f"{name} {value}" for name, value in named.items() if value)


def two_scales(results) -> list[str]:
    """Which scores of a mixed list are of the other scale: what a reranker cannot read keeps the score of hybrid."""
    kept = [result for result in results if result.scored_by != "reranker"]
    if len(kept) in (0, len(results)):
        return []
    ranks = ", ".join(str(result.rank) for result in kept)
    return [f"Scored by {kept[0].scored_by}: {ranks}; by the reranker: the others. The two scales do not compare."]


@app.command()
def info(index: Index = DEFAULT_INDEX, corpus: Corpus = DEFAULT_CORPUS, as_json: AsJson = False) -> None:
    """Say what the index holds and what made it."""
    with open_index(index, corpus) as store:
        rows, meta = store.documents(), store.meta()
        index = getattr(store, "shown", index)  # an address without its password
    held = sum(row.chunks for row in rows)
    if as_json:
        return show({"index": index, "documents": len(rows), "chunks": held} | meta)
    made_by = f"chunker {meta.get('chunker_label', '-')} | embeddings {meta.get('embedder', '-')}"
    print(f"index {index}: {len(rows)} documents, {held} chunks | {made_by}")


app.add_typer(answers)
app.add_typer(snapshot, name="snapshot")
PASSED_ON = {"add_help_option": False, "ignore_unknown_options": True, "allow_extra_args": True}


@app.command(context_settings=PASSED_ON)
def evidence(context: typer.Context) -> int:
    """Check whether the context that would be sent holds the facts of an answer."""
    from labsupport.pipeline.evidence import main

    return main(context.args)


@app.command(context_settings=PASSED_ON)
def doctor(context: typer.Context) -> int:
    """Say OK, or the mend, for each thing a machine can lack."""
    from labsupport.lab.doctor import main

    return main(context.args)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Where to listen; loopback unless you know better.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    tokens: Annotated[Path | None, typer.Option(metavar="FILE", help="Tokens of staff, made by `token`.")] = None,
    answerer: Annotated[str | None, typer.Option(help=f"extractive, endpoint, or {OWN}.")] = None,
    method: Annotated[str, typer.Option(help="bm25, dense, hybrid, rerank or narrow.")] = "rerank",
    name: Annotated[list[str] | None, typer.Option(help="A further host name to answer to, as behind a proxy.")] = None,
    log_questions: Annotated[bool, typer.Option(help="Write the text of questions to the log.")] = False,
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
) -> None:
    """Serve the assistant: a chat page, and conversations that stream."""
    from labsupport.pipeline.ask import ASK_METHODS
    from labsupport.service.server import serve as run_server

    one_of("method", method, ASK_METHODS)
    if answerer:
        refuse_unknown(answerer)
    filters_for(corpus, None, None)  # refuses a corpus that is not there
    with open_index(index, corpus) as store:
        run_server(store, corpus, host, port, answerer, method, tokens, tuple(name or ()), log_questions)


@app.command()
def token(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    audience: Annotated[str, typer.Option(help="staff or public.")] = "staff",
    file: Annotated[Path, typer.Option(metavar="FILE", help="The file of tokens.")] = Path("tokens.jsonl"),
) -> None:
    """Make a token for the service and print it, once; the file keeps only its hash."""
    from labsupport.service.access import new_token

    print(new_token(file, name, audience))
