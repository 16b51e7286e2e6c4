"""Conversations: a bounded queue of questions, a few workers, and the events of each answer for whoever listens.

A worker looks before every event whether somebody still wants it. When the last listener has left, the work pauses: the
client may come back with `Last-Event-ID` within a moment, and then it goes on. If nobody comes back, or as soon as
another question waits for the worker, it stops.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from labsupport.pipeline import LabError
from labsupport.service.access import Caller
from labsupport.service.limits import Full, Limits
from labsupport.service.logs import without_quotes

log = logging.getLogger("labsupport.service")
Event = tuple[str, dict[str, Any]]  # its name and its data
Work = Callable[["Conversation"], Iterator[Event]]  # the events of one answer; closing it stops what is behind it
LAST = ("done", "error")
TIDY = 10.0  # seconds after which an idle worker looks for conversations to forget
STOPPING = "The service is stopping; ask again in a moment."
FAILED = "The answer failed here; the log of the service says why."


@dataclass(eq=False)
class Conversation:
    """One question and the events of its answer so far. Every listener gives a function that wakes it up."""

    question: str
    caller: Caller
    options: dict[str, Any]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    made: float = field(default_factory=time.monotonic)
    started: float | None = None
    events: list[Event] = field(default_factory=list)
    left: float | None = None  # when the last listener left; None: nobody has listened yet, or somebody does
    changed: threading.Condition = field(default_factory=threading.Condition)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return bool(self.events) and self.events[-1][0] in LAST

    def begin(self) -> None:
        self.started = time.monotonic()
        self._wake()

    def add(self, event: Event) -> None:
        """Append an event, unless the last one is there already."""
        with self.changed:
            if self.over:
                return
            self.events.append(event)
        self._wake()

    def fail(self, why: str) -> None:
        self.add(("error", {"error": why}))

    def _wake(self) -> None:
        with self.changed:
            self.changed.notify_all()
            waking = list(self.listeners)
        for wake in waking:
            wake()

    def attach(self, wake: Callable[[], None]) -> None:
        with self.changed:
            self.left = None
            self.listeners.append(wake)
            self.changed.notify_all()

    def detach(self, wake: Callable[[], None]) -> None:
        with self.changed:
            self.listeners.remove(wake)
            if not self.listeners:
                self.left = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Wait for a listener, or the end."""
        with self.changed:
            self.changed.wait_for(lambda: self.listeners or self.over, seconds)


class Conversations:
    """Takes questions in, has them answered by `work`, forgets them again. Close it to stop everything.

    With `details` a caller is told what the pipeline reports, such as the address of a chat server that is not
    reached; without, only that the answer failed.
    """

    def __init__(self, work: Work, limits: Limits | None = None, details: bool = True):
        self.work, self.limits, self.details = work, limits or Limits(), details
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
                raise Full(503, STOPPING)
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

    def attach(self, conversation: Conversation, wake: Callable[[], None]) -> None:
        """Listen to a conversation. Raises Full when too many do."""
        with self._guard:
            if len(conversation.listeners) >= self.limits.listeners:
                raise Full(429, f"{self.limits.listeners} streams of this answer are open already; close one.")
            if sum(len(one.listeners) for one in self._known.values()) >= self.limits.streams:
                raise Full(503, f"{self.limits.streams} streams are open already; ask again in a few seconds.")
            conversation.attach(wake)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def _forget(self) -> None:
        """Drop what is too old, and the oldest finished ones over the number kept. Called with the guard held.

        Unfinished ones are bounded too, by the queue and the workers.
        """
        oldest_first = list(self._known.values())
        too_many = len(oldest_first) - self.limits.kept
        for conversation in oldest_first:
            old = time.monotonic() - conversation.made > self.limits.age
            if old or (too_many > 0 and conversation.over and not conversation.listeners):
                del self._known[conversation.id]
                too_many -= 1
                conversation.fail("This answer was not fetched in time; ask again.")

    def _run(self) -> None:
        while not self._closing:
            try:
                conversation = self._waiting.get(timeout=TIDY)
            except queue.Empty:
                with self._guard:
                    self._forget()
                continue
            if conversation is None:
                return
            try:
                self._answer(conversation)
            except LabError as fault:
                log.warning("no answer: %s", without_quotes(fault, conversation.question))
                log.debug("in full: %s", fault)
                conversation.fail(str(fault) if self.details else FAILED)
            except BaseException as crash:  # a worker must outlive whatever an answerer raises
                frames = "".join(traceback.format_tb(crash.__traceback__))
                log.error("an answer failed: %s\n%s", type(crash).__name__, frames)
                log.debug("what it said: %s", crash)  # which may hold the question
                conversation.fail(FAILED)
            del conversation  # a waiting worker holds on to nothing

    def _answer(self, conversation: Conversation) -> None:
        conversation.begin()
        with closing(self.work(conversation)) as events:
            while not (stop := self._stop(conversation)):
                event = next(events, None)
                if event is None:
                    break
                if event[0] != "working":
                    conversation.add(event)
        conversation.add(("error", {"error": stop}) if stop else ("done", {}))

    def _stop(self, conversation: Conversation) -> str:
        """Why work on this answer must end now; empty while it may go on. Pauses while its listener is away."""
        limits = self.limits
        while (left := conversation.left) is not None and not (conversation.over or self._closing):
            if time.monotonic() - left > limits.alone or self.waiting:
                return "The work was stopped because nobody listened any more; ask again."
            conversation.pause(0.02)  # short, to see soon that somebody else waits
        if self._closing:
            return STOPPING
        if conversation.over:
            return "This answer has ended."
        if late := self.late(conversation):
            return late
        unheard = conversation.left is None and not conversation.listeners
        if unheard and time.monotonic() - conversation.made > limits.unheard:
            return "The work was stopped because nobody came for the answer; ask again."
        if len(conversation.events) >= limits.events:
            return f"The answer is longer than {limits.events} events; ask a narrower question."
        return ""

    def seconds_left(self, conversation: Conversation) -> float:
        """Until its time in the queue, or for the answer, is up."""
        if conversation.started is None:
            return conversation.made + self.limits.queued - time.monotonic()
        return conversation.started + self.limits.answering - time.monotonic()

    def late(self, conversation: Conversation) -> str:
        """What to tell when the time is up, else empty. Listeners look too, for a worker may hang in a model."""
        if self.seconds_left(conversation) >= 0:
            return ""
        if conversation.started is None:
            return f"The question waited longer than {self.limits.queued:g} seconds; ask again in a moment."
        return f"The answer took longer than {self.limits.answering:g} seconds; ask a shorter question."

    def close(self, wait: float = 5.0) -> None:
        """Stop taking questions, end every answer with a last event, and wait `wait` seconds for the workers."""
        with self._guard:
            if self._closing:
                return
            self._closing = True
            for conversation in self._known.values():
                conversation.fail(STOPPING)
        for _ in self._workers:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                break  # a worker that takes what waits sees that it is over
        until = time.monotonic() + wait
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))
