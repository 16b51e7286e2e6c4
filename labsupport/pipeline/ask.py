"""From a question to a checked answer, in one place for the command line, the notebooks and the service.

search (rewriting included) → favour the kind of passage asked for → assemble within the budget → prompt → answerer →
check every citation. `ask_stream` gives the steps as they happen; `ask` gives the end. Closing the stream stops it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer, Answerer, in_words
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.citations import Checked, check_answer
from labsupport.pipeline.context import DEFAULT_BUDGET, Context, assemble, estimate_tokens
from labsupport.pipeline.index import Filters
from labsupport.pipeline.intents import Intent, favour, route
from labsupport.pipeline.narrowing import Narrowing, narrow
from labsupport.pipeline.prompting import Prompt, build_prompt
from labsupport.pipeline.rewriting import follows_up
from labsupport.pipeline.search import METHODS, Result, Retriever

NARROW = "narrow"  # the grounded path: few passages, each of them worth answering from, or none
ASK_METHODS = (*METHODS, NARROW)
DEFAULT_METHOD, DEFAULT_K = "rerank", 5
# When a screen passage from below the best k matches strongly: its share of the best score, or a logit that says
# "rather an answer than not".
_STRONG_SHARE = {"bm25": 0.5, "cosine": 0.8, "rrf": 0.7}
_STRONG_LOGIT = 0.0


@dataclass(frozen=True)
class Found:
    """What the answerer is asked and shown. `asked` is the date of asking; `filters.as_of` may be a day of delivery."""

    question: str
    asked: str | None
    filters: Filters
    method: str
    k: int
    intent: Intent
    searched: tuple[str, ...]
    context: Context
    prompt: Prompt
    notes: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    qid: str = ""
    narrowing: Narrowing | None = None  # its steps, if the method is narrow

    @property
    def self_contained(self) -> str:
        """The question, or what was searched for it where it follows up on another."""
        return " ".join(self.searched) if self.history and self.searched else self.question


@dataclass(frozen=True)
class Asked:
    """A question, what was found, and the checked answer."""

    found: Found
    checked: Checked
    notes: tuple[str, ...] = ()
    cached: bool = False

    @property
    def answer(self) -> Answer:
        return self.checked.answer

    def as_dict(self) -> dict[str, Any]:
        """For --json and the service."""
        found, answer = self.found, self.answer
        return {
            "qid": found.qid, "question": found.question, "asked": found.asked, "as_of": found.filters.as_of,
            "audience": found.filters.audience, "method": found.method, "searched": list(found.searched),
            "intent": found.intent.label, "reason": found.intent.reason, "posture": found.intent.posture,
            "passages": [
                {"id": chunk.chunk_id, "document": chunk.label, "section": chunk.section,
                 "tokens": estimate_tokens(text)}
                for chunk, text in zip(found.context.kept, found.context.passages, strict=True)
            ],
            **answer.as_dict(),
            "checks": [
                {"claim": one.claim, "cited": one.cited, "id": one.chunk_id, "status": one.status,
                 "words_in_passage": one.words_in_passage, "note": one.note}
                for one in self.checked.checks
            ],
            "missing_quotations": [quotation for _, quotation in self.checked.missing_quotations],
            "grounded": self.checked.grounded, "model": answer.model, "tokens_in": answer.tokens_in,
            "tokens_out": answer.tokens_out, "seconds": answer.seconds,
            "notes": [*found.notes, *self.notes, *self.checked.notes, *answer.notes],
        }


class AnswerCache:
    """The last `limit` answers, by question, passage ids and state of the index, and by who answered.

    A change of the index makes every earlier answer unreachable. Threads may share it.
    """

    def __init__(self, limit: int = 256) -> None:
        self.limit = limit
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._answers)

    @staticmethod
    def key(found: Found, answerer: Answerer, generation: Hashable) -> Hashable:
        return (found.self_contained, tuple(found.context.ids), generation, answerer.name, answerer.model,
                found.prompt.text, found.filters)

    def get(self, key: Hashable) -> Answer | None:
        with self._guard:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: Hashable, answer: Answer) -> None:
        with self._guard:
            self._answers[key] = answer
            self._answers.move_to_end(key)
            while len(self._answers) > self.limit:
                self._answers.popitem(last=False)


def find(
    question: str, retriever: Retriever, *, method: str = DEFAULT_METHOD, k: int = DEFAULT_K,
    budget: int = DEFAULT_BUDGET, filters: Filters | None = None, asked: str | None = None,
    history: Sequence[str] = (), qid: str = "",
) -> Found:
    """Search and assemble: everything up to the prompt. Raises LabError for an empty question and an unknown method.

    `k` passages for a search; narrowing has a cap of its own.
    """
    route(question)  # refuses an empty one, whatever was asked before
    history = history if follows_up(question) else ()  # another subject is not to be judged by the one before
    intent = route(with_history(question, history))
    filters = filters or Filters()
    asked = asked or filters.as_of
    if method == NARROW:
        narrowed = narrow(retriever, question, filters, history)
        rewritten, _ = retriever.rewrite(question, filters, history)
        searched, notes, applied = tuple(q.text for q in rewritten.queries), narrowed.notes, narrowed.filters
        context = assemble(_allowed(favour(intent, narrowed.chunks), filters), budget, hits=narrowed.hits)
    else:
        narrowed = None
        results = retriever.search(question, method, k if intent.label == "concept" else 2 * k, filters, history)
        searched, notes, applied = results.searched, results.notes, results.filters
        chunks = favour(intent, [result.chunk for result in results[:k]], _strong(results[k:], results))
        context = assemble(_allowed(chunks, filters), budget)
    prompt = build_prompt(with_history(question, history), context, intent.posture, asked)
    return Found(question, asked, applied, method, k, intent, searched, context, prompt, tuple(notes), tuple(history),
                 qid, narrowed)


def ask_stream(
    question: str, retriever: Retriever, answerer: Answerer, *, cache: AnswerCache | None = None, **options: Any
) -> Iterator[Found | str | Asked]:
    """What was found, the pieces of the answer's text (an empty one: still at work), and the checked answer last.

    `options` are those of `find`. Raises LabError. The pieces joined are `Asked.answer.answer`.
    """
    generation = retriever.store.generation()
    found = find(question, retriever, **options)
    yield found
    key = AnswerCache.key(found, answerer, generation) if cache is not None else None
    answer = cache.get(key) if cache is not None else None
    cached = answer is not None
    if answer is not None:
        yield from in_words(answer.answer)
    else:
        pieces = answerer.stream(found.self_contained, found.context, prompt=found.prompt, intent=found.intent)
        with closing(pieces):
            for piece in pieces:
                if isinstance(piece, Answer):
                    answer = piece
                else:
                    yield piece
        if answer is None:
            raise LabError(f"The answerer {answerer.name} stopped before it gave an answer; ask again.")
        if cache is not None:
            cache.put(key, answer)
    checked = check_answer(answer, found.context, retriever.store, found.filters)
    yield Asked(found, checked, cached=cached)


def ask(question: str, retriever: Retriever, answerer: Answerer, **options: Any) -> Asked:
    """`ask_stream` read to its end."""
    *_, last = ask_stream(question, retriever, answerer, **options)
    return last


def with_history(question: str, history: Sequence[str]) -> str:
    return f"{history[-1]} {question}" if history else question


def _strong(lower: Sequence[Result], results: Sequence[Result]) -> list[Chunk]:
    """The passages below the best k that match strongly."""
    best = {result.scored_by: max(other.score for other in results if other.scored_by == result.scored_by)
            for result in lower}
    return [
        result.chunk for result in lower
        if (result.score > _STRONG_LOGIT if result.scored_by == "reranker"
            else result.score >= _STRONG_SHARE[result.scored_by] * best[result.scored_by])
    ]


def _allowed(chunks: Sequence[Chunk], filters: Filters) -> list[Chunk]:
    """The search has filtered already; a passage for staff must not reach a prompt even if it had not."""
    return [chunk for chunk in chunks if chunk.audience == "public" or filters.audience == "staff"]
