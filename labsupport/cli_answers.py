"""The commands about answers: ask, record, audit, evaluate."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

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
    filters_for,
    is_replay,
    one_of,
    open_index,
    progress_bar,
    refuse_unknown,
    show,
)
from labsupport.pipeline import LabError

answers = typer.Typer()
SECONDS = "seconds a question, models loaded"
CHAT = "chat"  # the name under which the local chat model's answers are recorded


@answers.command()
def ask(
    question: Annotated[str, typer.Argument(help="A question in any words, or the number of a course question: Q51.")],
    answerer: Annotated[
        str | None,
        typer.Option(help=f"extractive, endpoint, replay:NAME of a recording, or {OWN}. Default: see the README."),
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the prompt instead of an answer.")] = False,
    method: Method = "rerank",
    k: Annotated[int, typer.Option(help="How many passages.")] = 5,
    budget: Annotated[int, typer.Option(help="Estimated tokens of passages at most.")] = 1500,
    as_of: AsOf = None,
    audience: Audience = None,
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> int:
    """Answer a question from the documents, with every citation checked."""
    from labsupport.pipeline.ask import ASK_METHODS, DEFAULT_BUDGET, DEFAULT_K, find
    from labsupport.pipeline.ask import ask as run_ask
    from labsupport.pipeline.context import check_budget
    from labsupport.pipeline.rendering import render_asked
    from labsupport.pipeline.reranking import load_reranker
    from labsupport.pipeline.search import Retriever
    from labsupport.service.remembering import RememberingReranker

    one_of("method", method, ASK_METHODS)
    check_budget(budget)
    known = course_question(corpus, question)
    named = answerer or default_answerer(known is not None)
    repeats = is_replay(named) and known and not prompt
    if not repeats and not prompt:
        refuse_unknown(named, "Only the course's questions are recorded; ask a free question with "
                       "--answerer extractive.")
    with open_index(index, corpus) as store:
        retriever = Retriever(store, reranker=RememberingReranker(load_reranker()))
        if repeats:
            if as_of or (k, budget) != (DEFAULT_K, DEFAULT_BUDGET):
                raise LabError("A recorded answer has its own date and passages; name an --answerer to ask anew with "
                               "another --as-of, --k or --budget.")
            asked = replayed(retriever, corpus, known.qid, named, method, audience)
        else:
            filters = filters_for(corpus, as_of or (known and known.as_of), audience or (known and known.audience))
            options = {
                "method": method, "k": k, "budget": budget, "filters": filters,
                "history": known.history if known else (), "qid": known.qid if known else "",
            }  # fmt: skip
            text = known.text if known else question
            if prompt:
                found = find(text, retriever, **options)
                show(prompt_parts(found)) if as_json else print(found.prompt.text)
                return 0
            asked = run_ask(text, retriever, make_answerer(named, retriever), **options)
    show(asked.as_dict()) if as_json else print(render_asked(asked))
    return 1 if asked.checked.invalid else 0


def prompt_parts(found) -> dict:
    """The prompt for programs: the two messages, and the passages in them."""
    prompt = found.prompt
    return {
        "question": found.question, "asked": found.asked, "audience": found.filters.audience, "method": found.method,
        "prompt": {"system": prompt.system, "user": prompt.user}, "version": prompt.version,
        "posture": prompt.posture, "tokens": prompt.tokens, "passages": found.context.ids,
    }  # fmt: skip


def course_question(corpus: Path, text: str):
    """The course's question of that number, or None for any other text."""
    from labsupport.pipeline.corpus import read_questions

    if not re.fullmatch(r"[Qq][0-9]{1,3}", text.strip()):
        return None
    questions = {question.qid: question for question in read_questions(corpus)}
    if text.strip().upper() not in questions:
        held = f"{min(questions)} to {max(questions)}" if questions else "none"
        raise LabError(
            f"There is no question {text.strip()}: {corpus.as_posix()}/questions.csv holds {held}. "
            "Ask one of these, or write your question out."
        )
    return questions[text.strip().upper()]


def default_answerer(is_course_question: bool) -> str:
    if is_course_question:
        return f"replay:{CHAT}"
    return "endpoint" if os.environ.get("LAB_ENDPOINT_URL") else "extractive"


def make_answerer(name: str, retriever):
    from labsupport.pipeline.answering import load_answerer

    return load_answerer(name, reranker=retriever.reranker, embedder=retriever.embedder)


