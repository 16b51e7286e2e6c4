"""What a request holds and costs: the best passages against the whole collection, for any table of prices.

Tokens are estimated (see context.py), so the comparison needs no model and no key. `measure` counts what the questions
of the corpus really send; `whole_collection` what each request would hold if nothing were searched: every passage in
the index, text for staff only and versions no longer in force among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from labsupport.pipeline import LabError
from labsupport.pipeline.context import DEFAULT_BUDGET, SEPARATOR, assemble, estimate_tokens, format_passage
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.evaluation import filters_of
from labsupport.pipeline.index import Index
from labsupport.pipeline.search import Retriever

QUESTIONS_PER_DAY = 45

# Measured by the source course on hosted chat models and quoted as such: not our measurement, not our corpus.
HOSTED_REFERENCE_RUN = {
    "questions_per_day": 45,
    "input_tokens_median": {"five passages": 905, "whole collection": 17850},
    "correct_of_20": {
        "chat-small": {"five passages": 16, "whole collection": 19},
        "chat-strong": {"five passages": 15, "whole collection": 18},
    },
    "usd_per_day": {
        "chat-small": {"five passages": 0.008, "whole collection": 0.09},
        "chat-strong": {"five passages": 0.14, "whole collection": 1.70},
    },
}


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens in and out."""

    model: str
    input_per_million: float
    output_per_million: float

    def __post_init__(self) -> None:
        for value in (self.input_per_million, self.output_per_million):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise LabError(f"The price {value!r} of {self.model} is no amount in dollars per million tokens.")

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """US dollars for one request."""
        return (tokens_in * self.input_per_million + tokens_out * self.output_per_million) / 1_000_000


@dataclass(frozen=True)
class Cost:
    """What one way of asking costs with one model."""

    model: str
    sent: str  # "five passages", "whole collection", or what the caller calls it
    tokens_in: float
    tokens_out: float
    usd_per_question: float
    usd_per_day: float


def price_table(rows: Iterable[Mapping[str, object]]) -> list[Price]:
    """Prices from rows with the columns model, input_per_million, output_per_million (numbers, or text as in a CSV)."""
    prices = []
    for number, row in enumerate(rows, start=1):
        try:
            prices.append(Price(str(row["model"]), float(row["input_per_million"]), float(row["output_per_million"])))
        except (KeyError, TypeError, ValueError) as error:
            raise LabError(
                f"Row {number} of the price table cannot be read ({error}); it needs model, input_per_million and "
                "output_per_million, the last two in US dollars."
            ) from error
    return prices


def costs(tokens_in: Mapping[str, float], prices: Iterable[Price], tokens_out: float = 0,
          questions_per_day: float = QUESTIONS_PER_DAY) -> list[Cost]:
    """For every price, what each way of asking costs. `tokens_in`: name of the way -> tokens one question sends."""
    if min([tokens_out, questions_per_day, *tokens_in.values()]) < 0:
        raise LabError("Tokens and questions per day cannot be negative.")
    return [
        Cost(price.model, sent, tokens, tokens_out, price.of(tokens, tokens_out),
             price.of(tokens, tokens_out) * questions_per_day)
        for price in prices for sent, tokens in tokens_in.items()
    ]


@dataclass(frozen=True)
class Measured:
    """Estimated tokens of the context of each question, and how many questions lost a passage, and to what."""

    k: int
    tokens: dict[str, int]  # by question id
    lost_near_duplicate: tuple[str, ...]
    lost_to_budget: tuple[str, ...]

    @property
    def median(self) -> float:
        return median(self.tokens.values())

    @property
    def maximum(self) -> int:
        return max(self.tokens.values())


def measure(retriever: Retriever, questions: Sequence[Question], k: int = 5, method: str = "rerank",
            budget: int = DEFAULT_BUDGET) -> Measured:
    """Search and assemble for every question, as its asker would."""
    tokens, duplicates, over = {}, [], []
    for question in questions:
        results = retriever.search(question.text, method, k, filters_of(question), question.history)
        context = assemble(results.chunks, budget)
        tokens[question.qid] = context.tokens
        reasons = [reason for _, reason in context.dropped]
        if any(reason.startswith("near-duplicate") for reason in reasons):
            duplicates.append(question.qid)
        if "over budget" in reasons:
            over.append(question.qid)
    return Measured(k, tokens, tuple(duplicates), tuple(over))


@dataclass(frozen=True)
class Collection:
    """What a request holds that sends everything."""

    passages: int
    tokens: int
    staff_passages: int
    not_in_force: int  # passages of versions not in force on the day of asking
    several_versions: tuple[str, ...]  # documents of which it holds more than one version


def whole_collection(index: Index, as_of: str) -> Collection:
    """The whole-collection shortcut, measured: one request with every passage, each under its header."""
    chunks = index.all_chunks()
    text = SEPARATOR.join(format_passage(chunk) for chunk in chunks)
    ended = [c for c in chunks if c.effective_from > as_of or (c.effective_to and c.effective_to < as_of)]
    versions: dict[str, set[str]] = {}
    for chunk in chunks:
        versions.setdefault(chunk.doc_id, set()).add(chunk.version)
    return Collection(
        len(chunks), estimate_tokens(text), sum(chunk.audience == "staff" for chunk in chunks), len(ended),
        tuple(sorted(doc_id for doc_id, held in versions.items() if len(held) > 1)),
    )
