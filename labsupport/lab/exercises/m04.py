"""Module 4, the context budget: estimating, choosing within a budget, near-duplicates, and what must not be merged."""

from functools import lru_cache

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare
from labsupport.pipeline.context import assemble, estimate_tokens, format_passage

NAMES = """
from labsupport import assemble, estimate_tokens, format_passage, jaccard
passages = lab.search("Q30").chunks
context = assemble(passages, budget=300)
everything = lab.store.all_chunks()
"""
QUESTIONS_A_DAY = 45


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
    if isinstance(budget, bool) or not isinstance(budget, int):
        return Wrong(repr(budget), "a whole number of tokens")
    if kept_ranks(lab, budget)[:2] != [1, 2]:
        return Wrong(f"with {budget} tokens passages {kept_ranks(lab, budget)} are kept", "passages 1 and 2 among them")
    if kept_ranks(lab, budget - 1)[:2] == [1, 2]:
        return Wrong(f"{budget}", "less", f"With {budget - 1} tokens both are still kept.")
    return None


def check_twins(twins, lab) -> Wrong | None:
    dropped = assemble(q30(lab), budget=300).dropped
    return compare(twins, [chunk_id for chunk_id, reason in dropped if reason.startswith("near-duplicate")])


def check_merge_rule(may_drop, lab) -> Wrong | None:
    """Two versions of one page must both stay; the same text in the guides of two machines need not."""
    windows = [c for c in lab.store.chunks("returns-policy") if c.section == "Return window"]
    storage = [
        c
        for name in ("product-care-pw2200", "product-care-pw2400")
        for c in lab.store.chunks(name)
        if c.section == "Winter storage"
    ]
    pump, table = q30(lab)[:2]
    cases = [
        (windows, False, "the two versions of the return window"),
        (storage, True, "winter storage in the guides of two machines"),
        ([pump, table], False, "the pump procedure and the warranty table, which share few words"),
    ]
    for (a, b), expected, what in cases:
        seen = bool(may_drop(a, b))
        if seen is not expected:
            return Wrong(f"{seen} for {what}", str(expected))
    return None


def check_saving(saved, lab) -> Wrong | None:
    five = assemble(q30(lab), budget=1500).tokens
    whole = sum(estimate_tokens(format_passage(chunk)) for chunk in lab.store.all_chunks())
    return compare(saved, QUESTIONS_A_DAY * (whole - five))


