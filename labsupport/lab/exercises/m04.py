"""Module 4, the context budget: estimating, choosing within a budget, near-duplicates, and what must not be merged."""

from dataclasses import replace
from functools import lru_cache
from numbers import Real

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare, short
from labsupport.pipeline.context import assemble, estimate_tokens, format_passage
from labsupport.pipeline.costs import QUESTIONS_PER_DAY, whole_collection

NAMES = """
from labsupport import assemble, estimate_tokens, format_passage, jaccard
from labsupport.pipeline.costs import whole_collection
results = lab.search("Q30")
passages = results.chunks
everything = whole_collection(lab.store, "2026-10-09")
"""


def q30(lab) -> list:
    """The five passages of question 30, in the order of the search."""
    return _q30(lab, lab.store.generation())


@lru_cache(maxsize=1)
def _q30(lab, generation) -> list:
    return lab.search("Q30").chunks


def kept_ranks(lab, budget: int) -> list[int]:
    passages = q30(lab)
    kept = assemble(passages, budget=budget).ids
    return [rank for rank, passage in enumerate(passages, start=1) if passage.chunk_id in kept]


def check_estimate(estimate, lab) -> Wrong | None:
    for text in ("", "a", "mower", "a" * 8, *(format_passage(passage) for passage in q30(lab))):
        seen, expected = estimate(text), estimate_tokens(text)
        if compare(seen, expected):
            return Wrong(f"{seen!r} for a text of {len(text)} characters", str(expected))
    return None


def check_smallest_budget(budget, lab) -> Wrong | None:
    if isinstance(budget, bool) or not isinstance(budget, Real) or budget != int(budget):
        note = "Write it without quotation marks." if isinstance(budget, str) else ""
        return Wrong(short(budget), "a whole number of tokens", note)
    budget = int(budget)
    if kept_ranks(lab, budget)[:2] != [1, 2]:
        return Wrong(f"with {budget} tokens passages {kept_ranks(lab, budget)} are kept", "passages 1 and 2 among them")
    if kept_ranks(lab, budget - 1)[:2] == [1, 2]:
        return Wrong(f"{budget}", "less", f"With {budget - 1} tokens both are still kept.")
    return None


def check_choose(choose, lab) -> Wrong | None:
    """Against the same rule written out, on sizes that tell the usual slips apart."""
    cases = [([104, 314, 92, 107], 300), ([104, 314, 92, 107], 303), ([104, 314, 92, 107], 617),
             ([40, 30, 30], 70), ([50], 50), ([50], 49), ([], 100), ([5, 5, 5], 12)]
    for sizes, budget in cases:
        kept, used = [], 0
        for rank, size in enumerate(sizes, start=1):
            if used + size <= budget:
                kept.append(rank)
                used += size
        seen = choose(list(sizes), budget)
        if compare(seen, kept):
            return Wrong(f"{seen} for sizes {sizes} and a budget of {budget}", str(kept))
    return None


def check_merge_rule(may_drop, lab) -> Wrong | None:
    """Two versions of one page must both stay; the same text in the guides of two machines need not."""
    windows = [c for c in lab.store.chunks("returns-policy") if c.section == "Return window"]
    guides = ("product-care-pw2200", "product-care-pw2400")
    storage = [c for name in guides for c in lab.store.chunks(name) if c.section == "Winter storage"]
    pump, table = q30(lab)[:2]
    cases = [
        (windows, False, "the two versions of the return window"),
        (storage, True, "winter storage in the guides of two machines"),
        ([storage[0], replace(storage[1], title=storage[0].title)], True, "two documents that have one title"),
        ([windows[0], replace(windows[1], title="Returns")], False, "two versions of which one has another title"),
        ([pump, table], False, "the pump procedure and the warranty table, which share few words"),
    ]
    for (a, b), expected, what in cases:
        seen = bool(may_drop(a, b))
        if seen is not expected:
            return Wrong(f"{seen} for {what}", str(expected))
    return None


