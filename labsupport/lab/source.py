"""Showing the source of what the notebooks use."""

from __future__ import annotations

import inspect
from typing import Any


class Source:
    """The source of a function or class; a notebook shows it as code, in the colours of the theme."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return f"```python\n{self.text}\n```"


def show_source(thing: Any) -> Source:
    """The source of a function, class or method, as it stands in `labsupport`."""
    return Source(inspect.getsource(inspect.unwrap(thing) if callable(thing) else thing).rstrip())
