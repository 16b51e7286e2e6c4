"""The evidence check: does the context that would be sent hold the facts a right answer needs?

No model, no embeddings, no generated answer. Each fact is looked for, word for word, in what was kept; for every fact
not covered the report names the cause. Standard library only (pandas is imported where a table is asked for), so that
it runs on any Python. docs/evidence.md explains the cases file and the report.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from labsupport.pipeline import LabError
from labsupport.pipeline.evidence_cases import Cases, Document, Fact, Question, locate, read_cases
from labsupport.pipeline.evidence_context import BUDGET_WORDS, CUTS, TOP, Index, Passage, cut, keep, terms
from labsupport.pipeline.evidence_report import cuts_table, facts_table, lines, passages_table
from labsupport.pipeline.terminal import Parser, use_utf8

__all__ = ["CAUSES", "CUTS", "check", "cuts_table", "facts_table", "lines", "main", "passages_table", "read_cases"]
ABSENT = "quotation absent from the index"
LOW = "passage ranked too low"
BORDER = "evidence cut at a border"
BUDGET = "evidence dropped by the budget"
REFERENCE = "wrong reference"
CAUSES = (ABSENT, LOW, BORDER, BUDGET, REFERENCE)


def default_cases() -> Path:
    """The course's own cases: under the working folder, or beside the package (a notebook runs elsewhere)."""
    here = Path("corpus/evidence/cases.json")
    return here if here.exists() else Path(__file__).parents[2] / here


def check(cases: Cases, cuts: Sequence[str] = CUTS, budget: int = BUDGET_WORDS, top: int = TOP) -> dict:
    """The whole report, ready for JSON. Its `table` counts answerable questions only."""
    if budget < 1 or top < 1:
        raise LabError(f"A context needs a budget of 1 word or more ({budget}) and 1 passage or more ({top}).")
    documents = [
        {"id": each.id, "title": each.title, "country": each.country, "status": each.status, "words": len(each.words)}
        for each in cases.documents.values()
    ]
    report = {"cases": cases.name, "budget_words": budget, "top": top, "documents": documents, "table": {}, "cuts": {}}
    for how in cuts:
        current = [document for document in cases.documents.values() if document.status == "current"]
        passages = {passage.id: passage for document in current for passage in cut(document, how)}
        with closing(Index(passages.values(), cases.documents)) as index:
            results = [check_question(question, index, cases, passages, budget, top) for question in cases.questions]
        counted = [result for result in results if result["all_required_covered"] is not None]
        report["cuts"][how] = results
        report["table"][how] = {
            "passages": len(passages),
            "words_indexed": sum(passage.words for passage in passages.values()),
            "complete": sum(result["all_required_covered"] for result in counted),
            "facts": sum(fact["covered"] for result in counted for fact in result["facts"]),
            "words_sent": sum(result["words_sent"] for result in counted),
            "redundant_words": sum(result["redundant_words"] for result in counted),
        }
    return report


def check_question(
    question: Question, index: Index, cases: Cases, passages: Mapping[str, Passage], budget: int, top: int
) -> dict:
    """One question under one cut: what was found, what was kept of it, and what became of each fact."""
    ranking = index.rank(question.text)
    names = [hit.passage for hit in ranking]
    kept = keep(names[:top], passages, budget)
    sent = [place for piece in kept for place in piece.positions]
    facts = [judge(fact, cases.documents, passages, names, kept, top) for fact in question.facts]
    return {
        "id": question.id,
        "text": question.text,
        "terms": terms(question.text),
        "hits_before_budget": [
            row(rank, passages[hit.passage]) | {"score": round(hit.score, 6), "matched": list(hit.matched)}
            for rank, hit in enumerate(ranking[:top], 1)
        ],
        "context": [row(rank, piece) for rank, piece in enumerate(kept, 1)],
        "words_sent": len(sent),
        "redundant_words": len(sent) - len(set(sent)),  # repeats of a source position
        "all_required_covered": all(fact["covered"] for fact in facts) if question.answerable else None,
        "facts": facts,
    }


def row(rank: int, piece: Passage) -> dict:
    span = {"start": piece.start, "end": piece.end, "words": piece.words}
    return {"rank": rank, "passage": piece.id, "document": piece.document} | span


