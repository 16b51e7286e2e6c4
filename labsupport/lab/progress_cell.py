"""How far a learner is: one row for each module, from the answers kept in the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from labsupport.lab.answers import Answers
from labsupport.lab.exercises import modules
from labsupport.lab.home import Home

HEADINGS = ("Module", "Exercises passed", "Predictions made", "Questions right")


@dataclass(frozen=True)
class Progress:
    """`rows`: module, exercises, predictions, questions, all as text. Shows itself as a table."""

    rows: tuple[tuple[str, str, str, str], ...]
    note: str = ""

    def __repr__(self) -> str:
        widths = [max(len(row[column]) for row in (HEADINGS, *self.rows)) for column in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (HEADINGS, *self.rows)
        ]
        return "\n".join([*lines, self.note] if self.note else lines)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{cell}</th>' for cell in HEADINGS)
        body = "".join(
            "<tr>"
            + f'<th scope="row" style="text-align:left">{escape(row[0])}</th>'
            + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (
            f"<table><caption>Your progress</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"
        )


def progress() -> Progress:
    """What is passed, guessed and answered in the current workspace. Answers from a snapshot are told apart.

    The learner's own attempts beside them are named, as they are not to be seen in the numbers.
    """
    workspace = Home().current()
    kept = Answers(workspace).read() if workspace else {"exercises": {}, "predictions": {}, "knowledge": {}}
    rows, given, attempts = [], False, []
    for module in modules():
        answers = {one.id: kept["exercises"].get(one.id, {}) for one in module.exercises}
        passed = [answer for answer in answers.values() if answer.get("passed")]
        snapshot = sum(answer.get("by") == "snapshot" for answer in passed)
        given |= bool(snapshot)
        attempts += [key for key, answer in answers.items() if "attempt" in answer]
        guessed = sum(one.id in kept["predictions"] for one in module.predictions)
        right = sum(bool(kept["knowledge"].get(one.id, {}).get("right")) for one in module.knowledge)
        rows.append(
            (
                f"{module.number} {module.title}",
                f"{len(passed)} of {len(module.exercises)}" + (f" ({snapshot} from a snapshot)" if snapshot else ""),
                f"{guessed} of {len(module.predictions)}",
                f"{right} of {len(module.knowledge)}",
            )
        )
    note = "Answers from a snapshot are the course's solutions; your own take their place." if given else ""
    if attempts:
        note += f" Your attempts ({', '.join(attempts)}) are kept beside them in answers.json and count once they pass."
    return Progress(tuple(rows), note)
