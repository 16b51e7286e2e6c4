"""A knowledge question as radio buttons, for mouse and keyboard; its feedback is announced to screen readers."""

from __future__ import annotations

from html import escape

import ipywidgets as widgets

from labsupport.lab.exercises.content import Knowledge
from labsupport.lab.exercises.questions import answer, as_html, feedback

STYLE = """<style>
.lab-question .widget-radio-box label { height: auto; white-space: normal; line-height: 1.5; }
.lab-question .widget-radio-box, .lab-question .widget-radio { height: auto; max-width: 60em; }
.lab-question .lab-feedback { border-left: 4px solid var(--jp-border-color1, #888); padding: 2px 10px;
  max-width: 60em; }
</style>"""


class KnowledgeQuestion(widgets.VBox):
    """Set `.value` to a choice's key to answer; `.feedback.value` then holds the words."""

    def __init__(self, question: Knowledge, chosen: str | None = None):
        self.question = question
        options = [(f"({one.key}) {one.text}", one.key) for one in question.choices]
        self.radio = widgets.RadioButtons(options=options, value=None, layout=widgets.Layout(width="auto"))
        self.feedback = widgets.HTML('<div role="status" aria-live="polite"></div>')
        super().__init__([widgets.HTML(STYLE + as_html(question)), self.radio, self.feedback])
        self.add_class("lab-question")
        for choice in question.choices:
            if choice.key == chosen:  # answered on another day
                self.radio.value = chosen
                self._show(feedback(question, choice))
        self.radio.observe(lambda change: self._show(answer(question, change["new"])), names="value")

    def _show(self, words: str) -> None:
        self.feedback.value = f'<div role="status" aria-live="polite" class="lab-feedback">{escape(words)}</div>'

    @property
    def value(self) -> str | None:
        return self.radio.value

    @value.setter
    def value(self, key: str) -> None:
        self.radio.value = key

    def __repr__(self) -> str:
        state = f"answered ({self.value})" if self.value else "not answered"
        return f"Knowledge question {self.question.id}, {state}: {self.question.question}"

    def _repr_mimebundle_(self, **options: object) -> dict[str, object]:
        """The widget; beside it the question with its choices for readers without a kernel."""
        lines = [repr(self), *(f"  ({one.key}) {one.text}" for one in self.question.choices)]
        return (super()._repr_mimebundle_(**options) or {}) | {"text/plain": "\n".join(lines)}
