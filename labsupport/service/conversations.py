"""Conversations: a bounded queue of questions, a few workers, and the events of each answer for whoever listens.

A worker looks after every event whether somebody still wants it. When the last listener has left, the work stops after
a short grace in which a client may come back with `Last-Event-ID`; what had been said until then stays readable.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from labsupport.pipeline import LabError
from labsupport.service.access import Caller
from labsupport.service.limits import Full, Limits

log = logging.getLogger("labsupport.service")
Event = tuple[str, dict[str, Any]]  # its name and its data
Work = Callable[["Conversation"], Iterator[Event]]  # the events of one answer; closing it stops what is behind it
LAST = ("done", "error")


@dataclass
class Conversation:
    """One question and the events of its answer so far; `changed` tells those who wait for more."""

    question: str
    caller: Caller
    options: dict[str, Any]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    made: float = field(default_factory=time.monotonic)
    started: float | None = None
    events: list[Event] = field(default_factory=list)
    listeners: int = 0
    left: float | None = None  # when the last listener left; None: nobody has listened yet, or somebody does
    changed: threading.Condition = field(default_factory=threading.Condition)
    on_change: list[Callable[[], None]] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return bool(self.events) and self.events[-1][0] in LAST

    def add(self, event: Event) -> None:
        with self.changed:
            if self.over:
                return
            self.events.append(event)
            self.changed.notify_all()
            waking = list(self.on_change)
        for wake in waking:
            wake()

    def attach(self, wake: Callable[[], None]) -> None:
        with self.changed:
            self.listeners += 1
            self.left = None
            self.on_change.append(wake)

    def detach(self, wake: Callable[[], None]) -> None:
        with self.changed:
            self.listeners -= 1
            self.on_change.remove(wake)
            if not self.listeners:
                self.left = time.monotonic()


class Conversations:
    """Takes questions in, has them answered by `work`, forgets them again. Close it to stop everything."""

    def __init__(self, work: Work, limits: Limits | None = None):
        self.work, self.limits = work, limits or Limits()
        self._waiting: queue.Queue[Conversation | None] = queue.Queue(self.limits.waiting)
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._guard = threading.Lock()
        self._closing = False
        self._workers = [
            threading.Thread(target=self._run, name=f"answer-{number}", daemon=True)
            for number in range(self.limits.workers)
        ]
        for worker in self._workers:
            worker.start()

    def submit(self, question: str, caller: Caller, **options: Any) -> Conversation:
        """Queue a question. Raises Full when too many wait already, or the service is stopping."""
        conversation = Conversation(question, caller, options)
        with self._guard:
            if self._closing:
                raise Full(503, "The service is stopping; ask again in a moment.")
            try:
                self._waiting.put_nowait(conversation)
            except queue.Full:
                raise Full(503, f"{self.limits.waiting} questions wait already; ask again in a few seconds.") from None
            self._known[conversation.id] = conversation
            self._forget()
        log.info("asked: %d characters by %s", len(question), caller.name or "the public")
        log.debug("the question: %r", question)  # shown only where that was asked for
        return conversation

    def get(self, conversation_id: str, caller: Caller) -> Conversation | None:
        """The conversation, for the caller who began it; for anybody else it does not exist."""
        with self._guard:
            self._forget()
            found = self._known.get(conversation_id)
        return found if found is not None and found.caller == caller else None

    def __len__(self) -> int:
        return len(self._known)

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def _forget(self) -> None:
        """Drop what is too old, and the oldest finished ones over the number kept. Called with the guard held."""
        oldest_first = list(self._known.values())
        too_many = len(oldest_first) - self.limits.kept
        for conversation in oldest_first:
            old = time.monotonic() - conversation.made > self.limits.age
            if old or (too_many > 0 and not conversation.listeners):
                del self._known[conversation.id]
                too_many -= 1
                conversation.add(("error", {"error": "This answer was not fetched in time; ask again."}))

    def _run(self) -> None:
        while (conversation := self._waiting.get()) is not None:
            try:
                self._answer(conversation)
            except LabError as fault:
                conversation.add(("error", {"error": str(fault)}))
            except Exception:
                log.exception("an answer failed")
                conversation.add(("error", {"error": "The answer failed here; the log of the service says why."}))
            del conversation  # a waiting worker holds on to nothing

    def _answer(self, conversation: Conversation) -> None:
        conversation.started = time.monotonic()
        if stop := self.stop_reason(conversation):
            conversation.add(("error", {"error": stop}))
            return
        with closing(self.work(conversation)) as events:
            for event in events:
                if stop := self.stop_reason(conversation):
                    conversation.add(("error", {"error": stop}))
                    return
                if event[0] != "working":
                    conversation.add(event)
        conversation.add(("done", {}))

    def stop_reason(self, conversation: Conversation) -> str:
        """Why work on this answer must end now; empty while it may go on."""
        now, limits = time.monotonic(), self.limits
        if self._closing:
            return "The service is stopping; ask again in a moment."
        if conversation.over:
            return "This answer has ended."
        if conversation.left is not None and now - conversation.left > limits.alone:
            return "The work was stopped because nobody listened any more; ask again."
        if conversation.left is None and not conversation.listeners and now - conversation.made > limits.unheard:
            return "The work was stopped because nobody came for the answer; ask again."
        if now - (conversation.started or now) > limits.answering:
            return f"The answer took longer than {limits.answering:g} seconds; ask a shorter question."
        if len(conversation.events) >= limits.events:
            return f"The answer is longer than {limits.events} events; ask a narrower question."
        return ""

    def close(self, wait: float = 10.0) -> None:
        """Stop taking questions, end the work in progress, and wait for the workers."""
        with self._guard:
            self._closing = True
        while True:  # those that wait will not be answered
            try:
                conversation = self._waiting.get_nowait()
            except queue.Empty:
                break
            if conversation is not None:
                conversation.add(("error", {"error": "The service is stopping; ask again in a moment."}))
        for _ in self._workers:
            self._waiting.put(None)
        for worker in self._workers:
            worker.join(wait)
