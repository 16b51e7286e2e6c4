"""The HTTP side: the routes. Every refusal is one sentence in JSON: {"error": "…"}.

The stream of an answer: `passages`, then `token` events as text is produced, then `answer` (the checked answer), then
`done`; or `error`. Every event has a number, so a client that lost its connection goes on with `Last-Event-ID`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Header, HTTPException, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import course_defaults
from labsupport.pipeline.index import Filters
from labsupport.service.access import Caller, Refused, Tokens
from labsupport.service.assistant import Assistant
from labsupport.service.conversations import Conversations
from labsupport.service.described import describe, stream_described
from labsupport.service.headers import Headers, SmallBodies, refusal
from labsupport.service.limits import Full, Limits, Rate
from labsupport.service.stream import EventStream, first_number, follow

PAGE = Path(__file__).with_name("page")
PAGE_PARTS = {"chat.css": "text/css", "chat.js": "text/javascript", "chat.svg": "image/svg+xml"}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Asked(BaseModel):
    """A question, the day it is asked about (YYYY-MM-DD), and an audience no wider than the caller's own."""

    model_config = {"extra": "forbid"}
    question: str = Field(examples=["How long is the warranty on a mower?"])
    as_of: str | None = Field(None, examples=["2026-10-09"])
    audience: str | None = Field(None, examples=["public"])


class Accepted(BaseModel):
    conversation_id: str


class Health(BaseModel):
    status: str
    documents: int
    chunks: int
    answerer: str
    waiting: int


class Fault(BaseModel):
    """What went wrong and what to do, in one sentence."""

    error: str


FAULTS = {
    400: "Not a question that can be asked", 401: "No such token", 403: "Not allowed to this caller, or to pages of "
    "other sites", 404: "Not there, or not for this caller", 408: "The request took too long to arrive",
    413: "Too large", 421: "Not a name of this service", 429: "Too many", 503: "Cannot be taken on now",
}  # fmt: skip


