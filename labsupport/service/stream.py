"""The events of a conversation as server-sent events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from labsupport.service.conversations import Conversation, Conversations

log = logging.getLogger("labsupport.service")
HEARTBEAT = 15.0  # seconds of silence after which a comment keeps proxies from closing the stream
RETRY = 300  # milliseconds, told to EventSource: its own three seconds are more than `Limits.alone`


def sse(number: int, name: str, data: dict[str, Any]) -> bytes:
    """One event. JSON keeps line ends and `data:` in a text from being read as part of the protocol."""
    try:
        content = json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only escapes can carry it
        content = json.dumps(data).encode()
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), content)


def first_number(last_event_id: str | None) -> int:
    """The number of the last event a client has; 0 for none and for what is no number of ours."""
    fine = last_event_id and last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 10
    return int(last_event_id) if fine else 0


async def follow(conversations: Conversations, conversation: Conversation, start: int) -> AsyncGenerator[bytes]:
    """The events after number `start` as they come, the last one always. Leaving this counts as leaving the
    conversation. Starts with an empty chunk, when the place among the listeners is taken; Full if there is none."""
    loop, more = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody listens there any more
            loop.call_soon_threadsafe(more.set)

    conversations.attach(conversation, wake)
    try:
        yield b""
        yield b"retry: %d\n\n" % RETRY
        sent = min(start, len(conversation.events))
        if conversation.over:
            sent = min(sent, len(conversation.events) - 1)  # whoever asks again is told again that it is over
        while True:
            more.clear()
            for number, (name, data) in enumerate(conversation.events[sent:], sent + 1):
                yield sse(number, name, data)
                sent = number
            if conversation.over and sent >= len(conversation.events):
                return
            left = conversations.seconds_left(conversation)
            try:
                await asyncio.wait_for(more.wait(), max(0.01, min(HEARTBEAT, left + 0.01)))
            except TimeoutError:
                if late := conversations.late(conversation):
                    conversation.fail(late)
                else:
                    yield b": still here\n\n"
    finally:
        conversation.detach(wake)


class EventStream(StreamingResponse):
    """Sends events as they come, and gives up on a client that takes none for `stalled` seconds."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes], stalled: float):
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self.stalled = stalled

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.body_iterator):  # now, not some time later: this is what stops the work
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        async def in_time(message: Message) -> None:
            async with asyncio.timeout(self.stalled):
                await send(message)

        try:
            await super().stream_response(in_time)
        except TimeoutError:
            log.info("a client took nothing for %g seconds; its stream is closed", self.stalled)