MODULE = Module(
    number="04",
    title="Context budget",
    exercises=(
        Exercise(
            id="4.1",
            title="Estimate tokens",
            prompt="Our estimate is one token for every four characters, rounded up. Complete the function, without "
            "a loop. "
            "A text of 5 characters counts 2 tokens, an empty one 0.",
            stub='def estimate(text):\n    return ____\n\ncheck("4.1", estimate)',
            solution="-(-len(text) // 4)",
            wrong=("len(text) // 4", "round(len(text) / 4)", "len(text.split())", "len(text) // 4 + 1"),
            hints=(
                "`//` rounds down. Which number, rounded down, gives you the rounding up?",
                "Rounding -1.25 down gives -2. Turn the sign twice.",
            ),
            explain="-len(text) // 4 rounds down a negative number, so the sign turned back has been rounded up.",
            revisit="A worked example",
            check=check_estimate,
            setup=NAMES,
        ),
        Exercise(
            id="4.2",
            title="The smallest budget for both answers",
            prompt="Passages 1 and 2 both hold the answer to question 30. What is the smallest budget that keeps both? "
            "Work it out from the token counts of the table, then check.",
            stub='smallest = ____\ncheck("4.2", smallest)',
            solution="418",
            wrong=("314", "417", "617", "1500", '"418"'),
            hints=(
                "The two are tried first, in this order, so nothing else takes room before them.",
                "Add the estimated tokens of passage 1 and of passage 2.",
            ),
            explain="104 and 314 make 418. With 417 the second passage is skipped, and shorter ones below it move in.",
            revisit="A worked example",
            check=check_smallest_budget,
            setup=NAMES,
        ),
        Exercise(
            id="4.3",
            title="Dropped, and why",
            prompt="`context.dropped` holds pairs of a passage id and a reason. List the ids of those dropped as "
            "near-duplicates, not those that were too long.",
            stub='twins = [chunk_id for chunk_id, reason in context.dropped if ____]\ncheck("4.3", twins)',
            solution='reason.startswith("near-duplicate")',
            wrong=("True", 'reason == "over budget"', 'reason == "near-duplicate"'),
            hints=(
                "Print context.dropped and read the two kinds of reason.",
                "The reason names the twin, so compare only how it begins: reason.startswith(…).",
            ),
            explain="The reason says of which passage it is a near-duplicate, so that a reader can look at both.",
            revisit="A worked example",
            check=check_twins,
            setup=NAMES,
        ),
        Exercise(
            id="4.4",
            title="What may be merged",
            prompt="Two passages with nearly the same words may stand for one another, but never when they are two "
            "versions "
            "of one document: there the one word that differs is the answer. Complete the rule.",
            stub="def may_drop(a, b):\n    same_words = jaccard(a.body, b.body) >= 0.9\n    return same_words and "
            "____\n\n"
            'check("4.4", may_drop)',
            solution="a.doc_id != b.doc_id",
            wrong=("True", "a.chunk_id != b.chunk_id", "a.version != b.version", "a.title == b.title", "False"),
            hints=(
                "Which field of a passage is the same in version 3 and version 4 of the returns policy?",
                "Two versions share their doc_id; two machines' guides do not.",
            ),
            explain="Versions of one document share its id. Between different documents the same words say the same "
            "thing.",
            revisit="A common error",
            check=check_merge_rule,
            setup=NAMES,
        ),
        Exercise(
            id="4.5",
            title="What a day saves",
            prompt="Support asks 45 questions a day. How many estimated tokens a day does it save to send the "
            "passages that "
            "fit into 1,500 tokens for question 30, instead of the whole collection? Use `five` and `whole`.",
            stub="five = assemble(passages, budget=1500).tokens\n"
            "whole = sum(estimate_tokens(format_passage(chunk)) for chunk in everything)\n"
            'saved = ____\ncheck("4.5", saved)',
            solution="45 * (whole - five)",
            wrong=("whole - five", "45 * whole", "45 * five", "45 * (five - whole)"),
            hints=("First what one question saves, then 45 of them.",),
            explain="Every question pays for all that is sent with it, so the difference counts 45 times a day.",
            revisit="Explore",
            check=check_saving,
            setup=NAMES,
        ),
    ),
    predictions=(
        Prediction(
            id="4.p1",
            prompt="The search found five passages for question 30. How many of them are kept with a budget of 300 "
            "tokens?",
            stub='predict("4.p1", ____)',
            solution="2",
            outcome=lambda lab: len(kept_ranks(lab, 300)),
            show=lambda kept: f"{kept} of 5 passages",
            explain="The second passage, which holds the answer in a table, does not fit behind the first. The third "
            "does. The "
            "fourth says the same as the third for another machine, and the fifth is too long for what is left.",
        ),
        Prediction(
            id="4.p2",
            prompt="With 400 tokens instead of 300: is the table at rank 2, with the answer for customers, kept? "
            "True or False?",
            stub='predict("4.p2", ____)',
            solution="False",
            outcome=lambda lab: 2 in kept_ranks(lab, 400),
            explain="A hundred tokens more bring in the fifth passage, which holds no answer. The table needs 418 in "
            "all. More "
            "budget is not always a better context.",
        ),
    ),
    knowledge=(
        Knowledge(
            id="4.k1",
            question="A passage is too long for what is left of the budget. What happens next?",
            choices=(
                Choice(
                    "a",
                    "Nothing more is taken: the budget is used up.",
                    "A short passage further down may still fit, so the next ones are tried.",
                ),
                Choice(
                    "b",
                    "The passage is skipped and the next one is tried.",
                    "That is how passages 1, 3 and 5 come together at 400 tokens.",
                    right=True,
                ),
                Choice(
                    "c",
                    "The passage is cut to fit.",
                    "A passage cut in the middle may lose the very sentence that answers; it is left out as a whole.",
                ),
            ),
        ),
        Knowledge(
            id="4.k2",
            question="Two passages share 24 of their 26 distinct words. When is the second one dropped?",
            choices=(
                Choice(
                    "a",
                    "Always: 24 of 26 is above 0.9.",
                    "It is above 0.9, yet the two may be versions 3 and 4 of one policy: 30 days in one, 45 in the "
                    "other.",
                ),
                Choice(
                    "b",
                    "Never: they are not the same.",
                    "For guides of two machines that say the same, a second copy costs tokens and adds nothing.",
                ),
                Choice(
                    "c",
                    "When they come from different documents.",
                    "Between versions of one document the difference is the point, so both stay.",
                    right=True,
                ),
            ),
        ),
        Knowledge(
            id="4.k3",
            question="Why not send the whole collection with every question?",
            choices=(
                Choice(
                    "a",
                    "It would not fit into any model.",
                    "Our collection is small and would fit into many models. That is not the reason.",
                ),
                Choice(
                    "b",
                    "It would hold staff text and both return policies, and every question would pay for all of it.",
                    "Nobody chose what is allowed and in force, and the bill grows with the collection.",
                    right=True,
                ),
                Choice(
                    "c",
                    "Models always answer worse from more text.",
                    "Not always: in the hosted reference run the whole collection was answered from correctly more "
                    "often.",
                ),
            ),
        ),
    ),
)