def faults(*statuses: int) -> dict:
    """For OpenAPI. `default` also keeps FastAPI from announcing errors in a form that is not ours."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Fault"}}}
    return {code: {"description": FAULTS[code], "content": content} for code in statuses} | {
        "default": {"description": "Any other fault", "content": content}}


def create_app(
    assistant: Assistant, corpus: Path, tokens: Tokens | None = None, limits: Limits | None = None,
    hosts: tuple[str, ...] = LOOPBACK, details: bool = True,
) -> FastAPI:  # fmt: skip
    """The service around one assistant. `hosts` are the names it answers to; `details`: see Conversations."""
    tokens, limits = tokens or Tokens(), limits or Limits()
    rate = Rate(limits.per_minute)
    conversations = Conversations(assistant.events, limits, details)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(conversations.close)
        assistant.close()

    app = FastAPI(title="Grounded Answers Lab", version="1", lifespan=lifespan, docs_url=None, redoc_url=None,
                  description="Submit a question, then follow the answer as a stream of server-sent events. The "
                              "audience comes from the token: without one a caller is public.")
    app.state.conversations, app.state.limits = conversations, limits
    app.add_middleware(SmallBodies, limit=limits.body, seconds=limits.reading)
    app.add_middleware(Headers, hosts=hosts)
    bearer = Security(HTTPBearer(auto_error=False, description="A token made by `python -m labsupport token NAME`."))

    def caller_of(request: Request) -> Caller:
        return tokens.caller(request.headers.get("Authorization"))

    def today() -> str:
        try:
            return course_defaults(corpus)[0]
        except LabError as fault:  # which names the folder
            raise HTTPException(503, str(fault) if details else "The course's settings cannot be read.") from None

    @app.post("/conversations", status_code=202,
              responses=faults(401, 403, 408, 413, 421, 429, 503) | {400: {"model": Fault, "description": FAULTS[400]}})
    def submit(request: Request, asked: Asked, _: object = bearer) -> Accepted:
        """Submit a question; the answer is followed at `/conversations/{id}/stream`."""
        caller = caller_of(request)
        question = asked.question
        if len(question) > limits.question:
            raise HTTPException(413, f"The question has {len(question)} characters; "
                                     f"shorten it to {limits.question} or fewer.")
        if not question.strip():
            raise HTTPException(400, "The question is empty; write what you want to know.")
        if any("\ud800" <= char <= "\udfff" for char in question):
            raise HTTPException(400, "The question holds half a character (a lone surrogate); send whole ones.")
        audience = asked.audience or caller.audience
        if audience == "staff" and caller.audience != "staff":
            raise HTTPException(403, "Only a caller with a staff token can ask as staff; leave the audience out.")
        filters = Filters(as_of=asked.as_of or today(), audience=audience)
        rate.take(f"token {caller.name}" if caller.name else request.client.host if request.client else "")
        return Accepted(conversation_id=conversations.submit(question, caller, filters=filters).id)

    @app.get("/conversations/{conversation_id}/stream", status_code=200, response_class=EventStream,
             responses={200: stream_described(limits)} | faults(401, 403, 404, 421, 429, 503))
    async def stream(
        request: Request, conversation_id: str, _: object = bearer,
        last_event_id: str | None = Header(None, alias="Last-Event-ID", description="The last number received."),
    ) -> EventStream:
        """The events of an answer. With `Last-Event-ID` those after that one; the last event always."""
        found = conversations.get(conversation_id, caller_of(request))
        if found is None:
            raise HTTPException(404, "There is no such conversation for you; it may be too old. Ask again.")
        events = follow(conversations, found, first_number(last_event_id))
        await anext(events)
        return EventStream(events, limits.stalled)

    @app.get("/healthz", responses=faults(421, 503))
    def health() -> Health:
        """Whether the index can be read, and how many questions wait."""
        try:
            return Health(status="ok", waiting=conversations.waiting, **assistant.health())
        except LabError as fault:
            raise HTTPException(503, str(fault) if details else "The index cannot be read.") from None

    @app.get("/screens/{name}", responses={200: {"content": {"image/png": {}}}} | faults(404, 421),
             response_class=FileResponse)
    def screen(name: str) -> FileResponse:
        """A screenshot of the course's own corpus; no other picture is served."""
        folder = (corpus / "screens").resolve()
        there = {path.name: path.resolve() for path in folder.glob("*.png")}
        if name not in there or there[name].parent != folder:
            raise HTTPException(404, "There is no such screenshot.")
        return FileResponse(there[name], media_type="image/png", headers={"Cache-Control": "private, max-age=600"})

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "chat.html", media_type="text/html")

    @app.get("/{name}", include_in_schema=False)
    def page_part(name: str) -> FileResponse:
        if name not in PAGE_PARTS:
            raise HTTPException(404, "There is nothing here; the chat page is at /.")
        return FileResponse(PAGE / name, media_type=PAGE_PARTS[name])

    app.add_exception_handler(Refused, lambda _, why: refusal(401, str(why), **{"WWW-Authenticate": "Bearer"}))
    app.add_exception_handler(
        Full, lambda _, why: refusal(why.status, str(why), **{"Retry-After": str(why.retry_after)}))
    app.add_exception_handler(LabError, lambda _, why: refusal(400, str(why)))
    app.add_exception_handler(
        AnyHTTPException, lambda _, why: refusal(why.status_code, told(why), **(why.headers or {})))
    app.add_exception_handler(RequestValidationError, lambda _, why: refusal(400, in_one_sentence(why)))
    describe(app, limits)
    return app


def told(why: AnyHTTPException) -> str:
    """Our own sentences as they are; for the framework's bare phrases a sentence that says what to do."""
    text = str(why.detail)
    if text.endswith("."):
        return text
    return {400: f"The body cannot be read; {SEND}", 404: "There is nothing here; the chat page is at /.",
            405: "This cannot be done here; /openapi.json lists what can."}.get(why.status_code, f"{text}.")


SEND = 'send JSON such as {"question": "How long is the warranty?"}.'


def in_one_sentence(invalid: RequestValidationError) -> str:
    first = invalid.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    return f"{where}: {first['msg'].lower()}; {SEND}"
