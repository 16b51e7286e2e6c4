"""Rows of controls that several panels share: sliders with a number box, questions, the day and the reader.

Controls tell the kernel a value when it is settled (a key pressed, Enter, the box left), not at every step on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

import ipywidgets as widgets

from labsupport.pipeline.corpus import AUDIENCES, Question
from labsupport.pipeline.index import Filters

OWN = "your own"


def label_width(width: str = "90px") -> dict[str, str]:
    return {"description_width": width}


def slider_row(description: str, value: int, low: int, high: int, step: int = 1, unit: str = "",
               width: str = "90px") -> tuple[widgets.IntSlider, widgets.BoundedIntText, widgets.HBox]:
    """A slider, the number box linked to it, and the row that holds both."""
    slider = widgets.IntSlider(value=value, min=low, max=high, step=step, description=description, readout=False,
                               continuous_update=False, style=label_width(width), layout=widgets.Layout(width="420px"))
    box = _box(value, low, high, step, description)
    widgets.link((slider, "value"), (box, "value"))
    return slider, box, _row(slider, box, unit)


def stops_row(description: str, value: int, stops: Sequence[int], unit: str = "",
              width: str = "90px") -> tuple[widgets.SelectionSlider, widgets.BoundedIntText, widgets.HBox]:
    """A slider over certain values and the number box beside it, which goes to the nearest of them."""
    options = [(f"{stop:,}", stop) for stop in stops]
    slider = widgets.SelectionSlider(options=options, value=value, description=description, readout=False,
                                     continuous_update=False, style=label_width(width),
                                     layout=widgets.Layout(width="420px"))
    box = _box(value, min(stops), max(stops), stops[1] - stops[0], description)

    def typed(change: dict) -> None:
        slider.value = box.value = min(stops, key=lambda stop: abs(stop - change["new"]))

    box.observe(typed, names="value")
    widgets.dlink((slider, "value"), (box, "value"))
    return slider, box, _row(slider, box, unit)


def asker_row(as_of: str | None, audience: str) -> tuple[widgets.DatePicker, widgets.Dropdown, widgets.HBox]:
    """The day of the question (empty: any) and who asks."""
    day = widgets.DatePicker(value=date.fromisoformat(as_of) if as_of else None, description="On the day",
                             style=label_width(), layout=widgets.Layout(width="280px"))
    who = widgets.Dropdown(options=AUDIENCES[::-1], value=audience, description="Audience", style=label_width(),
                           layout=widgets.Layout(width="240px"))
    return day, who, widgets.HBox([day, who], layout=widgets.Layout(flex_flow="row wrap"))


def filters_from(day: widgets.DatePicker, audience: widgets.Dropdown) -> Filters:
    return Filters(as_of=day.value.isoformat() if day.value else None, audience=audience.value)


def question_row(questions: Sequence[Question], first: str, chosen_one: Callable[[Question], None] = lambda _: None
                 ) -> tuple[widgets.Dropdown, widgets.Text, widgets.VBox]:
    """A list of the course's questions, a box for one's own, and the rows that hold both.

    The box counts. Choosing in the list fills it; typing into it sets the list to "your own", unless it is one of them.
    `first` is the question to begin with, or its id. `chosen_one` is told which was chosen before the box is filled.
    """
    known = {question.qid: question for question in questions}
    texts = {question.qid: question.text for question in questions}
    if first in known:
        chosen_one(known[first])
    options = [(f"{qid}: {text}", qid) for qid, text in texts.items()]
    chosen = widgets.Dropdown(options=[(OWN, OWN), *options], description="Question", style=label_width(),
                              layout=widgets.Layout(width="98%"))
    typed = widgets.Text(value=texts.get(first, first), description="Ask", continuous_update=False,
                         placeholder="a question of your own", style=label_width(), layout=widgets.Layout(width="98%"))

    def recognise(_change: object = None) -> None:
        chosen.value = next((qid for qid, text in texts.items() if text == typed.value), OWN)

    def fill(change: dict) -> None:
        if change["new"] in known and typed.value != texts[change["new"]]:
            chosen_one(known[change["new"]])
            typed.value = texts[change["new"]]

    recognise()
    typed.observe(recognise, names="value")
    chosen.observe(fill, names="value")
    return chosen, typed, widgets.VBox([chosen, typed] if texts else [typed])


def _box(value: int, low: int, high: int, step: int, description: str) -> widgets.BoundedIntText:
    return widgets.BoundedIntText(value=value, min=low, max=high, step=step, continuous_update=False,
                                  tooltip=f"{description}, as a number", layout=widgets.Layout(width="90px"))


def _row(slider: widgets.Widget, box: widgets.Widget, unit: str) -> widgets.HBox:
    return widgets.HBox([slider, box, widgets.Label(unit)], layout=widgets.Layout(flex_flow="row wrap"))
