"""The offline answerer: the sentences a reranker rates highest, word for word, each with the passage it stands in.

It invents nothing, for every claim is copied. What it cannot do is judge: it abstains when even its best sentence rates
below a threshold. Thresholds belong to a model, so `extractive.json` keeps them under the model's name, with the
questions they were tuned on (`benchmarks/tune_extractive.py`). What the reranker was not trained to read, a French
question or passage, is rated as the first stage of the search does: by embedding and by the words shared.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import NOTHING, Answer, Claim, StreamingAnswerer, in_words, timed
from labsupport.pipeline.context import Context, estimate_tokens, word_set
from labsupport.pipeline.embedding import fit_question, load_embedder
from labsupport.pipeline.intents import Intent
from labsupport.pipeline.prompting import Prompt
from labsupport.pipeline.reranking import load_reranker
from labsupport.pipeline.rewriting import Query, rewrite
from labsupport.pipeline.sentences import Sentence, pictures, sentences
from labsupport.pipeline.terms import content_words, fold, language_of, words

MOST_SENTENCES = 3
SAME_WORDS = 0.75  # a sentence this close to one already chosen says nothing new
_RULES = ("policy", "procedure")  # what sets a rule outranks what explains it
# A sentence that speaks to a program instead of a reader. Leaving it out keeps answers readable; it is no protection,
# which is that passages are data and every claim is checked.
_TO_A_PROGRAM = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|prompts?|rules|passages)\b"
    r"|\b(?:AI|chat|language) (?:assistants?|models?|tools?|bots?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Thresholds:
    """Logits for a reranker; for an embedding model the mean of cosine and share of words, -0.5 to 1.0."""

    abstain_below: float  # rating of the best sentence
    also_within: float  # further sentences rated at most this much below the best
    passage_weight: float  # share of the whole passage's rating in that of its sentences
    rule_bonus: float  # added to sentences of policies and procedures
    measured: str = ""


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


@dataclass(frozen=True)
class Rated:
    """A sentence and its rating by `model`."""

    sentence: Sentence
    score: float


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
        chosen, notes = self.select(question, context)
        if chosen:
            text = " ".join(rated.sentence.readable for rated in chosen)
            if intent is not None and intent.posture == "pointing":
                text = "\n\n".join([text, *pictures(chosen[0].sentence.chunk)[:1]])
        else:
            text = NOTHING[language_of(question)]
        yield from in_words(text)
        claims = tuple(Claim(rated.sentence.text, (rated.sentence.chunk.chunk_id,)) for rated in chosen)
        sizes = {"tokens_in": estimate_tokens(question) + context.tokens, "tokens_out": estimate_tokens(text)}
        answer = Answer(bool(chosen), text, claims, model=self.model, notes=(*notes, "tokens are estimates"), **sizes)
        yield timed(answer, started)

    def select(self, question: str, context: Context) -> tuple[list[Rated], list[str]]:
        """The sentences to answer with, none to abstain, and notes on how they were rated."""
        found = [one for chunk in context.kept for one in sentences(chunk)]
        wanted = [one for one in found if not _TO_A_PROGRAM.search(one.text)]
        notes = []
        if len(wanted) < len(found):
            notes.append(f"{len(found) - len(wanted)} sentence(s) left out that speak to a program, not to a reader")
        parts = rewrite(question).queries
        chosen: list[Rated] = []
        for part in parts:
            some = self._part(part, wanted, notes)
            if not some:
                notes.append(f"no passage answers: {part.text}")
            chosen = _without_repeats([*chosen, *some[: MOST_SENTENCES + 1 - len(parts)]])
        return chosen[:MOST_SENTENCES], list(dict.fromkeys(notes))

    def _part(self, query: Query, wanted: Sequence[Sentence], notes: list[str]) -> list[Rated]:
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
            limits = thresholds(self.embedder.name if by_embedding else self.reranker.name)
            if chosen := choose(self.rate(query, pool, by_embedding), limits):
                return chosen
        return []

    def rate(self, query: Query, wanted: Sequence[Sentence], by_embedding: bool = False) -> list[Rated]:
        """`wanted` rated by the reranker or as the first stage does, best first; equal ones in passage order.

        A passage in the other language is rated against the translated question, where there is a translation.
        """
        score = self._first_stage if by_embedding else self.reranker.score
        limits = thresholds(self.embedder.name if by_embedding else self.reranker.name)
        ratings = []
        for language in dict.fromkeys(one.chunk.language for one in wanted):
            asked = query.text if language == query.language else query.translated or query.text
            some = [one for one in wanted if one.chunk.language == language]
            chunks = list({one.chunk.chunk_id: one.chunk for one in some}.values())
            whole = dict(zip([chunk.chunk_id for chunk in chunks], score(asked, [c.text for c in chunks]), strict=True))
            for one, own in zip(some, score(asked, [one.in_context for one in some]), strict=True):
                share = limits.passage_weight
                mixed = (float(own) + share * float(whole[one.chunk.chunk_id])) / (1 + share)
                ratings.append(Rated(one, mixed + (limits.rule_bonus if one.chunk.doc_type in _RULES else 0.0)))
        return sorted(ratings, key=lambda rated: -rated.score)

    @property
    def embedder(self) -> Any:
        self._embedder = self._embedder or load_embedder()
        return self._embedder

    def _first_stage(self, question: str, texts: Sequence[str]) -> list[float]:
        """What a search goes by before reranking: the mean of the cosine and the share of the question's words."""
        asked, _ = fit_question(self.embedder, question)
        cosines = self.embedder.embed(texts) @ self.embedder.embed([asked], query=True)[0]
        wanted = {_stem(word) for word in content_words(question)}
        shares = [len(wanted & {_stem(word) for word in words(text)}) / max(1, len(wanted)) for text in texts]
        return [(float(cosine) + share) / 2 for cosine, share in zip(cosines, shares, strict=True)]


def choose(ratings: Sequence[Rated], limits: Thresholds, most: int = MOST_SENTENCES) -> list[Rated]:
    """The best sentence, and up to two more that rate nearly as well and say something else. [] to abstain."""
    if not ratings or ratings[0].score < limits.abstain_below:
        return []
    floor = max(ratings[0].score - limits.also_within, limits.abstain_below)
    return _without_repeats([rated for rated in ratings if rated.score >= floor])[:most]


def _without_repeats(ratings: Sequence[Rated]) -> list[Rated]:
    kept: list[Rated] = []
    for rated in ratings:
        if all(_overlap(rated.sentence.text, other.sentence.text) < SAME_WORDS for other in kept):
            kept.append(rated)
    return kept


def _stem(word: str) -> str:
    """The first five letters, accents off: "vend" and "vendez" still differ, "extension" and "extensions" do not."""
    return fold(word)[:5]


def _overlap(a: str, b: str) -> float:
    words_a, words_b = word_set(a), word_set(b)
    return len(words_a & words_b) / max(1, min(len(words_a), len(words_b)))


def make_answerer(reranker: Any = None, embedder: Any = None, **_: Any) -> ExtractiveAnswerer:
    return ExtractiveAnswerer(reranker, embedder)
