"""Showing text and source in a notebook, and printing so that lines break between words.

JupyterLab breaks a long line of output wherever the window ends, in the middle of a word as well.
"""

from __future__ import annotations

import inspect
import textwrap
from html import escape
from typing import Any

WIDTH = 90  # fits beside JupyterLab's file browser on a small laptop
# The outputs of a notebook share one page, so this holds for every source shown in it.
_PRE = ".jp-OutputArea .jp-OutputArea-output.jp-RenderedMarkdown pre"  # stronger than the rule of JupyterLab
SCROLLED = f"<style>{_PRE}, {_PRE} code {{ white-space: pre; overflow-x: auto; }}</style>"
WRAPPED = "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; margin: 0;"


class Source:
    """The source of a function or class; a notebook shows it as code, in the colours of the theme."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.text}\n```\n\n{SCROLLED}"


class Text:
    """A text to be read as it stands, such as a passage."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<pre class="mathjax_ignore tex2jax_ignore" style="{WRAPPED}">{escape(self.text)}</pre>'


def show_source(thing: Any) -> Source:
    """The source of a function, class or method, as it stands in `labsupport`."""
    return Source(inspect.getsource(inspect.unwrap(thing) if callable(thing) else thing).rstrip())


def show_text(*texts: str) -> Text:
    """The texts, a blank line between two of them, long lines broken between words."""
    return Text("\n\n".join(texts))


def shortened(text: str, most: int) -> str:
    """At most so many characters; "…" where something was cut off."""
    return text if len(text) <= most else text[: most - 1] + "…"


def say(text: str) -> None:
    """Print, long lines broken between words and indented from the second line on."""
    lines = [
        textwrap.fill(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    ]
    print("\n".join(lines))
