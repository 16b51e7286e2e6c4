"""Any chat model behind an OpenAI-compatible server: Ollama, vLLM, a llama.cpp server, or a hosted one.

Three environment variables name it: LAB_ENDPOINT_URL (such as http://127.0.0.1:11434/v1), LAB_ENDPOINT_MODEL, and,
where the server wants one, LAB_ENDPOINT_KEY. The reply is asked for as JSON in the strictest form the server takes, and
the answer's text is passed on while it is written; an empty piece means that the model is still at work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import NOTHING, Answer, StreamingAnswerer, timed
from labsupport.pipeline.chat_client import ChatClient
from labsupport.pipeline.context import Context, estimate_tokens
from labsupport.pipeline.intents import Intent
from labsupport.pipeline.prompting import Prompt, build_prompt
from labsupport.pipeline.replies import ReplyReader, read_reply
from labsupport.pipeline.terms import language_of

URL, KEY, MODEL = "LAB_ENDPOINT_URL", "LAB_ENDPOINT_KEY", "LAB_ENDPOINT_MODEL"
MAX_REPLY_TOKENS = 220

SCHEMA = {
    "type": "object",
    "properties": {
        "answerable": {"type": "boolean"},
        "answer": {"type": "string"},
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "citations": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["text", "citations"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["answerable", "answer", "claims"],
    "additionalProperties": False,
}
# Strictest first. The second form is that of llama.cpp's Python server; the last leaves it to the prompt.
FORMATS: list[dict[str, Any] | None] = [
    {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
    {"type": "json_object", "schema": SCHEMA},
    {"type": "json_object"},
    None,
]


class EndpointAnswerer(StreamingAnswerer):
    """Asks a chat model over HTTP; the environment says which, or the arguments. `options` go to ChatClient."""

    name = "endpoint"

    def __init__(
        self, url: str | None = None, model: str | None = None, key: str | None = None,
        max_tokens: int = MAX_REPLY_TOKENS, **options: Any,
    ) -> None:
        url = (url or os.environ.get(URL, "")).strip()
        self.model = (model or os.environ.get(MODEL, "")).strip()
        if not url or not self.model:
            missing = [name for name, value in ((URL, url), (MODEL, self.model)) if not value]
            raise LabError(
                f"No chat endpoint is set: set {' and '.join(missing)} (and {KEY} if the server wants a key), "
                "or use the extractive answerer, which needs none."
            )
        key = os.environ.get(KEY, "") if key is None else key
        self._client = ChatClient(url, key.strip(), **options)
        self.max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"EndpointAnswerer({self._client!r}, model={self.model!r})"

    def stream(
        self, question: str, context: Context, *, prompt: Prompt | None = None, intent: Intent | None = None
    ) -> Iterator[str | Answer]:
        started = time.perf_counter()
        if not context.kept:
            text = NOTHING[language_of(question)]
            yield text
            yield Answer(False, text, model=self.model, notes=("no passage was found: the model was not asked",))
            return
        prompt = prompt or build_prompt(question, context, intent.posture if intent else "explaining")
        body = {
            "model": self.model, "messages": prompt.messages(), "temperature": 0, "max_tokens": self.max_tokens,
            "stream": True, "stream_options": {"include_usage": True},
        }
        reader, usage, finish = ReplyReader(), {}, None
        with closing(self._client.chat(body, FORMATS)) as chunks:
            for chunk in chunks:
                if chunk is None:
                    yield ""
                    continue
                usage = chunk.get("usage") or usage
                choice = (chunk.get("choices") or [{}])[0]
                finish = choice.get("finish_reason") or finish or ("stop" if chunk.get("done") else None)
                if piece := reader.feed(_text_of(choice)):
                    yield piece
        held_back = reader.finish()
        answer = self._finished(reader, usage, finish, prompt)
        if rest := held_back + answer.answer[len(reader.text) :]:
            yield rest
        yield timed(answer, started)

    def _finished(self, reader: ReplyReader, usage: dict, finish: str | None, prompt: Prompt) -> Answer:
        where = f"{self.model} at {self._client.shown}"
        if not reader.raw.strip():
            raise LabError(f"The reply of {where} was empty; ask again.")
        if finish is None:
            raise LabError(f"The reply of {where} broke off after {len(reader.raw)} characters; ask again.")
        answer = read_reply(reader)
        notes = list(answer.notes)
        if finish == "length":
            notes.append(f"the reply was cut off at {self.max_tokens} tokens")
        if not usage.get("completion_tokens"):
            notes.append("tokens are estimates: the server does not count them")
        return replace(
            answer, model=self.model, notes=tuple(notes),
            tokens_in=usage.get("prompt_tokens") or prompt.tokens,
            tokens_out=usage.get("completion_tokens") or estimate_tokens(reader.raw),
        )


def _text_of(choice: dict[str, Any]) -> str:
    part = choice.get("delta") or choice.get("message") or {}
    content = part.get("content")
    return content if isinstance(content, str) else ""


def make_answerer(**_: Any) -> EndpointAnswerer:
    return EndpointAnswerer()
