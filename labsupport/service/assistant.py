"""The course's assistant behind the service: one retriever, one answerer, shared by all workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answerer
from labsupport.pipeline.ask import DEFAULT_METHOD, AnswerCache, Asked, Found, ask_stream
from labsupport.pipeline.context import estimate_tokens
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.sqlite_file import frozen
from labsupport.service.conversations import Conversation, Event


class Assistant:
    """Turns a conversation into events. The retriever and the answerer are used by several threads in turn."""

    def __init__(self, retriever: Retriever, answerer: Answerer, method: str = DEFAULT_METHOD, cached: int = 256):
        self.retriever, self.answerer, self.method = retriever, answerer, method
        self.cache = AnswerCache(cached)
        self._file = self._number_of_file()

    def _number_of_file(self) -> int | None:
        """Which file the index is; None for an index that is none, 0 for one that is gone."""
        path = getattr(self.retriever.store, "path", None)
        try:
            return path.stat().st_ino if isinstance(path, Path) else None
        except OSError:
            return 0

    def check_file(self) -> None:
        """An open file that was deleted can still be read, but what it says is of the past. Raises LabError.

        In a folder that may only be read, the store itself looks whether the file was exchanged, and opens the new one.
        """
        if self._number_of_file() != self._file and frozen(self.retriever.store.path) is None:
            raise LabError("The index was deleted or replaced while the service ran; start the service again.")

    def events(self, conversation: Conversation) -> Iterator[Event]:
        """passages, token …, answer. Closing the iterator stops the search or the model behind it."""
        self.check_file()
        steps = ask_stream(
            conversation.question, self.retriever, self.answerer, cache=self.cache, method=self.method,
            filters=conversation.options["filters"],
        )  # fmt: skip
        held = ""  # half a character: a model's text may be cut inside a surrogate pair
        with closing(steps):
            for step in steps:
                if isinstance(step, Found):
                    yield "passages", passages(step)
                    continue
                last = isinstance(step, Asked)
                text, held = held + ("" if last else step), ""
                if not last and "\ud800" <= text[-1:] <= "\udbff":
                    text, held = text[:-1], text[-1]
                if text or not last:
                    yield ("token", {"text": text}) if text else ("working", {})
                if last:
                    yield "answer", step.as_dict()

    def health(self) -> dict[str, Any]:
        """What `/healthz` tells. Raises LabError for an index that cannot be read."""
        self.check_file()
        documents = self.retriever.store.documents()
        return {"documents": len(documents), "chunks": sum(row.chunks for row in documents),
                "answerer": self.answerer.name}

    def close(self) -> None:
        self.retriever.store.close()


def passages(found: Found) -> dict[str, Any]:
    """What the answer will be drawn from, with the text of each passage: a reader can open every citation."""
    context = found.context
    return {
        "question": found.question, "as_of": found.filters.as_of, "audience": found.filters.audience,
        "intent": found.intent.label, "reason": found.intent.reason, "posture": found.intent.posture,
        "searched": list(found.searched), "notes": list(found.notes), "tokens": context.tokens,
        "passages": [
            {"id": chunk.chunk_id, "document": chunk.label, "title": chunk.title, "section": chunk.section,
             "type": chunk.doc_type, "effective_from": chunk.effective_from, "effective_to": chunk.effective_to,
             "text": chunk.body, "tokens": estimate_tokens(text)}
            for chunk, text in zip(context.kept, context.passages, strict=True)
        ],
        "dropped": [{"id": chunk_id, "reason": reason} for chunk_id, reason in context.dropped],
    }  # fmt: skip
