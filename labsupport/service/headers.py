"""What every response says to browsers, and what is turned away before anything reads it."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("labsupport.service")

# Nothing but the page's own script and style, and pictures from here: text of a passage or an answer can never act.
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip


def refusal(status: int, text: str, **headers: str) -> JSONResponse:
    """Every refusal is one sentence in JSON."""
    return JSONResponse({"error": text}, status, headers or None)


class Headers:
    """Adds SAFE to every response and refuses what a page of another site sends.

    The Host must be one of `hosts`: a foreign name that points at this machine is how a foreign page would get around
    the browser's rule of one origin (DNS rebinding). What goes wrong inside is logged without its message, which may
    hold a question.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]):
        self.app, self.hosts = app, {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started = False

        async def send_safe(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if refused := self._foreign(dict(scope["headers"])):
            return await refused(scope, receive, send_safe)
        try:
            await self.app(scope, receive, send_safe)
        except Exception as crash:
            frames = "".join(traceback.format_tb(crash.__traceback__))
            log.error("a request failed: %s\n%s", type(crash).__name__, frames)
            if not started:
                text = "The service failed here; its log says why."
                await refusal(500, text)(scope, receive, send_safe)

    def _foreign(self, asked: dict[bytes, bytes]) -> JSONResponse | None:
        host, origin = (asked.get(name, b"").decode("latin-1").lower() for name in (b"host", b"origin"))
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if name not in self.hosts:
            return refusal(421, "This service does not answer to that name; use the address it printed when it "
                                "started, or start it with --name.")
        if origin and origin.partition("://")[2] != host:
            return refusal(403, "Pages of other sites may not ask here; open this service's own page.")
        return None


class SmallBodies:
    """Refuses a body of more than `limit` bytes, announced or not, without reading on, and one that takes longer than
    `seconds` to arrive."""

    def __init__(self, app: ASGIApp, limit: int, seconds: float):
        self.app, self.limit, self.seconds = app, limit, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._body(receive)
        except TimeoutError:
            text = f"The request did not arrive within {self.seconds:g} seconds; send it again."
            return await refusal(408, text, Connection="close")(scope, receive, send)
        if body is None:
            return None  # the client has left
        if len(body) > self.limit:
            text = f"The request is larger than {self.limit} bytes; send a shorter question."
            return await refusal(413, text, Connection="close")(scope, receive, send)
        read = False

        async def replay() -> Message:
            nonlocal read
            if read:
                return await receive()  # what comes next is the client leaving
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self.app(scope, replay, send)

    async def _body(self, receive: Receive) -> bytes | None:
        """The body, or a bit more than `limit` bytes of it; None when the client left."""
        parts, more = [], True
        while more and sum(map(len, parts)) <= self.limit:
            message = await receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)
