"""The evidence panel: one question under one way of cutting, with its facts marked in the words that would be sent.

`evidence_view` gives the same content without a widget. Blue with a solid line is evidence that is sent; orange with a
dashed line is evidence that is not. Line and words say it too, for readers who do not see the colours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import ipywidgets as widgets

from labsupport.pipeline import LabError
from labsupport.pipeline.evidence import BORDER, CUTS, check, default_cases, read_cases
from labsupport.pipeline.evidence_cases import Cases
from labsupport.pipeline.evidence_context import BUDGET_WORDS

from .base import Panel, View, escape, make_view
from .controls import label_width, slider_row

NAME = "EvidencePanel"
CSS = """
.lab-panel.lab-panel mark { color: inherit; padding: 1px 2px; background: rgba(31, 136, 196, 0.2);
  border-bottom: 2px solid #1f88c4; }
.lab-panel .unsent { opacity: 0.9; border-left: 3px dashed var(--jp-border-color1, #888); padding-left: 6px; }
.lab-panel.lab-panel .unsent mark, .lab-panel.lab-panel mark.lost { background: rgba(207, 106, 29, 0.22);
  border-bottom: 2px dashed #cf6a1d; }
.lab-panel .again { font-style: italic; text-decoration: underline dotted; }
"""


@dataclass(frozen=True)
class Run:
    """Neighbouring words of one passage that are shown alike."""

    text: str
    facts: tuple[str, ...]  # ids of the facts these words belong to
    state: str  # "sent", "again" (sent with an earlier passage too), "unsent", "beyond" (past a border of the passage)


def evidence_view(
    question: str | None = None, cut: str = CUTS[0], cases: Cases | None = None, budget: int = BUDGET_WORDS
) -> View:
    """What the panel shows; the first question by default. Raises LabError for an unknown question or cut."""
    cases = cases or read_cases(default_cases())
    question = question or cases.questions[0].id
    results = {result["id"]: result for result in check(cases, [cut], budget)["cuts"][cut]}
    if question not in results:
        raise LabError(f"Unknown question {question!r}; use one of {', '.join(results)}.")
    result = results[question]
    passages = [(hit, list(runs(hit, result, cases))) for hit in result["hits_before_budget"]]
    summary = summarise(result, cut, budget)
    return make_view(NAME, summary, as_html(result, passages, cases), as_text(result, summary, passages, cases), CSS)


def summarise(result: dict, cut: str, budget: int) -> str:
    facts = result["facts"]
    covered = f"{sum(fact['covered'] for fact in facts)} of {len(facts)} facts" if facts else "no facts to cover"
    words = f"{result['words_sent']} of {budget} words, {result['redundant_words']} repeated"
    return f"{result['id']} × {cut}, {covered}, {words}"


def runs(hit: dict, result: dict, cases: Cases) -> Iterator[Run]:
    """The words of a passage as it was found, and what a border cut off a fact, in runs that are shown alike."""
    words = cases.documents[hit["document"]].words
    facts = [fact for fact in result["facts"] if fact["document"] == hit["document"]]
    kept = [piece for piece in result["context"] if piece["document"] == hit["document"]]
    severed = [
        fact for fact in facts if fact["cause"] == BORDER and fact["start"] < hit["end"] and fact["end"] > hit["start"]
    ]
    first = min([hit["start"], *(fact["start"] for fact in severed)])
    last = max([hit["end"], *(fact["end"] for fact in severed)])

    def alike(n: int) -> tuple[tuple[str, ...], str]:
        ranks = [piece["rank"] for piece in kept if piece["start"] <= n < piece["end"]]
        sent = "unsent" if hit["rank"] not in ranks else "again" if min(ranks) < hit["rank"] else "sent"
        names = tuple(fact["id"] for fact in facts if fact["start"] <= n < fact["end"])
        return names, sent if hit["start"] <= n < hit["end"] else "beyond"

    for (names, state), group in groupby(range(first, last), alike):
        yield Run(" ".join(words[n] for n in group), names, state)


def heading(hit: dict, result: dict) -> str:
    sent = sum(piece["words"] for piece in result["context"] if piece["rank"] == hit["rank"])
    where = f"{hit['rank']}. {hit['document']}, words {hit['start']} to {hit['end']}: {sent} of {hit['words']} sent"
    return f"{where}; found by: {', '.join(hit['matched'])}" if hit["matched"] else where


def quotations(result: dict, cases: Cases) -> Iterator[tuple[dict, list[tuple[bool, str]], str]]:
    """Each fact, its words in runs of (sent, text), and what became of it."""
    sent = {(piece["document"], n) for piece in result["context"] for n in range(piece["start"], piece["end"])}
    for fact in result["facts"]:
        words = cases.documents[fact["document"]].words
        places = [(fact["document"], n) for n in range(fact["start"], fact["end"])]
        groups = groupby(places, sent.__contains__)
        parts = [(kept, " ".join(words[n] for _, n in group)) for kept, group in groups]
        yield fact, parts, "covered" if fact["covered"] else f"not covered, {fact['cause']}: {fact['detail']}"


NOTHING = "The documents hold no answer; what came back shares a word with the question, no more."
EMPTY = "No passage holds a word of the question."
LEAD = {"unsent": "not sent: ", "beyond": "cut off at the border: ", "again": "", "sent": ""}


def as_text(result: dict, summary: str, passages: list[tuple[dict, list[Run]]], cases: Cases) -> str:
    """The text alternative: facts in [brackets], repeated words in (parentheses), what is not sent after a bar."""

    def bracketed(run: Run) -> str:
        words = f"(again: {run.text})" if run.state == "again" else run.text
        return f"[{', '.join(run.facts)}: {words}]" if run.facts else words

    lines = [result["text"], summary, *([] if result["facts"] else [NOTHING])]
    for fact, parts, verdict in quotations(result, cases):
        words = " ".join(text if kept else f"<missing: {text}>" for kept, text in parts)
        lines.append(f"fact {fact['id']}: {verdict}\n   {words}")
    lines += ["", *([] if passages else [EMPTY])]
    for hit, parts in passages:
        lines.append(heading(hit, result))
        for lead, group in groupby(parts, lambda part: LEAD[part.state]):
            words = " ".join(map(bracketed, group))
            lines.append(f"   {'| ' if lead else ''}{lead}{words}")
    return "\n".join(lines)


def as_html(result: dict, passages: list[tuple[dict, list[Run]]], cases: Cases) -> str:
    numbers = {fact["id"]: n for n, fact in enumerate(result["facts"], 1)}

    def marked(run: Run) -> str:
        words = f'<span class="again">{escape(run.text)}</span>' if run.state == "again" else escape(run.text)
        label = f"<sup>{', '.join(str(numbers[name]) for name in run.facts)}</sup>"
        return f'<mark title="{escape(", ".join(run.facts))}">{label}{words}</mark>' if run.facts else words

    html = [f"<p>{escape(result['text'])}</p>" + ("" if numbers else f"<p>{NOTHING}</p>")]
    for fact, parts, verdict in quotations(result, cases):
        lost = '<mark class="lost"><small>missing:</small> '
        words = " ".join(f"{'<mark>' if kept else lost}{escape(text)}</mark>" for kept, text in parts)
        sign = "✓" if fact["covered"] else "✗"
        html.append(f"<p>{numbers[fact['id']]}. {sign} {words}<br><small>{escape(verdict)}</small></p>")
    html += [] if passages else [f"<p>{EMPTY}</p>"]
    for hit, parts in passages:
        html.append(f"<h4>{escape(heading(hit, result))}</h4>")
        for lead, group in groupby(parts, lambda part: LEAD[part.state]):
            words = " ".join(map(marked, group))
            html.append(f'<p class="unsent"><small>{lead}</small>{words}</p>' if lead else f"<p>{words}</p>")
    return "".join(html)


class EvidencePanel(Panel):
    """Choose a question, a way of cutting, a budget; see what would be sent. Controls: `.question`, `.cut`, `.budget`
    (slider), `.number` (box)."""

    def __init__(self, cases: Cases | None = None, question: str | None = None, cut: str = CUTS[0]):
        self.cases = cases or read_cases(default_cases())
        ids = [entry.id for entry in self.cases.questions]
        evidence_view(question, cut, self.cases)  # refuses an unknown question or cut
        total = max(BUDGET_WORDS, sum(len(document.words) for document in self.cases.documents.values()))
        self.question = widgets.Dropdown(
            options=[(f"{entry.id}: {entry.text}", entry.id) for entry in self.cases.questions],
            value=question or ids[0], description="Question", style=label_width(), layout=widgets.Layout(width="98%"),
        )
        self.cut = widgets.Dropdown(options=tuple(dict.fromkeys([*CUTS, cut])), value=cut, description="Cut",
                                    style=label_width())
        self.budget, self.number, row = slider_row("Budget", BUDGET_WORDS, 1, total, unit="words")
        super().__init__([self.question, self.cut, row], [self.question, self.cut, self.budget], height=480)

    def look(self) -> View:
        return evidence_view(self.question.value, self.cut.value, self.cases, self.budget.value)


def evidence_panel(cases: Cases | None = None, question: str | None = None, cut: str = CUTS[0]) -> EvidencePanel:
    return EvidencePanel(cases, question, cut)
