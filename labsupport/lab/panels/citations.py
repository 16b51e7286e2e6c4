"""The citation checker: an answer's claims with the status of every citation; change an id and see it caught.

`citations_view` gives the same content without a widget. What is checked is done by pipeline/citations.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import ipywidgets as widgets

from labsupport.lab.source import shortened
from labsupport.pipeline.answering import Answer, Claim
from labsupport.pipeline.citations import Check, Checked, check_answer, status_of
from labsupport.pipeline.context import Context
from labsupport.pipeline.index import Filters, Index

from .base import Panel, View, escape, make_view, table, without_mark
from .controls import OWN, asker_row, filters_from, label_width

NAME = "CitationsPanel"
AS_IT_IS = "as the answer has it"
HIDDEN = "not allowed"  # in place of the document, where this reader may not see it
MEANING = {
    "ok": "was sent, is in force, may be read",
    "missing_id": "is not in the index: invented, misspelt or deleted",
    "not_in_context": "is in the index, but was not sent with the question",
    "not_in_force": "belongs to a version not in force on the day",
    "not_allowed": "belongs to a document this reader may not see",
}


def with_citations(answer: Answer, cited: Sequence[Sequence[str]]) -> Answer:
    """The answer with other citations: one list of ids for each claim."""
    claims = [Claim(claim.text, tuple(ids)) for claim, ids in zip(answer.claims, cited, strict=True)]
    return replace(answer, claims=tuple(claims))


def citations_view(answer: Answer, context: Context, index: Index, filters: Filters) -> View:
    """Every citation of the answer, checked for a date and an audience."""
    checked = check_answer(answer, context, index, filters)
    known = {chunk.chunk_id: chunk for chunk in index.get(sorted({check.chunk_id for check in checked.checks}))}

    def where(check: Check) -> str:
        chunk = known.get(check.chunk_id)
        return f"{chunk.label}, {chunk.section or '-'}" if chunk and check.status != "not_allowed" else "-"

    fine = sum(check.ok for check in checked.checks)
    flags = ", ".join(check.flag for check in checked.invalid)
    summary = (f"{fine} of {len(checked.checks)} citations ok, "
               f"{'grounded' if checked.grounded else 'not grounded'}{'; CHECK: ' if flags else ''}{flags}")
    claims = [(place, without_mark(claim.text), checked.of(place)) for place, claim in enumerate(answer.claims)]
    heads = ("Claim", "Cited", "Status", "Document and section", "Words of the claim in it")
    cells = [
        ["" if at else f"{place + 1}. {escape(text)}", f'<span class="id">{escape(shortened(check.cited, 30))}</span>',
         _mark(check.ok, check.status, MEANING[check.status]), escape(where(check)), _share(check)]
        for place, text, checks in claims for at, check in enumerate(checks)
    ]
    cells += [[f"{place + 1}. {escape(text)}", "-", _mark(False, "uncited", "the claim cites nothing"), "-", "-"]
              for place, text, checks in claims if not checks]
    said = f"Checked for {filters.as_of or 'any date'}, {filters.audience}."
    notes = [*_gaps(checked), *checked.notes]
    sent = [(chunk.chunk_id, *((HIDDEN, "-") if status_of(chunk, filters) == "not_allowed" else
                               (chunk.label, chunk.section or "-"))) for chunk in context.kept]
    body = (
        f'<p class="quiet">{escape(said)}</p><h4>Answer</h4><p>{escape(answer.answer)}</p>'
        + table("Its claims and what they cite", heads, cells, numbers=[4])
        + "".join(f'<p class="bad">✗ {escape(note)}</p>' for note in notes)
        + table("Passages sent with the question", ("Id", "Document", "Section"),
                [[f'<span class="id">{one}</span>', escape(label), escape(section)] for one, label, section in sent])
    )
    lines = [summary + ".", said, "", f"Answer: {answer.answer}", ""]
    for place, text, checks in claims:
        lines += [f"Claim {place + 1}: {text}", *([] if checks else ["   uncited: the claim cites nothing"])]
        lines += [f"   cites {check.cited}: {check.status}, {MEANING[check.status]}; {where(check)}; words of the "
                  f"claim in it: {_share(check)}" for check in checks]
    lines += notes
    lines += ["", "Sent with the question:"]
    lines += [f"[{one}] {label}" + ("" if label == HIDDEN else f", {section}") for one, label, section in sent]
    return make_view(NAME, summary, body, "\n".join(lines))


def _mark(ok: bool, status: str, meaning: str) -> str:
    sign, kind = ("✓", "good") if ok else ("✗", "bad")
    return f'<div class="{kind}">{sign} {status}<br><span class="quiet">{meaning}</span></div>'


def _share(check: Check) -> str:
    return "-" if check.words_in_passage is None else f"{check.words_in_passage:.0%}"


def _gaps(checked: Checked) -> list[str]:
    return [f"claim {place + 1} quotes “{words}”, which stands in no passage it cites"
            for place, words in checked.missing_quotations]


class CitationsPanel(Panel):
    """Edit the ids a claim cites, the date, the audience. Controls: `.claims` (one box a claim), `.example`, `.day`,
    `.audience`. An example, by its name, takes the place of what the first claim cites; a box edited by hand sets the
    list to "your own", so that any choice in it is a change."""

    def __init__(self, answer: Answer, context: Context, index: Index, filters: Filters,
                 examples: Mapping[str, str] | None = None):
        self.answer, self.context, self.index = answer, context, index
        wide = {"style": label_width(), "layout": widgets.Layout(width="98%")}
        self.answered = [", ".join(claim.citations) for claim in answer.claims]
        self.claims = [
            widgets.Text(value=cited, description=f"Claim {place} cites", continuous_update=False,
                         placeholder="ids, with commas between them", **wide)
            for place, cited in enumerate(self.answered, 1)
        ]
        self.examples = dict(examples or {})
        self.example = widgets.Dropdown(options=[AS_IT_IS, *self.examples, OWN], description="Try", **wide)
        self.day, self.audience, asker = asker_row(filters.as_of, filters.audience)
        self.example.observe(self._try, names="value")
        self._trying = False
        for box in self.claims:
            box.observe(self._edited, names="value")
        rows = [*([self.example] if self.examples and self.claims else []), *self.claims, asker]
        super().__init__(rows, [*self.claims, self.day, self.audience], height=520)

    def _try(self, change: dict) -> None:
        if change["new"] == OWN or not self.claims:
            return
        self._trying = True
        try:
            first, *others = self.answered
            for box, cited in zip(self.claims, (self.examples.get(change["new"], first), *others), strict=True):
                box.value = cited
        finally:
            self._trying = False

    def _edited(self, _change: object) -> None:
        if not self._trying:
            as_answered = [box.value for box in self.claims] == self.answered
            self.example.value = AS_IT_IS if as_answered else OWN

    def look(self) -> View:
        cited = [[one.strip() for one in box.value.split(",") if one.strip()] for box in self.claims]
        return citations_view(with_citations(self.answer, cited), self.context, self.index,
                              filters_from(self.day, self.audience))


def citations_panel(answer: Answer, context: Context, index: Index, filters: Filters,
                    examples: Mapping[str, str] | None = None) -> CitationsPanel:
    return CitationsPanel(answer, context, index, filters, examples)