def check_saving(saved, lab) -> Wrong | None:
    sent = assemble(q30(lab), budget=1500).tokens
    whole = whole_collection(lab.store, lab.question("Q30").as_of).tokens
    return compare(saved, QUESTIONS_PER_DAY * (whole - sent))


def times_as_many(lab) -> int:
    whole = whole_collection(lab.store, lab.question("Q30").as_of).tokens
    return round(whole / assemble(q30(lab), budget=1500).tokens)


EXERCISES = (
    Exercise(
        id="4.1",
        title="Estimate tokens",
        prompt="The estimate is one token for every four characters, rounded up. A text of 5 characters counts "
        "2 tokens, an empty text 0. Put an expression in the place of `____`.",
        stub='def estimate(text):\n    return ____\n\ncheck("4.1", estimate)',
        solution="-(-len(text) // 4)",
        wrong=("len(text) // 4", "round(len(text) / 4)", "len(text.split())", "len(text) // 4 + 1"),
        hints=(
            "`len(text)` is the number of characters. `math.ceil(…)` rounds up; write `import math` in a line above. "
            "Without it: `//` rounds down, and what happens to a negative number then?",
            "`-5 // 4` is -2, because -1.25 is rounded down. Turn the sign twice.",
        ),
        explain="`//` rounds down. Turned to the negative and back, that is rounding up.",
        revisit="A worked example",
        check=check_estimate,
    ),
    Exercise(
        id="4.2",
        title="The smallest budget for both answers",
        prompt="Passages 1 and 2 both hold the answer to Q30. What is the smallest budget that keeps both? Work it out "
        "from the token counts in the worked example; the slider has no stop there.",
        stub='smallest = ____\ncheck("4.2", smallest)',
        solution="418",
        wrong=("314", "417", "617", "1500", '"418"'),
        hints=(
            "They are tried first, in this order, so nothing else takes room before them.",
            "Add the estimated tokens of passage 1 and of passage 2.",
        ),
        explain="104 and 314 make 418. With 417 the table is skipped, and shorter passages below it move in.",
        revisit="A worked example",
        check=check_smallest_budget,
        setup=NAMES,
    ),
    Exercise(
        id="4.3",
        title="Skip and try the next",
        prompt="Here is the second rule by itself: `sizes` are the tokens of the passages in search order. Which "
        "condition keeps a passage? Put it in the place of `____`.",
        stub="def choose(sizes, budget):\n    kept, used = [], 0\n    for rank, size in enumerate(sizes, start=1):\n"
        "        if ____:\n            kept.append(rank)\n            used = used + size\n    return kept\n\n"
        'check("4.3", choose)',
        solution="used + size <= budget",
        wrong=("size <= budget", "used + size < budget", "used <= budget", "used < budget", "True"),
        hints=(
            "What would the total be if this passage came in too?",
            "A total that is exactly the budget is still within it.",
        ),
        explain="The loop goes on after a passage that does not fit, so a shorter one further down still has its "
        "chance. There is no `break`.",
        revisit="A worked example",
        check=check_choose,
    ),
    Exercise(
        id="4.4",
        title="What may be dropped",
        prompt="Two passages with nearly the same words may stand in for each other, but not when they are two "
        "versions of one document. Complete the rule.",
        stub="def may_drop(a, b):\n    same_words = jaccard(a.body, b.body) >= 0.9\n    return same_words and ____\n\n"
        'check("4.4", may_drop)',
        solution="a.doc_id != b.doc_id",
        wrong=("True", "a.chunk_id != b.chunk_id", "a.version != b.version", "a.title == b.title", "a.title != b.title",
               "False"),
        hints=(
            "Which field of a passage is the same in version 3 and version 4 of the returns policy?",
            "Two versions share their `doc_id`. The guides of two machines do not.",
        ),
        explain="Versions of one document share its id. Only between different documents do the same words mean that "
        "nothing is lost.",
        revisit="Three rules",
        check=check_merge_rule,
        setup=NAMES,
    ),
    Exercise(
        id="4.5",
        title="What a day saves",
        prompt="Support asks 45 questions a day. Suppose each sends what Q30 keeps at 1,500 tokens instead of the "
        "whole collection. How many estimated tokens does that save in a day? Use `sent` and `whole`.",
        stub="sent = assemble(passages, budget=1500).tokens\nwhole = everything.tokens\n"
        'saved = ____\ncheck("4.5", saved)',
        solution="45 * (whole - sent)",
        wrong=("whole - sent", "45 * whole", "45 * sent", "45 * (sent - whole)"),
        hints=("First what one question saves, then 45 of them.", "One question saves `whole - sent`."),
        explain="Every question pays for all that is sent with it, so the difference counts 45 times a day.",
        revisit="Five passages or everything",
        check=check_saving,
        setup=NAMES,
    ),
)

