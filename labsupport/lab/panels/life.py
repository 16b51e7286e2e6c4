"""Document life: from which day to which each version is in force, and what that means on the day of a question.

`life_view` gives the same content without a widget.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import ipywidgets as widgets

from labsupport.pipeline import LabError
from labsupport.pipeline.index import DocumentRow

from .base import Panel, View, escape, make_view
from .controls import label_width, slider_row

NAME = "LifePanel"
SIGNS = {"in force": "✓", "not yet": "…", "ended": "✗"}
CHANGING, ALL = "those with an end date or several versions", "all"

CSS = """
.lab-life { display: grid; grid-template-columns: max-content 1fr max-content; gap: 5px 12px; align-items: center; }
.lab-life .line { position: relative; height: 16px; background: rgba(128, 128, 128, 0.14); }
.lab-life .span { position: absolute; box-sizing: border-box; top: 3px; height: 10px; background: #1f88c4; }
.lab-life .span.not, .lab-life .span.ended { background: transparent; border: 1px dashed #cf6a1d; }
.lab-life .day { position: absolute; top: -3px; bottom: -3px; width: 0; border-left: 2px dotted currentColor; }
"""


def life_state(document: DocumentRow, as_of: str) -> str:
    """ "in force", "not yet" or "ended": ISO dates compare as text, the last day belongs to the version."""
    if as_of < document.effective_from:
        return "not yet"
    return "ended" if document.effective_to and as_of > document.effective_to else "in force"


def life_view(documents: Sequence[DocumentRow], as_of: str) -> View:
    """The life of these document versions, seen on an ISO date. Raises LabError where there is none."""
    if not documents:
        raise LabError("There is no document to show: give at least one.")
    day = date.fromisoformat
    starts = [day(row.effective_from) for row in documents]
    ends = [day(row.effective_to) for row in documents if row.effective_to]
    first = min([*starts, day(as_of)]) - timedelta(30)
    last = max([*starts, *ends, day(as_of)]) + timedelta(90)

    def place(one: date) -> float:
        return 100 * (one - first) / (last - first)

    html, lines, alive = [], [], 0
    for row in documents:
        state = life_state(row, as_of)
        alive += state == "in force"
        until = f"to {row.effective_to}" if row.effective_to else "no end date"
        left = place(day(row.effective_from))
        # The last day is inclusive: the bar ends where the next day begins.
        right = place(day(row.effective_to) + timedelta(1)) if row.effective_to else 100
        html.append(
            f'<span>{escape(row.label)}</span><div class="line" role="img" aria-label="{escape(row.label)}, from '
            f'{row.effective_from}, {until}"><div class="span {state.split()[0]}" style="left: {left:.2f}%; width: '
            f'{right - left:.2f}%"></div><div class="day" style="left: {place(day(as_of)):.2f}%"></div></div>'
            f"<span>{SIGNS[state]} {state}: {row.effective_from}{' ' if row.effective_to else ', '}{until}</span>"
        )
        lines.append(f"{row.label}: {state}; from {row.effective_from}, {until}")
    summary = f"{as_of}: {alive} of {len(documents)} document versions in force"
    note = f"From {first} to {last}. The dotted line is {as_of}. A full bar: in force on that day; a dashed one: not."
    body = f'<div class="lab-life">{"".join(html)}</div><p class="quiet">{note}</p>'
    return make_view(NAME, summary, body, "\n".join([summary + ".", "", *lines]), CSS)


class LifePanel(Panel):
    """Move the day of the question. Controls: `.documents` (which to show), `.later` (slider: days after `as_of`, below
    0: before it), `.number` (its box)."""

    def __init__(self, documents: Sequence[DocumentRow], as_of: str):
        self.rows, self.start = list(documents), date.fromisoformat(as_of)
        ids = [row.doc_id for row in documents]
        changing = [row for row in documents if row.effective_to or ids.count(row.doc_id) > 1]
        self.documents = widgets.Dropdown(options=[*([CHANGING] if changing else []), ALL, *dict.fromkeys(ids)],
                                          description="Documents", style=label_width(),
                                          layout=widgets.Layout(width="420px"))
        self.later, self.number, row = slider_row("Days", 0, -700, 500, unit=f"after {as_of} (below 0: before it)")
        super().__init__([self.documents, row], [self.documents, self.later], height=300)

    def look(self) -> View:
        choice = self.documents.value
        ids = [row.doc_id for row in self.rows]
        chosen = [row for row in self.rows if choice in (ALL, row.doc_id)
                  or choice == CHANGING and (row.effective_to or ids.count(row.doc_id) > 1)]
        return life_view(chosen, (self.start + timedelta(self.later.value)).isoformat())


def life_panel(documents: Sequence[DocumentRow], as_of: str) -> LifePanel:
    return LifePanel(documents, as_of)
