"""The HTTP side: routes, server-sent events, headers. Every refusal is one sentence in JSON: {"error": "…"}.

The stream of an answer: `passages`, then `token` events as text is produced, then `answer` (the checked answer), then
`done`; or `error`. Every event has a number, so a client that lost its connection goes on with `Last-Event-ID`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import course_defaults
from labsupport.pipeline.index import Filters
from labsupport.service.access import Caller, Refused, Tokens
from labsupport.service.assistant import Assistant
from labsupport.service.conversations import Conversation, Conversations
from labsupport.service.headers import Headers, SmallBodies
from labsupport.service.limits import Full, Limits, Rate

PAGE = Path(__file__).with_name("page")
HEARTBEAT = 15.0  # seconds of silence after which a comment keeps proxies from closing the stream


class Asked(BaseModel):
    """A question, the day it is asked about (YYYY-MM-DD), and an audience no wider than the caller's own."""

    model_config = {"extra": "forbid"}
    question: str = Field(examples=["How long is the warranty on a mower?"])
    as_of: str | None = Field(None, examples=["2026-10-09"])
    audience: str | None = Field(None, examples=["public"])


class Accepted(BaseModel):
    conversation_id: str


class Fault(BaseModel):
    error: str


def fault(status: int, message: str, **headers: str) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers or None)


def create_app(
    assistant: Assistant, corpus: Path, tokens: Tokens | None = None, limits: Limits | None = None,
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]", "testserver"),
) -> FastAPI:  # fmt: skip
    """The service around one assistant. `hosts` are the names it answers to."""
    tokens, limits = tokens or Tokens(), limits or Limits()
    rate = Rate(limits.per_minute)
    conversations = Conversations(assistant.events, limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(conversations.close)
        assistant.close()

    app = FastAPI(title="Grounded Answers Lab", version="1", lifespan=lifespan, docs_url=None, redoc_url=None,
                  description="Submit a question, then follow the answer as a stream of server-sent events.")
    app.state.conversations, app.state.limits = conversations, limits
    app.add_middleware(SmallBodies, limit=limits.body)
    app.add_middleware(Headers)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    answers = {code: {"model": Fault} for code in (400, 401, 403, 404, 413, 429, 503)}

    def caller_of(authorization: str | None) -> Caller:
        return tokens.caller(authorization)

    @app.post("/conversations", status_code=202, responses=answers)
    def submit(request: Request, asked: Asked, authorization: str | None = Header(None)) -> Accepted:
        """Submit a question; the answer is followed at `/conversations/{id}/stream`."""
        caller = caller_of(authorization)
        if len(asked.question) > limits.question:
            raise HTTPException(413, f"The question has {len(asked.question)} characters; "
                                     f"shorten it to {limits.question} or fewer.")
        if not asked.question.strip():
            raise HTTPException(400, "The question is empty; write what you want to know.")
        audience = asked.audience or caller.audience
        if audience == "staff" and caller.audience != "staff":
            raise HTTPException(403, "Only a caller with a staff token can ask as staff; leave the audience out.")
        filters = Filters(as_of=asked.as_of or course_defaults(corpus)[0], audience=audience)
        rate.take(caller.name or (request.client.host if request.client else ""))
        return Accepted(conversation_id=conversations.submit(asked.question, caller, filters=filters).id)

    @app.get("/conversations/{conversation_id}/stream", responses=answers, response_class=StreamingResponse)
    async def stream(
        conversation_id: str, authorization: str | None = Header(None), last_event_id: str | None = Header(None)
    ) -> StreamingResponse:
        """The events of an answer. With `Last-Event-ID` those after that one."""
        found = conversations.get(conversation_id, caller_of(authorization))
        if found is None:
            raise HTTPException(404, "There is no such conversation for you; it may be too old. Ask again.")
        start = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else 0
        return StreamingResponse(follow(found, start), media_type="text/event-stream",
                                 headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    @app.get("/healthz")
    def health() -> dict[str, Any]:
        """Whether the index can be read, and how much is waiting."""
        return {"status": "ok", **assistant.health(), "waiting": conversations.waiting}

    @app.get("/screens/{name}", responses=answers, response_class=FileResponse)
    def screen(name: str) -> FileResponse:
        """A screenshot of the course's own corpus; no other picture is served."""
        there = {path.name: path for path in (corpus / "screens").glob("*.png")}
        if name not in there:
            raise HTTPException(404, "There is no such screenshot.")
        return FileResponse(there[name], media_type="image/png")

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "chat.html", media_type="text/html")

    @app.get("/chat.{kind}", include_in_schema=False)
    def page_part(kind: str) -> FileResponse:
        kinds = {"css": "text/css", "js": "text/javascript"}
        if kind not in kinds:
            raise HTTPException(404, "There is no such page.")
        return FileResponse(PAGE / f"chat.{kind}", media_type=kinds[kind])

    app.add_exception_handler(Refused, lambda _, why: fault(401, str(why), **{"WWW-Authenticate": "Bearer"}))
    app.add_exception_handler(Full, lambda _, why: fault(why.status, str(why), **{"Retry-After": str(why.retry_after)}))
    app.add_exception_handler(LabError, lambda _, why: fault(400, str(why)))
    app.add_exception_handler(HTTPException, lambda _, why: fault(why.status_code, str(why.detail)))
    app.add_exception_handler(RequestValidationError, lambda _, why: fault(400, in_one_sentence(why)))
    return app


def in_one_sentence(invalid: RequestValidationError) -> str:
    first = invalid.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    return f"{where}: {first['msg'].lower()}; send JSON such as {{\"question\": \"How long is the warranty?\"}}."


def sse(number: int, name: str, data: dict[str, Any]) -> bytes:
    """One server-sent event (WHATWG HTML, section 9.2). JSON keeps line ends and `data:` in a text from being read as
    part of the protocol."""
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


async def follow(conversation: Conversation, start: int) -> AsyncIterator[bytes]:
    """The events after number `start` as they come. Leaving the loop counts as leaving the conversation."""
    loop, more = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(more.set)

    conversation.attach(wake)
    try:
        sent = start
        while True:
            more.clear()
            for number, (name, data) in after(conversation, sent):
                yield sse(number, name, data)
                sent = number
            if conversation.over and sent >= len(conversation.events):
                return
            try:
                await asyncio.wait_for(more.wait(), HEARTBEAT)
            except TimeoutError:
                yield b": still here\n\n"
    finally:
        conversation.detach(wake)


def after(conversation: Conversation, sent: int) -> Iterator[tuple[int, tuple[str, dict[str, Any]]]]:
    return enumerate(conversation.events[sent:], sent + 1)
