"""What one service takes on: sizes, numbers and times, each refused with its own clear sentence."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Characters, counts and seconds. All of them can be set where the service is made."""

    body: int = 16_384  # bytes of a request
    question: int = 2_000  # characters
    waiting: int = 32  # questions in the queue
    workers: int = 2  # answered at a time
    kept: int = 256  # conversations remembered, finished ones included
    age: float = 600.0  # seconds a conversation is remembered
    listeners: int = 4  # streams of one conversation
    streams: int = 256  # streams in all
    reading: float = 10.0  # seconds in which a request must have arrived
    stalled: float = 30.0  # seconds a reader may take nothing of what is sent
    alone: float = 0.8  # seconds an answer is kept for a listener who left; it pauses meanwhile
    unheard: float = 30.0  # seconds an answer waits for a first listener
    queued: float = 120.0  # seconds a question may wait for its turn
    answering: float = 120.0  # seconds one answer may take, its time in the queue not counted
    events: int = 4_000  # events of one conversation
    per_minute: int = 60  # questions of one caller


class Full(Exception):
    """The service cannot take this now. `status` is the HTTP status, `retry_after` the seconds to wait."""

    def __init__(self, status: int, message: str, retry_after: int = 5):
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class Rate:
    """A token bucket for each caller: `per_minute` questions at once, then one every 60 / per_minute seconds.

    The callers remembered are bounded: those that have been silent longest are forgotten first.
    """

    def __init__(self, per_minute: int, callers: int = 10_000, clock: Callable[[], float] = time.monotonic):
        self.per_minute, self.callers, self.clock = per_minute, callers, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._guard = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one question. Raises Full when the caller has none left."""
        with self._guard:
            now = self.clock()
            left, since = self._left.pop(caller, (float(self.per_minute), now))
            left = min(self.per_minute, left + (now - since) * self.per_minute / 60)
            self._left[caller] = (left - 1 if left >= 1 else left, now)
            while len(self._left) > self.callers:
                self._left.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) * 60 / self.per_minute))
            raise Full(429, f"More than {self.per_minute} questions a minute; wait {wait} seconds.", wait)
