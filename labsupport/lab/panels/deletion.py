"""A deletion, step by step: in which of six places a document is still found after each kind of sync.

`deletion_steps` really does it, on a copy, with two other processes that keep the index open; `deletion_view` shows one
step without a widget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import ipywidgets as widgets

from labsupport.pipeline.embedding import Embedder
from labsupport.pipeline.lifecycle import Place, Trace, six_places, trace
from labsupport.pipeline.naive import CourseCopy, naive_sync
from labsupport.pipeline.running import RunningProcess
from labsupport.pipeline.updates import ingest

from .base import Panel, View, escape, make_view, table
from .controls import label_width

NAME = "DeletionPanel"
SIGNS = {True: "● found", False: "○ gone", None: "– not kept"}


class Copied(Protocol):
    """A copy of corpus and index that may be changed: a CourseCopy, or what `lab.copy()` gives."""

    corpus: Path
    index: Path


@dataclass(frozen=True)
class Step:
    """What was done, the report line of the sync if one ran, and the six places afterwards."""

    name: str
    report: str
    places: tuple[Place, ...]


def deletion_steps(copy: Copied, doc_id: str, embedder: Embedder | None = None) -> list[Step]:
    """Delete a document of the copy, sync naively, then properly, then mend the inventory; look after each step.

    Takes a few seconds. Afterwards the copy is as it was before.
    """
    copied = CourseCopy(copy.corpus, copy.index)
    sought = trace(copied.index, doc_id)
    file, inventory = copied.corpus / sought.path, copied.corpus / "inventory.csv"
    kept = {path: path.read_bytes() for path in (file, inventory) if path.is_file()}
    steps: list[Step] = []
    try:
        with RunningProcess(copied.index, False) as careless, RunningProcess(copied.index) as careful:

            def look(name: str, report: str = "", process: RunningProcess = careless) -> None:
                steps.append(Step(name, report, _places(sought, copied, process)))

            six_places(sought, copied.corpus, copied.index, careful)  # it reads the vectors, as a service would
            look("Before: the document is in use")
            file.unlink()
            look("The file is deleted, no sync has run")
            look("Naive sync: it adds and updates only", naive_sync(copied, embedder).line)
            report = ingest(copied.corpus, copied.index, embedder).line
            look("Ingest; the process does not check the generation", report)
            look("The same ingest; a process that checks the generation", report, careful)
            if inventory in kept:
                _take_out(inventory, sought)
                look("A person takes the row out of the inventory", process=careful)
    finally:
        for path, data in kept.items():
            path.write_bytes(data)
        ingest(copied.corpus, copied.index, embedder)
    return steps


def _places(sought: Trace, copied: CourseCopy, process: RunningProcess) -> tuple[Place, ...]:
    """The six places; a process is no number, so that the same steps read the same each time."""
    places = six_places(sought, copied.corpus, copied.index, process)
    return tuple(Place(one.name, one.found, re.sub(r"^process \d+", "it", one.detail)) for one in places)


def _take_out(inventory: Path, sought: Trace) -> None:
    lines = inventory.read_bytes().decode("utf-8").splitlines(keepends=True)
    start = f"{sought.doc_id},{sought.version},"
    inventory.write_bytes("".join(line for line in lines if not line.startswith(start)).encode("utf-8"))


def deletion_view(steps: Sequence[Step], at: int = 1) -> View:
    """All steps side by side; the one at this place (from 1) in detail."""
    step = steps[at - 1]
    still = [place.name for place in step.places if place.found]
    count = f"still found in {len(still)} of {len(step.places)} places" if still else "found nowhere"
    summary = f"step {at} of {len(steps)}, {step.name[0].lower()}{step.name[1:]}: {count}"
    report = f"Its report: {step.report}" if step.report else "No sync has run."
    heads = ["Place", *(f"{'▼ ' if number == at else ''}Step {number}" for number in range(1, len(steps) + 1))]
    rows = [
        [escape(name), *(_bold(SIGNS[one.places[row].found], number == at) for number, one in enumerate(steps, 1))]
        for row, name in enumerate(place.name for place in step.places)
    ]
    details = [
        [escape(place.name), SIGNS[place.found], _with_code(place.detail)] for place in step.places
    ]
    body = (f'<p class="quiet">{escape(report)}</p>{table("Six places, after each step", heads, rows)}'
            + table(f"After step {at}", ("Place", "The document", "What was seen"), details))
    lines = [summary + ".", report]
    lines += [f"{place.name}: {SIGNS[place.found][2:]} ({place.detail})".replace("`", "") for place in step.places]
    for number, one in enumerate(steps, 1):
        lines += [*([""] if number == 1 else []), f"Step {number}: {one.name}. {_places_in_words(one)}"]
    return make_view(NAME, summary, body, "\n".join(lines))


def _places_in_words(step: Step) -> str:
    names = {state: ", ".join(place.name for place in step.places if place.found is state) for state in SIGNS}
    gone, unkept = names[False], names[None]
    return (f"Found in: {names[True] or 'nowhere'}." + (f" Gone from: {gone}." if gone else "")
            + (f" Not kept in: {unkept}." if unkept else ""))


def _with_code(detail: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(detail))


def _bold(html: str, chosen: bool) -> str:
    return f"<b>{html}</b>" if chosen else html


class DeletionPanel(Panel):
    """Go through the steps of a deletion. Control: `.step`, a list (values from 1)."""

    def __init__(self, steps: Sequence[Step], at: int = 1):
        self.steps = list(steps)
        options = [(f"{number}. {step.name}", number) for number, step in enumerate(steps, 1)]
        self.step = widgets.Dropdown(options=options, value=at, description="Step", style=label_width(),
                                     layout=widgets.Layout(width="98%"))
        super().__init__([self.step], [self.step], height=480)

    def look(self) -> View:
        return deletion_view(self.steps, self.step.value)


def deletion_panel(steps: Sequence[Step], at: int = 1) -> DeletionPanel:
    return DeletionPanel(steps, at)