def replayed(retriever, corpus: Path, qid: str, named: str, method: str, audience: str | None):
    """The recorded answer, checked against today's index, for a caller of that audience."""
    from labsupport.pipeline.corpus import course_defaults
    from labsupport.pipeline.recordings import find_recording
    from labsupport.pipeline.replay import replay

    recording = find_recording(corpus / "recordings", named.partition(":")[2] or CHAT, method, qid)
    return replay(recording, retriever, audience or course_defaults(corpus)[1])


@answers.command()
def record(
    answerer: Annotated[str, typer.Option(help=f"extractive, endpoint, or {OWN}.")] = "extractive",
    name: Annotated[str | None, typer.Option(help="Record under this name; endpoint answers are named chat.")] = None,
    method: Method = "rerank",
    only: Annotated[list[str] | None, typer.Option(help="Only this question; may be given several times.")] = None,
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
) -> int:
    """Ask every course question and keep the answers, going on where an earlier run stopped."""
    from labsupport.pipeline.corpus import read_questions
    from labsupport.pipeline.recorder import record as run_record
    from labsupport.pipeline.search import METHODS, Retriever

    one_of("method", method, METHODS)
    refuse_unknown(answerer)
    if name and not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise LabError(f"No name for a recording: {name!r}; use letters, digits, - and _.")
    filters_for(corpus, None, None)
    questions = read_questions(corpus)
    for qid in only or ():
        one_of("question", qid, (one.qid for one in questions))
    questions = [one for one in questions if not only or one.qid in only]
    name = name or (CHAT if answerer == "endpoint" else answerer)
    command = f"python -m labsupport record --answerer {answerer} --method {method}"
    with open_index(index, corpus) as store, progress_bar() as progress:
        retriever = Retriever(store)
        report = run_record(
            questions, retriever, make_answerer(answerer, retriever), corpus / "recordings",
            method=method, name=name, command=command, progress=progress,
        )  # fmt: skip
    print(report.line)
    for qid, why in report.failed:
        print(f"  failed: {qid}: {why}")
    for note in report.notes:
        print(f"  note: {note}")
    return 1 if report.failed else 0


@answers.command()
def audit(corpus: Corpus = DEFAULT_CORPUS, index: Index = DEFAULT_INDEX, as_json: AsJson = False) -> int:
    """List every recorded citation that the index no longer serves."""
    from labsupport.pipeline.auditing import audit as run_audit

    filters_for(corpus, None, None)  # refuses a corpus that is not there: no answers would look like no faults
    with open_index(index, corpus) as store:
        found = run_audit(corpus / "recordings", store)
    show({"answers": found.answers, "findings": list(map(str, found.findings)), "faults": found.faults}) \
        if as_json else print("\n".join(found.lines))
    return found.exit_code


@answers.command()
def evaluate(
    method: Annotated[list[str] | None, typer.Option(help="Only this method; may be given several times.")] = None,
    split: Annotated[str | None, typer.Option(help="Only the questions of this split: tune or test.")] = None,
    of_answers: Annotated[bool, typer.Option("--answers", help="Judge the recorded answers instead.")] = False,
    corpus: Corpus = DEFAULT_CORPUS,
    index: Index = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Measure search over the course's questions (recall@k, MRR), or the recorded answers against the facts."""
    from dataclasses import asdict

    from labsupport.pipeline.corpus import read_questions
    from labsupport.pipeline.search import METHODS

    one_of("split", split, ("tune", "test"))
    for one in method or ():
        one_of("method", one, METHODS)
    filters_for(corpus, None, None)
    questions = read_questions(corpus)
    if of_answers:
        from labsupport.pipeline.recordings import read_all
        from labsupport.pipeline.scoring import markdown_table, score, table

        chosen = [one for one in questions if split in (None, one.split)]
        recorded = [one for one in read_all(corpus / "recordings")[0] if not method or one.method in method]
        rows = table(score(recorded, chosen))
        return show([asdict(row) for row in rows]) if as_json else print(markdown_table(rows))

    from labsupport.pipeline.evaluation import evaluate as run_evaluate
    from labsupport.pipeline.search import Retriever

    with open_index(index, corpus) as store, progress_bar() as progress:
        measured = run_evaluate(
            Retriever(store), questions, method or METHODS, progress=lambda done, total: progress("asking", done, total)
        )
    rows = measured.table(split)
    if as_json:
        return show(rows)
    columns = [SECONDS if name == "seconds" else name for name in rows[0]]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row.values())
        print("| " + " | ".join(cells) + " |")
