"""The offline answerer: the sentences a reranker rates highest, word for word, each with the passage it stands in.

It invents nothing, for every claim is copied. What it cannot do is judge: it abstains when even its best sentence rates
below a threshold. Thresholds belong to a model, so `extractive.json` keeps them under the model's name, with the
questions they were tuned on (`benchmarks/tune_extractive.py`). What the reranker was not trained to read, a French
question or passage, is rated as the first stage of the search does: by embedding and by the words shared.

A sentence is said as soon as it is certain, before the next one is looked for; `rating.py` tells when that is.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import NOTHING, Answer, Claim, StreamingAnswerer, in_words, timed
from labsupport.pipeline.context import Context, estimate_tokens
from labsupport.pipeline.embedding import load_embedder
from labsupport.pipeline.intents import Intent
from labsupport.pipeline.prompting import Prompt
from labsupport.pipeline.rating import (
    MOST_SENTENCES,
    Rated,
    Thresholds,
    Unread,
    by_first_stage,
    by_reranker,
    choose,
    is_new,
)
from labsupport.pipeline.reranking import load_reranker
from labsupport.pipeline.rewriting import Query, rewrite
from labsupport.pipeline.sentences import Sentence, pictures, sentences
from labsupport.pipeline.terms import language_of

# A sentence that speaks to a program instead of a reader. Leaving it out keeps answers readable; it is no protection,
# which is that passages are data and every claim is checked.
_TO_A_PROGRAM = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|prompts?|rules|passages)\b"
    r"|\b(?:AI|chat|language) (?:assistants?|models?|tools?|bots?)\b",
    re.IGNORECASE,
)


@cache
def thresholds(model: str) -> Thresholds:
    """The thresholds tuned for `model`. LabError when there are none."""
    path = Path(__file__).with_name("extractive.json")
    known = json.loads(path.read_text(encoding="utf-8"))
    if model not in known:
        raise LabError(
            f"The extractive answerer has no thresholds for {model!r}, only for {', '.join(sorted(known))}; "
            f"measure them with: python benchmarks/tune_extractive.py {model}"
        )
    return Thresholds(**known[model])


class ExtractiveAnswerer(StreamingAnswerer):
    """Answers with one to three sentences of the passages, or abstains. Needs no key and no network."""

    name = "extractive"

    def __init__(self, reranker: Any = None, embedder: Any = None) -> None:
        self.reranker = reranker or load_reranker()
        self._embedder = embedder
        self.model = f"extractive, {self.reranker.name}"

    def stream(
        self, question: str, context: Context, *, prompt: Prompt | None = None, intent: Intent | None = None
    ) -> Iterator[str | Answer]:
        started = time.perf_counter()
        chosen: list[Rated] = []
        notes: list[str] = []

        def parts() -> Iterator[str]:
            # Each sentence is said before the next one is looked for.
            for rated in self._choose(question, context, notes):
                yield f" {rated.sentence.readable}" if chosen else rated.sentence.readable
                chosen.append(rated)
            if not chosen:
                yield NOTHING[language_of(question)]
            elif intent is not None and intent.posture == "pointing":
                yield from (f"\n\n{picture}" for picture in pictures(chosen[0].sentence.chunk)[:1])

        text = ""
        for piece in _in_words(parts()):
            text += piece
            yield piece
        claims = tuple(Claim(rated.sentence.text, (rated.sentence.chunk.chunk_id,)) for rated in chosen)
        sizes = {"tokens_in": estimate_tokens(question) + context.tokens, "tokens_out": estimate_tokens(text)}
        told = (*dict.fromkeys(notes), "tokens are estimates")
        yield timed(Answer(bool(chosen), text, claims, model=self.model, notes=told, **sizes), started)

    def select(self, question: str, context: Context) -> tuple[list[Rated], list[str]]:
        """The sentences to answer with, none to abstain, and notes on how they were rated."""
        notes: list[str] = []
        chosen = list(self._choose(question, context, notes))
        return chosen, list(dict.fromkeys(notes))

    def _choose(self, question: str, context: Context, notes: list[str]) -> Iterator[Rated]:
        """The sentences one by one, as soon as each is certain. `notes` grows on the way."""
        found = [one for chunk in context.kept for one in sentences(chunk)]
        wanted = [one for one in found if not _TO_A_PROGRAM.search(one.text)]
        if len(wanted) < len(found):
            notes.append(f"{len(found) - len(wanted)} sentence(s) left out that speak to a program, not to a reader")
        parts = rewrite(question).queries
        chosen: list[Rated] = []
        for part in parts:
            answered = False
            for rated in islice(self._choose_for(part, wanted, notes), MOST_SENTENCES + 1 - len(parts)):
                answered = True
                if is_new(rated, chosen):
                    chosen.append(rated)
                    yield rated
                if len(chosen) == MOST_SENTENCES:
                    return
            if not answered:
                notes.append(f"no passage answers: {part.text}")

    def _choose_for(self, query: Query, wanted: Sequence[Sentence], notes: list[str]) -> Iterator[Rated]:
        """The sentences for one part of the question. Passages in its own language go first, untranslated."""
        languages = set(self.reranker.languages)
        known = query.language in languages or bool(query.translated)
        readable = [one for one in wanted if known and one.chunk.language in languages]
        rest = [one for one in wanted if one not in readable]
        pools = [(pool, by_embedding) for pool, by_embedding in ((readable, False), (rest, True)) if pool]
        pools.sort(key=lambda pool: all(one.chunk.language != query.language for one in pool[0]))
        for pool, by_embedding in pools:
            if by_embedding:
                read = ", ".join(sorted(languages))
                notes.append(f"rated by words and {self.embedder.name}: the reranker reads {read} only")
            answered = False
            for rated in choose(self.unread(query, pool, by_embedding), self._limits(by_embedding)):
                answered = True
                yield rated
            if answered:
                return

    def unread(self, query: Query, wanted: Sequence[Sentence], by_embedding: bool = False) -> Iterator[Unread | Rated]:
        """`wanted`, passage by passage, to be rated by the reranker or as the first stage of the search does.

        A passage in the other language is rated against the translated question, where there is a translation.
        """
        limits, numbers = self._limits(by_embedding), count()
        for language in dict.fromkeys(one.chunk.language for one in wanted):
            asked = query.text if language == query.language else query.translated or query.text
            passages: dict[str, list[Sentence]] = {}
            for one in wanted:
                if one.chunk.language == language:
                    passages.setdefault(one.chunk.chunk_id, []).append(one)
            numbered = list(zip(numbers, passages.values(), strict=False))
            if by_embedding:
                yield from by_first_stage(self.embedder, limits, asked, numbered)
            else:
                yield from by_reranker(self.reranker, limits, asked, numbered)

    def _limits(self, by_embedding: bool) -> Thresholds:
        return thresholds(self.embedder.name if by_embedding else self.reranker.name)

    @property
    def embedder(self) -> Any:
        self._embedder = self._embedder or load_embedder()
        return self._embedder


def _in_words(parts: Iterable[str]) -> Iterator[str]:
    """`in_words` of the parts joined, as they come: the last word waits, for a space may belong to it."""
    rest = ""
    for part in parts:
        *whole, rest = [*in_words(rest + part)] or [""]
        yield from whole
    if rest:
        yield rest


def make_answerer(reranker: Any = None, embedder: Any = None, **_: Any) -> ExtractiveAnswerer:
    return ExtractiveAnswerer(reranker, embedder)
