"""What a learner answered in one workspace: `answers.json`, readable text, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from labsupport.pipeline.folder import move

KINDS = ("exercises", "predictions", "knowledge")
FILE = "answers.json"


class Answers:
    """The answers kept in a workspace folder. Two notebooks may write at the same time.

    exercises: id -> {passed, answer, by: "learner" or "snapshot", attempt: the learner's own answer so far, beside that
    of a snapshot}; predictions: id -> {guess, seen: the outcome was shown}; knowledge: id -> {choice, right}.
    """

    def __init__(self, folder: Path):
        self.path = folder / FILE

    def read(self) -> dict[str, dict[str, dict]]:
        """All answers by kind and id that can be read. A file with others is kept (see `_change`)."""
        return self._read()[0]

    def fault(self) -> str:
        """What in the file cannot be read; "" where all can, or where there is no file yet."""
        return self._read()[1]

    def _read(self) -> tuple[dict[str, dict[str, dict]], str]:
        good: dict[str, dict[str, dict]] = {kind: {} for kind in KINDS}
        try:
            text = self.path.read_text(encoding="utf-8")
            kept = json.loads(text) if text.strip() else {}
        except FileNotFoundError:
            return good, ""
        except OSError as error:
            return good, f"the file, which cannot be read ({error.strerror or error})"
        except (ValueError, RecursionError):
            return good, "the file, which is not JSON"
        if not isinstance(kept, dict):
            return good, "the file, which holds no answers"
        bad = sorted(kept.keys() - {*KINDS})
        for kind in KINDS:
            entries = kept.get(kind, {})
            if not isinstance(entries, dict):
                bad.append(kind)
                continue
            good[kind] = {key: value for key, value in entries.items() if isinstance(value, dict)}
            bad += [f"{kind} {key}" for key in entries if key not in good[kind]]
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        return good, ", ".join(bad[:5]) + more

    def record(self, kind: str, key: str, **values: object) -> None:
        """Keep these values for one exercise, prediction or question, beside what was kept before. Raises OSError.

        What a learner passes takes the place of a snapshot's answer; what does not pass stands beside it.
        """

        def change(kept: dict) -> None:
            before = kept[kind].get(key, {})
            if _given(before):
                kept[kind][key] = values if values.get("passed") else _with_attempt(before, values)
            else:
                kept[kind][key] = before | values

        self._change(change)

    def take_over(self, others: dict[str, dict[str, dict]]) -> None:
        """Add what the learner did in another workspace; the course's solutions there stay there.

        Where both have an answer, what the learner passed stands first, and an attempt beside a snapshot's answer.
        """

        def change(kept: dict) -> None:
            for kind in KINDS:
                for key, value in others.get(kind, {}).items():
                    if (own := _own(value)) is not None:
                        mine = kept[kind].get(key)
                        kept[kind][key] = own if mine is None else _together(mine, own)

        self._change(change)

    def _change(self, change: Callable[[dict], None]) -> None:
        with FileLock(self.path.with_name(f".{FILE}.lock"), timeout=10):
            kept, fault = self._read()
            change(kept)
            new = self.path.with_name(f".{FILE}.new")
            new.write_text(as_text(kept), encoding="utf-8", newline="\n")
            if fault:
                self._set_aside()
            move(new, self.path)

    def _set_aside(self) -> None:
        """Keep a file that holds something we cannot read."""
        number = 1
        while (aside := self.path.with_name(f"answers-unreadable-{number}.json")).exists():
            number += 1
        move(self.path, aside)


def _given(value: dict) -> bool:
    return value.get("by") == "snapshot"


def _own(value: dict) -> dict | None:
    """What the learner did: the answer, or the attempt beside a snapshot's answer. None: nothing."""
    if not _given(value):
        return value
    return {"answer": value["attempt"], "by": "learner", "passed": False} if "attempt" in value else None


def _together(mine: dict, own: dict) -> dict:
    if own.get("passed") and (_given(mine) or not mine.get("passed")):
        return own
    return _with_attempt(mine, own) if _given(mine) and "attempt" not in mine else mine


def _with_attempt(given: dict, own: dict) -> dict:
    return given | {"attempt": own.get("answer", "")}


def as_text(answers: dict) -> str:
    return json.dumps(answers, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