def judge(
    fact: Fact,
    documents: Mapping[str, Document],
    passages: Mapping[str, Passage],
    ranking: Sequence[str],
    kept: Sequence[Passage],
    top: int = TOP,
) -> dict:
    """Is every word of the fact, at its place in its own document, in what was kept? If not, the cause."""
    wanted = {(fact.document, n) for n in range(fact.start, fact.end)}

    def held(pieces: Iterable[Passage]) -> set[tuple[str, int]]:
        return wanted & {place for piece in pieces for place in piece.positions}

    seen = held(kept)
    covered = seen == wanted
    holders = [passage for passage in passages.values() if held([passage])]
    ranks = {passage.id: ranking.index(passage.id) + 1 if passage.id in ranking else None for passage in holders}
    cause = detail = None
    if not covered:
        found = {name: f"rank {rank}" if rank else "holds no word of the question" for name, rank in ranks.items()}
        places = ", ".join(f"{name} ({rank})" for name, rank in found.items()) or "no passage"
        detail = f"{len(seen)} of {len(wanted)} words kept; they stand in {places}"
        hits = [passages[name] for name in ranking[:top]]
        if others := same_words_elsewhere(fact, documents, kept):
            cause, detail = REFERENCE, f"the same words were kept from {', '.join(others)}, not from {fact.document}"
        elif held(passages.values()) != wanted:
            cause = ABSENT
            if documents[fact.document].status != "current":
                detail = f"{fact.document} is {documents[fact.document].status}, so it is not indexed"
        elif held(hits) == wanted:
            cause = BUDGET
        elif not held(hits) or any(held([passage]) == wanted for passage in holders):
            cause = LOW
        else:
            cause = BORDER
    place = {"id": fact.id, "document": fact.document, "start": fact.start, "end": fact.end, "words": len(wanted)}
    return place | dict(kept_words=len(seen), covered=covered, cause=cause, detail=detail, held_by=ranks)


def same_words_elsewhere(fact: Fact, documents: Mapping[str, Document], kept: Sequence[Passage]) -> list[str]:
    """Other documents of which the same words were kept."""
    sent = {place for piece in kept for place in piece.positions}
    length = fact.end - fact.start
    places = [(other.id, start) for other in documents.values() for start in locate(fact.quotation, other)]
    found = [name for name, start in places if sent.issuperset((name, start + n) for n in range(length))]
    return [name for name in dict.fromkeys(found) if name != fact.document]


def main(argv: Sequence[str] | None = None) -> int:
    """The command `evidence`. Returns 0, 1 where the self-test found a fault, 2 for bad usage or input."""
    parser = Parser(prog="python -m labsupport evidence", description="Are the facts in the context?")
    parser.add_argument("--cases", type=Path, metavar="FILE", help="cases of your own (docs/evidence.md)")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="take the cases from DIR/evidence/cases.json")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the whole report, as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--self-test", action="store_true", help="does the check notice known faults?")
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return stop.code if isinstance(stop.code, int) else 2
    use_utf8()
    try:
        return run(args)
    except LabError as fault:
        print(fault, file=sys.stderr)
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
    except OSError as fault:
        print(f"Cannot write {fault.filename}: {fault.strerror}; choose another --output.", file=sys.stderr)
    return 2


def run(args: argparse.Namespace) -> int:
    sources: tuple[Path, ...] = ()
    if args.self_test:
        from labsupport.pipeline import evidence_faults  # it imports this module

        result = evidence_faults.self_test()
        text, code = evidence_faults.lines(result), int(not all(row["noticed"] for row in result))
    else:
        path = args.cases or (args.corpus / "evidence" / "cases.json" if args.corpus else default_cases())
        cases = read_cases(path)
        sources = (path, *cases.sources)
        result = check(cases)
        text, code = lines(result), 0
    rendered = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    if args.output:
        if args.output.exists() and any(args.output.samefile(source) for source in sources):  # by whatever name
            raise LabError(f"{args.output} is an input of the check; give --output another name.")
        args.output.write_text(rendered, encoding="utf-8", newline="\n")
    print(rendered if args.json else "\n".join(text), end="" if args.json else "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
