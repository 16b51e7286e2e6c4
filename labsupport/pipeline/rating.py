"""How a sentence is rated, and how the best ones are found without reading them all.

A sentence's rating mixes the score of its own words with that of the whole passage; one that sets a rule gets a bonus.
Models are slow, so nothing is read that cannot win: what has not been read yet has a bound, the rating it would have if
the model gave it the highest score there is. `choose` reads on where the bound is highest. As soon as a sentence rates
above every bound it is the best one, whatever the rest may hold, and can be said at once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any

from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.context import word_set
from labsupport.pipeline.embedding import fit_question
from labsupport.pipeline.reranking import Reranker
from labsupport.pipeline.sentences import Sentence
from labsupport.pipeline.terms import content_words, fold, words

MOST_SENTENCES = 3
SAME_WORDS = 0.75  # a sentence this close to one already chosen says nothing new
HIGHEST_COSINE = 1.000001  # 1, and what rounding may add
_RULES = ("policy", "procedure")  # what sets a rule outranks what explains it


@dataclass(frozen=True)
class Thresholds:
    """Logits for a reranker; for an embedding model the mean of cosine and share of words, -0.5 to 1.0."""

    abstain_below: float  # rating of the best sentence
    also_within: float  # further sentences rated at most this much below the best
    passage_weight: float  # share of the whole passage's rating in that of its sentences
    rule_bonus: float  # added to sentences of policies and procedures
    measured: str = ""
    highest: float = math.inf  # logit that no text gets more than; inf: not known, so every sentence is read
    highest_known_from: str = ""

    def rating(self, own: float, whole: float, chunk: Chunk) -> float:
        """Of a sentence of `chunk` that scores `own`, in a passage that scores `whole`."""
        mixed = (own + self.passage_weight * whole) / (1 + self.passage_weight)
        return mixed + (self.rule_bonus if chunk.doc_type in _RULES else 0.0)


@dataclass(frozen=True)
class Rated:
    """A sentence and its rating. `place`: number of the passage, start in it; of equal ratings the first place wins."""

    sentence: Sentence
    score: float
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Unread:
    """Sentences not rated yet, none of them above `bound`; `read` takes the next step towards their ratings."""

    bound: float
    read: Callable[[], Iterable[Unread | Rated]]


def choose(candidates: Iterable[Unread | Rated], limits: Thresholds, most: int = MOST_SENTENCES) -> Iterator[Rated]:
    """The best sentence, then up to two more that rate nearly as well and say something else. None to abstain.

    Each comes as soon as it is certain. What cannot be chosen any more stays unread.
    """
    numbers = count()
    waiting: list[tuple] = []

    def wait(some: Iterable[Unread | Rated]) -> None:
        for one in some:
            # At equal heights the unread comes first: an equal sentence with an earlier place may be in there.
            key = (-one.bound, 0, (0, 0)) if isinstance(one, Unread) else (-one.score, 1, one.place)
            heapq.heappush(waiting, (*key, next(numbers), one))

    wait(candidates)
    floor, chosen = limits.abstain_below, []
    while waiting and len(chosen) < most and -waiting[0][0] >= floor:
        one = heapq.heappop(waiting)[-1]
        if isinstance(one, Unread):
            wait(one.read())
        elif is_new(one, chosen):
            floor = floor if chosen else max(floor, one.score - limits.also_within)
            chosen.append(one)
            yield one


def is_new(rated: Rated, others: Sequence[Rated]) -> bool:
    """Whether it says something that none of `others` says."""
    return all(_overlap(rated.sentence.text, other.sentence.text) < SAME_WORDS for other in others)


def _overlap(a: str, b: str) -> float:
    words_a, words_b = word_set(a), word_set(b)
    return len(words_a & words_b) / max(1, min(len(words_a), len(words_b)))


Passages = Sequence[tuple[int, Sequence[Sentence]]]  # the number of each, and those of its sentences that may be chosen


def by_reranker(reranker: Reranker, limits: Thresholds, question: str, passages: Passages) -> Iterator[Unread]:
    """One step for each passage: all its sentences. The search has just scored the passages themselves."""

    def read(number: int, some: Sequence[Sentence], whole: float) -> Iterator[Rated]:
        for one, own in zip(some, reranker.score(question, [one.in_context for one in some]), strict=True):
            yield Rated(one, limits.rating(float(own), whole, one.chunk), (number, one.start))

    chunks = [some[0].chunk for _, some in passages]
    wholes = reranker.score(question, [chunk.text for chunk in chunks])
    for (number, some), chunk, whole in zip(passages, chunks, map(float, wholes), strict=True):
        yield Unread(limits.rating(limits.highest, whole, chunk), partial(read, number, some, whole))


def by_first_stage(embedder: Any, limits: Thresholds, question: str, passages: Passages) -> Iterator[Unread]:
    """Two steps: the passage, then each of its sentences. The words shared are a bound before anything is embedded."""
    scorer = FirstStage(embedder, question)

    def bound(text: str) -> float:
        return scorer.mean(HIGHEST_COSINE, text)

    def read(number: int, some: Sequence[Sentence]) -> Iterator[Unread]:
        whole = scorer.score(some[0].chunk.text)
        for one in some:
            highest = limits.rating(bound(one.in_context), whole, one.chunk)
            yield Unread(highest, partial(read_one, number, one, whole))

    def read_one(number: int, one: Sentence, whole: float) -> Iterator[Rated]:
        yield Rated(one, limits.rating(scorer.score(one.in_context), whole, one.chunk), (number, one.start))

    for number, some in passages:
        chunk, own = some[0].chunk, max(bound(one.in_context) for one in some)
        yield Unread(limits.rating(own, bound(chunk.text), chunk), partial(read, number, some))


class FirstStage:
    """What a search goes by before reranking: the mean of the cosine and the share of the question's words."""

    def __init__(self, embedder: Any, question: str) -> None:
        self.embedder, self.question = embedder, question
        self._wanted = {_stem(word) for word in content_words(question)}

    @cached_property
    def _vector(self) -> Any:
        asked, _ = fit_question(self.embedder, self.question)
        return self.embedder.embed([asked], query=True)[0]

    def score(self, text: str) -> float:
        return self.mean(float(self.embedder.embed([text])[0] @ self._vector), text)

    def mean(self, cosine: float, text: str) -> float:
        share = len(self._wanted & {_stem(word) for word in words(text)}) / max(1, len(self._wanted))
        return (cosine + share) / 2


def _stem(word: str) -> str:
    """The first five letters, accents off: "vend" and "vendez" still differ, "extension" and "extensions" do not."""
    return fold(word)[:5]
