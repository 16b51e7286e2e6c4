"""What every panel is made of: a column of native controls above a view of fixed height, and the same in words.

A panel holds a `View`, which the panel's plain function returns as well: what can be seen needs no widget. Colours come
from the theme of JupyterLab or VS Code; a colour never says anything that a word or sign beside it does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape as escape  # every text of a document, a question or an answer goes through it

import ipywidgets as widgets

from labsupport.pipeline import LabError

# Marks for "good", "bad" and "other", after Okabe and Ito, shifted until each has a contrast of 3:1 or more both on
# white and on the dark theme's #111.
GOOD, BAD, OTHER, QUIET = "#1f88c4", "#cf6a1d", "#a3679d", "#858585"
CATEGORIES = (GOOD, BAD, "#0e9a76", OTHER, "#a8841b")

# ".lab-panel.lab-panel": stronger than what JupyterLab says about tables in an output.
STYLE = """<style>
.lab-panel { color: var(--jp-content-font-color1, var(--vscode-editor-foreground, inherit)); line-height: 1.5;
  font-family: var(--jp-content-font-family, var(--vscode-font-family, sans-serif));
  font-size: var(--jp-content-font-size1, 14px); padding: 4px 8px; overflow-wrap: anywhere; }
.lab-panel.lab-panel h4 { margin: 12px 0 4px; font-size: 1em; font-weight: 600; }
.lab-panel.lab-panel p { margin: 4px 0; }
.lab-panel .said { font-weight: 600; }
.lab-panel.lab-panel table { border-collapse: collapse; width: 100%; margin: 6px 0; font-size: 0.93em; color: inherit;
  table-layout: auto; border: none; }
.lab-panel.lab-panel caption { text-align: left; caption-side: top; padding: 2px 0; font-weight: 600; color: inherit; }
.lab-panel.lab-panel table th, .lab-panel.lab-panel table td { text-align: left; vertical-align: top; max-width: none;
  padding: 3px 12px 3px 0; border: none; background: transparent; white-space: normal; overflow-wrap: break-word;
  line-height: 1.4; border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4)); }
.lab-panel.lab-panel table th, .lab-panel.lab-panel table th.number { font-weight: 600; white-space: normal; }
.lab-panel.lab-panel tbody tr { background: transparent; }
.lab-panel.lab-panel table .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.lab-panel.lab-panel code, .lab-panel .id { color: inherit; background: transparent; white-space: nowrap; padding: 0;
  font-family: var(--jp-code-font-family, var(--vscode-editor-font-family, monospace)); font-size: 0.92em; }
