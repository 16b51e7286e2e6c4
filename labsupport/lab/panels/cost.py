"""Token cost: five passages a question against the whole collection in every request, as the collection grows.

Tokens are estimates (context.py), measured by `costs.measure` and `costs.whole_collection`; prices are the reader's to
set. `cost_view` gives the same content without a widget. A hosted reference run is quoted beside it, as such.
"""

from __future__ import annotations

from dataclasses import dataclass

import ipywidgets as widgets

from labsupport.pipeline import LabError
from labsupport.pipeline.costs import HOSTED_REFERENCE_RUN, QUESTIONS_PER_DAY, Price

from .base import Panel, View, escape, make_view, table
from .controls import label_width, stops_row

NAME = "CostPanel"
SIZES = (1, 5, 10, 20, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000)
WINDOW = 128_000  # tokens that a usual hosted model reads at once
HEADS = ("Compared", "Five passages", "Whole collection", "Whole against five")
Row = tuple[str, str, str, str]

CSS = """
.lab-bars { display: grid; grid-template-columns: max-content 1fr; gap: 4px 10px; margin: 8px 0; align-items: center; }
.lab-bars .bar { height: 18px; min-width: 3px; background: #1f88c4; }
.lab-bars .bar.whole { background: repeating-linear-gradient(45deg, #cf6a1d 0 8px, #b35a15 8px 16px); }
"""


@dataclass(frozen=True)
class Setting:
    """What is compared. `five` and `whole` are tokens a question, measured on `measured` documents."""

    five: float
    whole: float
    measured: int
    documents: int  # the size to think of: the whole collection is scaled to it
    questions: int = QUESTIONS_PER_DAY
    price_in: float = 2.0  # US dollars for a million tokens read
    price_out: float = 8.0
    answer_tokens: int = 150

    def __post_init__(self) -> None:
        if min(self.five, self.whole, self.measured, self.documents) <= 0:
            raise LabError("Tokens and documents must be above 0: measure both ways of asking first.")

    def whole_at(self, documents: int) -> int:
        return round(self.whole * documents / self.measured)

    def usd_a_day(self, tokens: float) -> float:
        return Price("", self.price_in, self.price_out).of(tokens, self.answer_tokens) * self.questions


def cost_view(five: float, whole: float, measured: int, documents: int | None = None, **prices: float) -> View:
    """What the panel shows. `prices`: questions, price_in, price_out, answer_tokens, as in `Setting`.

    `five` and `whole`: tokens one question sends either way, measured on a collection of `measured` documents.
    """
    now = Setting(five, whole, measured, documents or measured, **prices)
    tokens = now.whole_at(now.documents)
    cheap, dear = now.usd_a_day(five), now.usd_a_day(tokens)
    summary = (f"{now.documents:,} documents: {five:,.0f} tokens a question with five passages, {tokens:,} with the "
               f"whole collection, {_money(cheap)} against {_money(dear)} a day")
    rows: list[Row] = [
        ("Tokens of passages, a question", f"{five:,.0f}", f"{tokens:,}", _times(tokens, five)),
        (f"Tokens of passages, a day of {now.questions:,} questions", f"{five * now.questions:,.0f}",
         f"{tokens * now.questions:,}", _times(tokens, five)),
        ("Dollars a day, answers included", _money(cheap), _money(dear), _times(dear, cheap)),
    ]
    estimated, quoted = "Estimated from the collection at hand", "Quoted, not measured here: a run on hosted models"
    notes, reference = [_basis(now), _full(now)], _reference()
    largest = max(SIZES[-1], now.documents)
    body = (
        _bars(now, tokens, largest) + table(estimated, HEADS, [map(escape, row) for row in rows], numbers=[1, 2, 3])
        + "".join(f'<p class="quiet">{escape(note)}</p>' for note in notes)
        + table(quoted, HEADS, [map(escape, row) for row in reference], numbers=[1, 2, 3])
    )
    lines = [summary + ".", "", estimated + ".", *map(_sentence, rows),
             f"All of {largest:,} documents: {now.whole_at(largest):,} tokens a question.", "", *notes, "",
             quoted + ".", *map(_sentence, reference)]
    return make_view(NAME, summary, body, "\n".join(lines), CSS)