PREDICTIONS = (
    Prediction(
        id="4.p1",
        prompt="The budget is 300 tokens. How many of the five passages are kept?",
        stub='predict("4.p1", ____)',
        solution="2",
        outcome=lambda lab: len(kept_ranks(lab, 300)),
        show=lambda kept: f"{kept} of 5 passages",
        explain="Passage 1 takes 104. Passage 2 needs 314 and is skipped. Passage 3 fits: 196 so far. Passage 4 says "
        "the same as passage 3 about another machine. Passage 5 needs 107, and only 104 are left.",
    ),
    Prediction(
        id="4.p2",
        prompt="Now 400 tokens instead of 300. Is passage 2, the warranty table, kept? Guess `True` or `False`.",
        stub='predict("4.p2", ____)',
        solution="False",
        outcome=lambda lab: 2 in kept_ranks(lab, 400),
        explain="The table needs 104 + 314 = 418. The hundred tokens more bring in passage 5, which holds no answer: a "
        "bigger budget is not always a better context.",
    ),
    Prediction(
        id="4.p3",
        prompt="For Q30, 617 tokens are sent at a budget of 1,500. All 36 documents would be sent instead: how many "
        "times as many tokens is that? Guess a whole number.",
        stub='predict("4.p3", ____)',
        solution="34",
        outcome=times_as_many,
        show=lambda times: f"about {times} times",
        explain="The documents make 21,266 tokens. Below we take the median of all 67 questions instead of Q30, 587 "
        "tokens; then it is 36 times.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="4.k1",
        question="A passage is too long for what is left of the budget. What happens next?",
        choices=(
            Choice("a", "Nothing more is taken: the budget is used up.",
                   "It is not used up. A short passage further down may still fit, so the next ones are tried."),
            Choice("b", "The passage is skipped and the next one is tried.",
                   "That is how passages 1, 3 and 5 come together at 400 tokens.", right=True),
            Choice("c", "The passage is cut to fit.",
                   "A cut could fall just before the sentence that answers. A passage is sent whole or not at all."),
        ),
    ),
    Knowledge(
        id="4.k2",
        question="Two passages share 24 of their 26 distinct words. When is the second one dropped?",
        choices=(
            Choice("a", "Always: 24 of 26 is above 0.9.",
                   "It is above 0.9. But they may be versions 3 and 4 of one policy: 30 days in one, 45 in the other."),
            Choice("b", "Never: they are not the same.",
                   "If two documents say the same thing, a second copy costs tokens and adds nothing."),
            Choice("c", "When they come from different documents.",
                   "Between versions of one document the difference is the point, so both stay.", right=True),
        ),
    ),
    Knowledge(
        id="4.k3",
        question="Our collection would fit into many models. What speaks against sending all of it each time?",
        choices=(
            Choice("a", "Models always answer worse from more text.",
                   "Not always. In the hosted reference run more answers were correct with the whole collection."),
            Choice("b", "Nobody chose what is allowed and in force, and each question pays for all of it.",
                   "The request would hold staff text and both return policies, and it grows with the collection.",
                   right=True),
            Choice("c", "The search would not have to run, so citations would be impossible.",
                   "Each passage would still carry its id, and a citation could still be checked."),
        ),
    ),
)

MODULE = Module(
    number="04", title="Context budget", exercises=EXERCISES, predictions=PREDICTIONS, knowledge=KNOWLEDGE
)