.lab-panel .quiet { opacity: 0.85; }
.lab-panel .good, .lab-panel .bad, .lab-panel .other { border-left: 4px solid #1f88c4; padding-left: 6px; }
.lab-panel .bad { border-left: 4px dashed #cf6a1d; }
.lab-panel .other { border-left: 4px dotted #a3679d; }
.lab-panel .trouble { border: 1px dashed #cf6a1d; padding: 6px 10px; }
.lab-panel.lab-panel pre { white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; color: inherit;
  background: transparent; font-size: 0.92em; margin: 4px 0;
  font-family: var(--jp-code-font-family, var(--vscode-editor-font-family, monospace)); }
</style>"""

# The arrow of a drop-down is drawn black whatever the theme; the little calendar too, unless told the scheme.
CONTROLS = """<style>
body[data-jp-theme-light="false"] .lab-controls, body.vscode-dark .lab-controls { color-scheme: dark;
  --jp-widgets-dropdown-arrow: url("data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 18 18'\
%3E%3Cpath fill='%23ddd' d='M5.2 5.9 9 9.7l3.8-3.8 1.2 1.2-4.9 5-4.9-5z'/%3E%3C/svg%3E"); }
</style>"""

BORDER = "1px solid var(--jp-border-color2, var(--vscode-widget-border, rgba(128, 128, 128, 0.5)))"


@dataclass(frozen=True)
class View:
    """What a panel shows: `html` to look at, `text` the same in plain words, `summary` in one line."""

    panel: str  # the name of the panel's class
    summary: str
    html: str
    text: str

    def __repr__(self) -> str:
        return f"{self.panel}: {self.summary}"

    def _repr_html_(self) -> str:
        return self.html


def make_view(panel: str, summary: str, body: str, text: str, style: str = "") -> View:
    """A View with the common style: the summary, then `body`, HTML whose texts are escaped already.

    `style` holds further CSS rules.
    """
    summary = " ".join(summary.split())
    said = f'<p class="said">{escape(summary[:1].upper() + summary[1:])}</p>'
    extra = f"<style>{style}</style>" if style else ""
    # The class names keep JupyterLab from reading "$5 or $10" as a formula.
    html = f'{STYLE}{extra}<div class="lab-panel mathjax_ignore tex2jax_ignore">{said}{body}</div>'
    return View(panel, summary, html, text)


def trouble(panel: str, message: str) -> View:
    """A View that says what is wrong and what to do."""
    return make_view(panel, "nothing to show", f'<p class="trouble" role="alert">✗ {escape(message)}</p>', message)


class Panel(widgets.VBox):
    """Rows of controls above `.view`. A subclass makes its controls, calls this, and gives a View in `look`.

    `watch` are the controls whose value changes what is shown. `.shown` is the View on display, `.alternative` its
    text, opened by the button `.as_text`. Whatever the learner can mend is shown in the view and never raised.
    """

    def __init__(self, rows: Sequence[widgets.Widget], watch: Iterable[widgets.Widget], height: int = 420):
        box = {"width": "auto", "border": BORDER, "overflow": "auto", "margin": "4px 0"}
        self.view = widgets.HTML(layout=widgets.Layout(height=f"{height}px", **box))
        self.as_text = widgets.ToggleButton(
            value=False, description="Show as text", tooltip="The same content in plain words",
            layout=widgets.Layout(width="140px"),
        )
        self.alternative = widgets.HTML(layout=widgets.Layout(max_height="320px", display="none", **box))
        super().__init__([*rows, self.view, self.as_text, self.alternative], layout=widgets.Layout(max_width="1100px"))
        self.add_class("lab-controls")
        for control in everything_in(self):
            if getattr(control, "description", "") and control.tooltip is None:
                control.tooltip = control.description  # left out, some browsers show "null"
        for control in watch:
            control.observe(self.refresh, names="value")
        self.as_text.observe(self._toggle, names="value")
        self.refresh()

    def look(self) -> View:
        """What is to be shown for the controls as they stand."""
        raise NotImplementedError

    def refresh(self, _change: object = None) -> None:
        try:
            self.shown = self.look()
        except LabError as error:
            self.shown = trouble(type(self).__name__, str(error))
        self.view.value = self.shown.html
        body = f"<pre>{escape(self.shown.text)}</pre>"
        self.alternative.value = f'{STYLE}{CONTROLS}<div class="lab-panel mathjax_ignore tex2jax_ignore">{body}</div>'

    def _toggle(self, _change: object) -> None:
        self.alternative.layout.display = None if self.as_text.value else "none"

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.shown.summary}"

    def _repr_mimebundle_(self, **options: object) -> dict[str, object]:
        """The widget; beside it the line that notebooks are compared by, and the view for readers without a kernel."""
        bundle = super()._repr_mimebundle_(**options) or {}
        return bundle | {"text/plain": repr(self), "text/html": self.shown.html}


_MARK = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)")


def without_mark(claim: str) -> str:
    """A claim for display. Taken from a list it begins with the item's mark, which would stand beside its number."""
    return claim[mark.end() :] if (mark := _MARK.match(claim)) else claim


def everything_in(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    """All widgets inside a widget, at any depth."""
    for child in getattr(widget, "children", ()):
        yield child
        yield from everything_in(child)


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """An HTML table of cells that are HTML already. `numbers` are the columns set to the right."""
    right = set(numbers)

    def cell(tag: str, at: int, content: str, more: str = "") -> str:
        return f'<{tag}{more}{" class=number" if at in right else ""}>{content}</{tag}>'

    head = "".join(cell("th", at, escape(name), ' scope="col"') for at, name in enumerate(heads))
    body = "".join("<tr>" + "".join(cell("td", at, one) for at, one in enumerate(row)) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
