"""The assistant: ask, see what was found, read the answer as it is written, with its checks and pictures.

`assistant_view` shows a conversation without a widget. An earlier question is kept only as long as the conversation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import ipywidgets as widgets

from labsupport.lab.source import shortened
from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answerer, load_answerer
from labsupport.pipeline.ask import DEFAULT_METHOD, NARROW, Asked, Found, ask_stream
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import Retriever

from .base import Panel, View, escape, make_view, without_mark
from .controls import asker_row, filters_from, question_row
from .pictures import answer_html, answer_words

NAME = "AssistantPanel"
REFRESH = 0.06  # seconds between two pictures of a growing answer

CSS = """
.lab-turn { border-top: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4)); padding: 6px 0; }
.lab-turn .asked { font-weight: 600; }
.lab-turn .answer { white-space: pre-wrap; border-left: 4px solid #1f88c4; padding: 2px 0 2px 10px; margin: 6px 0; }
.lab-turn img { display: block; max-width: 100%; max-height: 300px; margin: 6px 0; background: #fff; }
"""


@dataclass
class Turn:
    """One question of a conversation, and how far its answer has come. `end`: "", "stopped" or what went wrong."""

    question: str
    found: Found | None = None
    text: str = ""
    asked: Asked | None = None
    end: str = ""

    @property
    def state(self) -> str:
        if self.asked:
            checked = self.asked.checked
            if not self.asked.answer.answerable:
                return "no answer in the passages"
            wrong = f", CHECK: {', '.join(check.flag for check in checked.invalid)}" if checked.invalid else ""
            count, fine = len(self.asked.answer.claims), sum(check.ok for check in checked.checks)
            said = f"answered, {count} claim{'' if count == 1 else 's'}, {fine} of {len(checked.checks)} citations ok"
            return f"{said}, {'grounded' if checked.grounded else 'not grounded'}{wrong}"
        return self.end or ("writing" if self.found else "searching")


def assistant_view(turns: Sequence[Turn], corpus: Path | None = None) -> View:
    """A conversation, the last question first."""
    if not turns:
        hint = "Type a question and press Enter."
        return make_view(NAME, "nothing asked yet", f'<p class="quiet">{hint}</p>', f"Nothing asked yet. {hint}", CSS)
    last, count = turns[-1], len(turns)
    summary = f"question {count}, “{shortened(' '.join(last.question.split()), 70)}”: {last.state}"
    html, lines = [], [summary + "."]
    for place, turn in reversed(list(enumerate(turns, 1))):
        latest = turn is last
        cursor = " ▌" if latest and not turn.asked and not turn.end else ""
        html.append(f'<div class="lab-turn"><p class="asked">{place}. {escape(turn.question)}</p>')
        answer = answer_html(turn.text, corpus) if latest else escape(answer_words(turn.text))
        html.append(f'<div class="answer">{answer}{cursor}</div>')
        html.append(f'<p class="quiet">{escape(turn.state[0].upper() + turn.state[1:])}.</p>')
        about = [*_found(turn), *_claims(turn)] if latest else []
        html += [f"<p>{escape(line)}</p>" for line in about]
        html.append("</div>")
        lines += ["", f"Question {place}: {turn.question}", answer_words(turn.text), f"({turn.state})", *about]
    return make_view(NAME, summary, "".join(html), "\n".join(lines), CSS)


def _found(turn: Turn) -> list[str]:
    if turn.found is None:
        return []
    found = turn.found
    passages = "; ".join(f"[{chunk.chunk_id}] {chunk.label}, {chunk.section or '-'}" for chunk in found.context.kept)
    searched = [] if found.searched == (found.question,) else [f"Searched: {' / '.join(found.searched)}"]
    return [
        *([f"Follows up on: {found.history[-1]}"] if found.history else []),
        f"Intent: {found.intent.label}, {found.intent.reason}; posture: {found.intent.posture}.",
        *searched,
        f"Sent: {passages or 'no passage'} ({found.context.tokens} estimated tokens; "
        f"{found.filters.as_of or 'any date'}, {found.filters.audience}).",
        *(f"Note: {note}" for note in found.notes),
    ]


def _claims(turn: Turn) -> list[str]:
    if turn.asked is None:
        return []
    lines = []
    for place, claim in enumerate(turn.asked.answer.claims):
        cited = ", ".join(f"{'✓' if check.ok else '✗'} {check.chunk_id}{'' if check.ok else ' ' + check.status}"
                          for check in turn.asked.checked.of(place)) or "✗ cites nothing"
        lines.append(f"Claim {place + 1}: {without_mark(claim.text)} {cited}")
    return lines


class AssistantPanel(Panel):
    """Ask and read. Controls: `.question` (list), `.ask` (box; Enter asks), `.send`, `.stop`, `.fresh` (forgets the
    conversation), `.method`, `.day`, `.audience`. The answer is made in a thread, so that it can be stopped; `.wait()`
    waits for it. `pace`: seconds between words, so that an answerer without a model can be followed. A question of the
    course brings its own date, audience and earlier questions along."""

    def __init__(self, retriever: Retriever, corpus: Path | None = None, filters: Filters | None = None,
                 question: str = "", questions: Sequence[Question] = (), answerer: Answerer | None = None,
                 pace: float = 0.02):
        self.retriever, self.corpus, self.answerer, self.pace = retriever, corpus, answerer, pace
        filters = filters or Filters()
        self.turns: list[Turn] = []
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.known = {one.text: one for one in questions}
        self.day, self.audience, asker = asker_row(filters.as_of, filters.audience)
        self.question, self.ask, row = question_row(questions, question, self._chosen)
        self.send = widgets.Button(description="Ask", tooltip="Ask the question in the box")
        self.stop = widgets.Button(description="Stop", tooltip="Stop the answer", disabled=True)
        self.fresh = widgets.Button(description="New conversation", tooltip="Forget the questions asked so far")
        self.method = widgets.Dropdown(
            options=[("the best five", DEFAULT_METHOD), ("what passes the narrowing", NARROW)], value=DEFAULT_METHOD,
            description="Send", tooltip="Which passages are sent with the next question")
        buttons = widgets.HBox([self.send, self.stop, self.fresh, self.method],
                               layout=widgets.Layout(flex_flow="row wrap"))
        super().__init__([row, asker, buttons], [], height=560)
        if question:
            self.answer(self.ask.value)
        self.ask.observe(self._start, names="value")
        self.send.on_click(self._start)
        self.stop.on_click(lambda _button: self._stop.set())
        self.fresh.on_click(self._forget)

    def _chosen(self, question: Question) -> None:
        self.day.value, self.audience.value = date.fromisoformat(question.as_of), question.audience

    def look(self) -> View:
        return assistant_view(self.turns, self.corpus)

    def answer(self, question: str, pace: float = 0) -> View:
        """Ask within the conversation and wait for the answer."""
        turn = Turn(question)
        history = [earlier.question for earlier in self.turns if not earlier.end]
        if not history and question in self.known:
            history = list(self.known[question].history)
        self.turns.append(turn)
        self._stop.clear()
        try:
            self._follow(turn, history, pace)
        except LabError as error:
            turn.end = str(error).rstrip(".")
        except Exception as error:  # any answerer may be plugged in; in a thread nobody would see what it raises
            turn.end = f"broke off: {type(error).__name__}: {error}"
        self.refresh()
        return self.shown

    def _follow(self, turn: Turn, history: Sequence[str], pace: float) -> None:
        if self.answerer is None:
            self.answerer = load_answerer("extractive", reranker=self.retriever.reranker,
                                          embedder=self.retriever.embedder)
        filters, shown = filters_from(self.day, self.audience), 0.0
        stream = ask_stream(turn.question, self.retriever, self.answerer, method=self.method.value, filters=filters,
                            history=history)
        with closing(stream):
            for piece in stream:
                if self._stop.is_set():
                    turn.end = "stopped"
                    return
                if isinstance(piece, Found):
                    turn.found = piece
                elif isinstance(piece, Asked):
                    turn.asked = piece
                else:
                    turn.text += piece
                    time.sleep(pace)
                if time.monotonic() - shown > REFRESH:
                    self.refresh()
                    shown = time.monotonic()

    def _start(self, _event: object) -> None:
        if (self._thread and self._thread.is_alive()) or not self.ask.value.strip():
            return
        self.send.disabled = self.fresh.disabled = True
        self.stop.disabled = False
        self._thread = threading.Thread(target=self._run, args=(self.ask.value,), daemon=True)
        self._thread.start()

    def _run(self, question: str) -> None:
        try:
            self.answer(question, self.pace)
        finally:
            self.send.disabled = self.fresh.disabled = False
            self.stop.disabled = True

    def wait(self, seconds: float = 60) -> None:
        """Wait until the answer that is being written is done."""
        if self._thread:
            self._thread.join(seconds)

    def _forget(self, _button: object) -> None:
        self.turns.clear()
        self.refresh()


def assistant_panel(retriever: Retriever, corpus: Path | None = None, filters: Filters | None = None,
                    question: str = "", questions: Sequence[Question] = (), answerer: Answerer | None = None,
                    pace: float = 0.02) -> AssistantPanel:
    return AssistantPanel(retriever, corpus, filters, question, questions, answerer, pace)
