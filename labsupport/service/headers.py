"""What every response says to browsers, and what is turned away before anything reads it."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class Headers:
    """Adds SAFE to every response, and refuses requests that a page of another site sends."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        asked = dict(scope["headers"])
        origin, host = asked.get(b"origin", b""), asked.get(b"host", b"")
        if origin and origin.partition(b"://")[2] != host:
            text = "Pages of other sites may not ask here; open this service's own page."
            return await JSONResponse({"error": text}, 403)(scope, receive, send_safe)
        return await self.app(scope, receive, send_safe)


class SmallBodies:
    """Refuses a body of more than `limit` bytes, announced or not, without reading on."""

    def __init__(self, app: ASGIApp, limit: int):
        self.app, self.limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        parts, size, more = [], 0, True
        while more and size <= self.limit:
            message = await receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
        if size > self.limit:
            text = f"The request is larger than {self.limit} bytes; send a shorter question."
            return await JSONResponse({"error": text}, 413, {"Connection": "close"})(scope, receive, send)
        read = False

        async def replay() -> Message:
            nonlocal read
            if read:
                return await receive()  # what comes next is the client leaving
            read = True
            return {"type": "http.request", "body": b"".join(parts), "more_body": False}

        return await self.app(scope, replay, send)
