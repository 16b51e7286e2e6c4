"""The evidence report as pandas tables and as text. pandas is imported only where a table is asked for."""

from typing import TYPE_CHECKING

from labsupport.pipeline import LabError

if TYPE_CHECKING:
    import pandas

COLUMNS = ("passages", "words_indexed", "complete", "facts", "words_sent", "redundant_words")


def cuts_table(report: dict) -> "pandas.DataFrame":
    """One row per cut: passages, words_indexed, complete, facts, words_sent, redundant_words."""
    import pandas

    return pandas.DataFrame.from_dict(report["table"], orient="index", columns=COLUMNS).rename_axis("cut")


def facts_table(report: dict) -> "pandas.DataFrame":
    """One row per cut and fact: question, fact, covered, cause, detail, and the fact's words [start, end)."""
    import pandas

    rows = [{"cut": how, "question": result["id"], **fact} for how, result, fact in each_fact(report)]
    columns = "cut question fact covered cause detail document start end words kept_words".split()  # noqa: SIM905
    table = pandas.DataFrame(rows).rename(columns={"id": "fact"}).reindex(columns=columns)
    return table.fillna({"cause": "", "detail": ""})


def passages_table(report: dict, stage: str = "context") -> "pandas.DataFrame":
    """One row per cut, question and passage; `stage` is context (what was kept) or hits_before_budget."""
    import pandas

    if stage not in ("context", "hits_before_budget"):
        raise LabError(f"Unknown stage {stage!r}; use context or hits_before_budget.")
    found = [(how, result["id"], piece) for how, result in each_question(report) for piece in result[stage]]
    return pandas.DataFrame([{"cut": how, "question": question, **piece} for how, question, piece in found])


def each_question(report: dict) -> list[tuple[str, dict]]:
    return [(how, result) for how, results in report["cuts"].items() for result in results]


def each_fact(report: dict) -> list[tuple[str, dict, dict]]:
    return [(how, result, fact) for how, result in each_question(report) for fact in result["facts"]]


def lines(report: dict) -> list[str]:
    """The report as text: the table, then each fact not covered with its cause, then the unanswerable questions."""
    text = [f"at most {report['top']} passages and {report['budget_words']} words for each question"]
    text.append(" ".join([f"{'cut':<12}", *COLUMNS]))
    for how, counts in report["table"].items():
        text.append(" ".join([f"{how:<12}", *(f"{counts[column]:>{len(column)}}" for column in COLUMNS)]))
    missing = [(how, result, fact) for how, result, fact in each_fact(report) if not fact["covered"]]
    text.append("facts not covered:" if missing else "every fact is covered")
    for how, result, fact in missing:
        text.append(f"  {how} | {result['id']}, {fact['id']} | {fact['cause']}: {fact['detail']}")
    for how, result in each_question(report):
        if result["all_required_covered"] is None:
            matched = sorted({word for hit in result["hits_before_budget"] for word in hit["matched"]})
            why = f"{len(result['hits_before_budget'])} passages came back for: {', '.join(matched) or 'nothing'}"
            text.append(f"  {how} | {result['id']} | not in the documents, not counted; {why}")
    return text
