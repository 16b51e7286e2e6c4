"""What `/openapi.json` says beyond what FastAPI finds out by itself: events, limits, and that a token is optional."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from labsupport.pipeline.front_matter import AUDIENCES
from labsupport.service.limits import Limits
from labsupport.service.stream import RETRY

TEXT, NUMBER, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
REAL, DATE = {"type": "number"}, {"type": "string", "format": "date"}


def maybe(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


def many(kind: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kind}


def fields(text: str = "", /, **kinds: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {"type": "object", "properties": kinds, "required": list(kinds)} | ({"description": text} if text else {})


AUDIENCE = {"type": "string", "enum": list(AUDIENCES)}
QUESTION = {
    "question": TEXT, "as_of": DATE, "audience": AUDIENCE, "intent": TEXT, "reason": TEXT, "posture": TEXT,
    "searched": many(TEXT), "notes": many(TEXT),
}  # fmt: skip
EVENTS = {
    "passages": fields(
        "Once, first: what the answer will be drawn from.", **QUESTION, tokens=NUMBER,
        passages=many(fields(id=TEXT, document=TEXT, title=TEXT, section=TEXT, type=TEXT, effective_from=DATE,
                             effective_to=maybe(DATE), text=TEXT, tokens=NUMBER)),
        dropped=many(fields(id=TEXT, reason=TEXT)),
    ),
    "token": fields("As text is produced: a piece of the answer.", text=TEXT),
    "answer": fields(
        "Once: the answer, its claims, and the check of every citation.", **QUESTION, qid=maybe(TEXT), asked=TEXT,
        method=TEXT, passages=many(fields(id=TEXT, document=TEXT, section=TEXT, tokens=NUMBER)),
        answerable=TRUTH, answer=TEXT, claims=many(fields(text=TEXT, citations=many(TEXT))),
        checks=many(fields(claim=NUMBER, cited=TEXT, id=TEXT, status=TEXT, words_in_passage=maybe(REAL), note=TEXT)),
        missing_quotations=many(TEXT), grounded=TRUTH, model=TEXT, tokens_in=NUMBER, tokens_out=NUMBER,
        seconds=REAL,
    ),
    "done": {"type": "object", "description": "Last, of an answer that is whole.", "properties": {}},
    "error": fields("Last, in the place of all that is missing: why, and what to do.", error=TEXT),
}  # fmt: skip
EXAMPLE = (f'retry: {RETRY}\n\nid: 2\nevent: token\ndata: {{"text": "You have "}}\n\n'
           "id: 9\nevent: done\ndata: {}\n\n")  # fmt: skip


def stream_described(limits: Limits) -> dict[str, Any]:
    """The response of the stream."""
    return {
        "description": "Server-sent events, each with `id` (1, 2, …), `event` and JSON `data`: one `passages` (what "
                       "the answer will be drawn from), `token`s whose `text` joined is the answer, one `answer` (with "
                       "claims and the check of every citation), then `done`. An `error` takes the place of what is "
                       f"missing. The stream begins with `retry: {RETRY}` (ms): an unfinished answer that nobody "
                       f"listens to is given up after {limits.alone:g} seconds, at once if another question waits. "
                       "The data of each event: `x-events`.",
        "content": {"text/event-stream": {
            "schema": {"type": "string"}, "example": EXAMPLE,
            "x-events": {name: {"$ref": f"#/components/schemas/Event_{name}"} for name in EVENTS}}},
    }  # fmt: skip


def describe(app: FastAPI, limits: Limits) -> None:
    """Complete the description FastAPI makes. The limits are those of this service, so they are filled in here."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        described = plain()
        schemas = described["components"]["schemas"]
        schemas |= {f"Event_{name}": data for name, data in EVENTS.items()}
        asked = schemas["Asked"]["properties"]
        asked["question"] |= {"minLength": 1, "maxLength": limits.question}
        asked["as_of"] |= maybe(DATE)
        asked["audience"] |= maybe(AUDIENCE)
        for path in described["paths"].values():
            for operation in path.values():
                if "security" in operation:  # FastAPI knows only "needed"; here nobody has to have a token
                    operation["security"] = [{}, *operation["security"]]
        return described

    app.openapi = openapi