def _sentence(row: Row) -> str:
    return f"{row[0]}: five passages {row[1]}, whole collection {row[2]} ({row[3]})."


def _bars(now: Setting, tokens: int, largest: int) -> str:
    full = now.whole_at(largest)

    def bar(name: str, kind: str, size: float) -> str:
        return (f'<span>{name}</span><div class="bar {kind}" role="img" style="width: {100 * size / full:.2f}%" '
                f'aria-label="{name}: {size:,.0f} tokens a question"></div>')

    return (f'<div class="lab-bars">{bar("Five passages", "five", now.five)}'
            f'{bar("Whole collection", "whole", tokens)}</div><p class="quiet">Tokens a question; the full width is '
            f"{full:,}, all of {largest:,} documents.</p>")


def _basis(now: Setting) -> str:
    same = now.documents == now.measured
    scaled = "" if same else f"; the whole collection is scaled to {now.documents:,} of the same average length"
    return (f"Measured on {now.measured} documents{scaled}. Prices: {_money(now.price_in)} for a million tokens read, "
            f"{_money(now.price_out)} for a million written, {now.answer_tokens:,} tokens an answer.")


def _full(now: Setting) -> str:
    return (f"A model that reads {WINDOW:,} tokens at once is full at about {WINDOW * now.measured // now.whole:,.0f} "
            "documents; five passages fit however many there are.")


def _reference() -> list[Row]:
    run, ways = HOSTED_REFERENCE_RUN, ("five passages", "whole collection")
    tokens = [run["input_tokens_median"][way] for way in ways]
    rows = [("Tokens of a request, median", *(f"{one:,}" for one in tokens), _times(tokens[1], tokens[0]))]
    for model in run["usd_per_day"]:
        dollars = [run["usd_per_day"][model][way] for way in ways]
        right = [run["correct_of_20"][model][way] for way in ways]
        rows += [
            (f"{model}: dollars a day of {run['questions_per_day']} questions", *map(_money, dollars),
             _times(dollars[1], dollars[0])),
            (f"{model}: correct answers of 20", *map(str, right), f"{right[1] - right[0]:+d}"),
        ]
    return rows


def _times(whole: float, five: float) -> str:
    return f"{whole / five:,.1f} times" if five else "-"


def _money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.3f}"


class CostPanel(Panel):
    """Let the collection grow, set prices. Controls: `.documents` (slider), `.number` (box), `.questions`, `.price_in`,
    `.price_out`, `.answer_tokens`."""

    def __init__(self, five: float, whole: float, measured: int):
        self.figures = (five, whole, measured)
        stops = sorted({*SIZES, measured})
        self.documents, self.number, row = stops_row("Documents", measured, stops, "in the collection")

        def box(kind: type, value: float, name: str, **limits: float) -> widgets.Widget:
            return kind(value=value, description=name, continuous_update=False, style=label_width("230px"),
                        layout=widgets.Layout(width="340px"), **limits)

        whole_number, amount = widgets.BoundedIntText, widgets.BoundedFloatText
        self.questions = box(whole_number, QUESTIONS_PER_DAY, "Questions a day", min=1, max=1_000_000)
        self.answer_tokens = box(whole_number, 150, "Tokens an answer", min=0, max=100_000)
        self.price_in = box(amount, 2.0, "Dollars, million tokens read", min=0, max=1000, step=0.1)
        self.price_out = box(amount, 8.0, "Dollars, million tokens written", min=0, max=1000, step=0.1)
        self._prices = ("questions", "price_in", "price_out", "answer_tokens")
        wrap = widgets.Layout(flex_flow="row wrap")
        rows = [row, widgets.HBox([self.questions, self.answer_tokens], layout=wrap),
                widgets.HBox([self.price_in, self.price_out], layout=wrap)]
        super().__init__(rows, [self.documents, *(getattr(self, name) for name in self._prices)], height=520)

    def look(self) -> View:
        prices = {name: getattr(self, name).value for name in self._prices}
        return cost_view(*self.figures, documents=self.documents.value, **prices)


def cost_panel(five: float, whole: float, measured: int) -> CostPanel:
    return CostPanel(five, whole, measured)
