"""The evidence panel: one question under one way of cutting, with its facts marked in the words that would be sent.

`evidence_view` gives the same content without a widget. Blue with a solid line is evidence that is sent; orange with a
dashed line is evidence that is not. Line and words say it too, for readers who do not see the colours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby

import ipywidgets as widgets

from labsupport.pipeline import LabError
from labsupport.pipeline.evidence import BORDER, CUTS, check, default_cases, read_cases
from labsupport.pipeline.evidence_cases import Cases
from labsupport.pipeline.evidence_context import BUDGET_WORDS

STYLE = """<style>
.lab-evidence { color: var(--jp-content-font-color1, inherit); line-height: 1.6; padding: 0 8px;
  font-family: var(--jp-content-font-family, sans-serif); font-size: var(--jp-content-font-size1, 14px); }
.lab-evidence h4 { margin: 10px 0 2px; font-size: 1em; }
.lab-evidence p { margin: 2px 0; }
.lab-evidence mark { color: inherit; padding: 1px 2px; background: rgba(0, 114, 178, 0.2);
  border-bottom: 2px solid #2f8fcf; }
.lab-evidence .unsent { opacity: 0.85; border-left: 3px dashed var(--jp-border-color1, #888); padding-left: 6px; }
.lab-evidence .unsent mark, .lab-evidence mark.lost { background: rgba(213, 94, 0, 0.22);
  border-bottom: 2px dashed #d9702b; }
.lab-evidence .again { font-style: italic; text-decoration: underline dotted; }
.lab-evidence pre { white-space: pre-wrap; color: inherit; background: transparent; font-size: 0.9em; }
</style>"""


@dataclass(frozen=True)
class Run:
    """Neighbouring words of one passage that are shown alike."""

    text: str
    facts: tuple[str, ...]  # ids of the facts these words belong to
    state: str  # "sent", "again" (sent with an earlier passage too), "unsent", "beyond" (past a border of the passage)


@dataclass(frozen=True)
class EvidenceView:
    """One question under one cut: `.html`, `.text`, and `.result`, its part of the report."""

    cut: str
    budget: int
    result: dict
    html: str = ""
    text: str = ""

    def __repr__(self) -> str:
        return f"EvidenceView: {self.summary}"

    def _repr_html_(self) -> str:
        return self.html

    @property
    def summary(self) -> str:
        facts = self.result["facts"]
        covered = f"{sum(fact['covered'] for fact in facts)} of {len(facts)} facts" if facts else "no facts to cover"
        words = f"{self.result['words_sent']} of {self.budget} words, {self.result['redundant_words']} repeated"
        return f"{self.result['id']} × {self.cut}, {covered}, {words}"


def evidence_view(
    question: str | None = None, cut: str = CUTS[0], cases: Cases | None = None, budget: int = BUDGET_WORDS
) -> EvidenceView:
    """What the panel shows; the first question by default. Raises LabError for an unknown question or cut."""
    cases = cases or read_cases(default_cases())
    question = question or cases.questions[0].id
    results = {result["id"]: result for result in check(cases, [cut], budget)["cuts"][cut]}
    if question not in results:
        raise LabError(f"Unknown question {question!r}; use one of {', '.join(results)}.")
    view = EvidenceView(cut, budget, results[question])
    passages = [(hit, list(runs(hit, view.result, cases))) for hit in view.result["hits_before_budget"]]
    text = as_text(view, passages, cases)
    return replace(view, text=text, html=as_html(view, passages, cases, text))


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


def quotations(view: EvidenceView, cases: Cases) -> Iterator[tuple[dict, list[tuple[bool, str]], str]]:
    """Each fact, its words in runs of (sent, text), and what became of it."""
    sent = {(piece["document"], n) for piece in view.result["context"] for n in range(piece["start"], piece["end"])}
    for fact in view.result["facts"]:
        words = cases.documents[fact["document"]].words
        places = [(fact["document"], n) for n in range(fact["start"], fact["end"])]
        groups = groupby(places, sent.__contains__)
        parts = [(kept, " ".join(words[n] for _, n in group)) for kept, group in groups]
        yield fact, parts, "covered" if fact["covered"] else f"not covered, {fact['cause']}: {fact['detail']}"


NOTHING = "The documents hold no answer; what came back shares a word with the question, no more."
EMPTY = "No passage holds a word of the question."
LEAD = {"unsent": "not sent: ", "beyond": "cut off at the border: ", "again": "", "sent": ""}


def as_text(view: EvidenceView, passages: list[tuple[dict, list[Run]]], cases: Cases) -> str:
    """The text alternative: facts in [brackets], repeated words in (parentheses), what is not sent after a bar."""

    def bracketed(run: Run) -> str:
        words = f"(again: {run.text})" if run.state == "again" else run.text
        return f"[{', '.join(run.facts)}: {words}]" if run.facts else words

    lines = [view.result["text"], view.summary, *([] if view.result["facts"] else [NOTHING])]
    for fact, parts, verdict in quotations(view, cases):
        words = " ".join(text if kept else f"<missing: {text}>" for kept, text in parts)
        lines.append(f"fact {fact['id']}: {verdict}\n   {words}")
    lines += ["", *([] if passages else [EMPTY])]
    for hit, parts in passages:
        lines.append(heading(hit, view.result))
        for lead, group in groupby(parts, lambda part: LEAD[part.state]):
            words = " ".join(map(bracketed, group))
            lines.append(f"   {'| ' if lead else ''}{lead}{words}")
    return "\n".join(lines)


def as_html(view: EvidenceView, passages: list[tuple[dict, list[Run]]], cases: Cases, text: str) -> str:
    numbers = {fact["id"]: n for n, fact in enumerate(view.result["facts"], 1)}

    def marked(run: Run) -> str:
        words = f'<span class="again">{escape(run.text)}</span>' if run.state == "again" else escape(run.text)
        label = f"<sup>{', '.join(str(numbers[name]) for name in run.facts)}</sup>"
        return f'<mark title="{escape(", ".join(run.facts))}">{label}{words}</mark>' if run.facts else words

    html = [f'{STYLE}<div class="lab-evidence" tabindex="0"><p><strong>{escape(view.result["text"])}</strong></p>']
    html.append(f"<p>{escape(view.summary)}</p>" + ("" if numbers else f"<p>{NOTHING}</p>"))
    for fact, parts, verdict in quotations(view, cases):
        lost = '<mark class="lost"><small>missing:</small> '
        words = " ".join(f"{'<mark>' if kept else lost}{escape(text)}</mark>" for kept, text in parts)
        sign = "✓" if fact["covered"] else "✗"
        html.append(f"<p>{numbers[fact['id']]}. {sign} {words}<br><small>{escape(verdict)}</small></p>")
    html += [] if passages else [f"<p>{EMPTY}</p>"]
    for hit, parts in passages:
        html.append(f"<h4>{escape(heading(hit, view.result))}</h4>")
        for lead, group in groupby(parts, lambda part: LEAD[part.state]):
            words = " ".join(map(marked, group))
            html.append(f'<p class="unsent"><small>{lead}</small>{words}</p>' if lead else f"<p>{words}</p>")
    html.append(f"<details><summary>As text</summary><pre>{escape(text)}</pre></details></div>")
    return "".join(html)


class EvidencePanel(widgets.VBox):
    """Choose a question, a way of cutting and a budget; see what would be sent. `.view` is what is shown."""

    def __init__(self, cases: Cases | None = None, question: str | None = None, cut: str = CUTS[0]):
        self.cases = cases or read_cases(default_cases())
        self.view = evidence_view(question, cut, self.cases)
        total = max(BUDGET_WORDS, sum(len(document.words) for document in self.cases.documents.values()))
        wide = {"description_width": "80px"}
        self.question = widgets.Dropdown(
            options=[(f"{entry.id}: {entry.text}", entry.id) for entry in self.cases.questions],
            value=self.view.result["id"],
            description="Question",
            style=wide,
            layout=widgets.Layout(width="98%"),
        )
        self.cut = widgets.Dropdown(
            options=tuple(dict.fromkeys([*CUTS, cut])), value=cut, description="Cut", style=wide
        )
        limits = dict(min=1, max=total, value=BUDGET_WORDS, continuous_update=False)
        self.budget = widgets.IntSlider(**limits, description="Budget", style=wide, readout=False)
        self.number = widgets.BoundedIntText(**limits, layout=widgets.Layout(width="80px"))
        widgets.link((self.budget, "value"), (self.number, "value"))
        self.html = widgets.HTML(
            layout=widgets.Layout(
                height="480px", overflow="auto", width="98%", border="1px solid var(--jp-border-color2, #888)"
            )
        )
        words = widgets.Label("words")
        super().__init__([self.question, widgets.HBox([self.cut, self.budget, self.number, words]), self.html])
        for control in (self.question, self.cut, self.budget):
            control.observe(self.show, names="value")
        self.show()

    def show(self, _change: object = None) -> None:
        self.view = evidence_view(self.question.value, self.cut.value, self.cases, self.budget.value)
        self.html.value = self.view.html

    def __repr__(self) -> str:
        return f"EvidencePanel: {self.view.summary}"


def evidence_panel(cases: Cases | None = None, question: str | None = None, cut: str = CUTS[0]) -> EvidencePanel:
    return EvidencePanel(cases, question, cut)
