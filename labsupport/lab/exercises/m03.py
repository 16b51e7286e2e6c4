"""Module 3, search: ranks instead of scores, ties, recall and reciprocal rank, filters before the cut."""

from functools import lru_cache

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare, short
from labsupport.lab.panels.filters import hidden_because
from labsupport.pipeline.evaluation import Outcome, filters_of
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import fuse

ANY = Filters(as_of=None, audience="staff")


def outcome_of(ranks: list) -> Outcome:
    return Outcome(question=None, method="", ranks=tuple(ranks), seconds=0.0)


RANKS = ([1], [None], [5, None], [None, 2], [3, 3], [6, 1, None], [10, 4, 5, None])


def check_rrf(rrf, lab) -> Wrong | None:
    for ranks in ([1, 1], [10, 7], [3, None], [None, 1], [50, 20], [None, None], [1, 2, 4]):
        lists = [[(f"other{n}", 0.0) for n in range(rank - 1)] + [("this", 0.0)] if rank else [] for rank in ranks]
        expected = dict(fuse(lists)).get("this", 0.0)
        seen = rrf(list(ranks))
        if compare(seen, expected):
            return Wrong(f"{short(seen)} for the ranks {ranks}", f"{expected!r}")
    return None


def check_order(order, lab) -> Wrong | None:
    cases = [
        {"b": 2.0, "a": 1.0, "c": 3.0},
        {"50f5713033a7": 13.8, "08705a17f766": 13.8, "ff8235f48619": 13.9},
        {"c": 1.0, "b": 1.0, "a": 1.0, "d": 0.5},
    ]
    for scores in cases:
        expected = [one for one, _ in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]
        seen = order(dict(scores))
        if compare(seen, expected):
            return Wrong(f"{seen} for the scores {scores}", str(expected))
    return None


def check_recall(recall, lab) -> Wrong | None:
    for ranks in RANKS:
        for k in (1, 5, 10):
            seen, expected = recall(list(ranks), k), outcome_of(ranks).recall(k)
            if compare(seen, expected):
                return Wrong(f"{short(seen)} for ranks {ranks} and k = {k}", f"{expected!r}")
    return None


def check_reciprocal(reciprocal_rank, lab) -> Wrong | None:
    for ranks in RANKS:
        seen, expected = reciprocal_rank(list(ranks)), outcome_of(ranks).reciprocal_rank
        if compare(seen, expected):
            return Wrong(f"{short(seen)} for the ranks {ranks}", f"{expected!r}")
    return None


def check_best(best, lab) -> Wrong | None:
    cases = [
        (["s1", "s2", "p3", "s3", "p1", "p2"], {"p1", "p2", "p3"}, 2),
        (["s1", "s2", "p1"], {"p1"}, 2),
        (["p1", "p2", "p3"], {"p1", "p2", "p3"}, 2),
        (["s1", "s2"], set(), 5),
        ([f"s{n}" for n in range(1, 120)] + ["p1", "p2"], {"p1", "p2"}, 1),  # the whole list is read, however long
    ]
    for ranked, allowed, k in cases:
        expected = [one for one in ranked if one in allowed][:k]
        seen = best(list(ranked), set(allowed), k)
        if compare(seen, expected):
            shown = ranked if len(ranked) < 10 else f"{len(ranked)} ids"
            asked = f"{shown}, of which {sorted(allowed)} are allowed, and k = {k}"
            return Wrong(f"{short(seen)} for {asked}", str(expected))
    return None


def rank_of_the_table(lab, method: str) -> int | None:
    return _rank_of_the_table(lab, lab.store.generation(), method)


@lru_cache(maxsize=4)
def _rank_of_the_table(lab, generation, method: str) -> int | None:
    """Question 30: at which rank the warranty table of the policy stands."""
    found = lab.search("Q30", method, k=10)
    return next((one.rank for one in found if one.chunk.chunk_id == "d9a5bd8ea531"), None)


def left_of_five(lab) -> int:
    question = lab.question("Q34")
    five = lab.retriever.search(question.text, "dense", 5, ANY, rewriting=False)
    return sum(not hidden_because(chunk, filters_of(question)) for chunk in five.chunks)



EXERCISES = (
    Exercise(
        id="3.1",
        title="Fuse by rank",
        prompt="Reciprocal rank fusion by hand. `ranks` holds the places of one passage in the lists, from 1; `None` "
        "where a list does not have it. Each place adds 1 / (60 + rank). What is the sum? Do not round.",
        stub='def rrf(ranks):\n    return ____\n\ncheck("3.1", rrf)',
        solution="sum(1 / (60 + rank) for rank in ranks if rank is not None)",
        wrong=(
            "sum(1 / (60 + rank) for rank in ranks)",
            "sum(1 / rank for rank in ranks if rank is not None)",
            "max(1 / (60 + rank) for rank in ranks if rank is not None)",
            "1 / (60 + sum(rank for rank in ranks if rank is not None))",
            "sum(60 + rank for rank in ranks if rank is not None)",
        ),
        hints=("`sum(… for rank in ranks if …)` adds up what the condition lets through.",
               "A list that does not have the passage adds nothing."),
        explain="Two good places beat one excellent place: twice rank 10 gives 0.0286, once rank 1 gives 0.0164.",
        revisit="Hybrid",
        check=check_rrf,
    ),
    Exercise(
        id="3.2",
        title="An order that repeats",
        prompt="`scores` maps ids to scores. The highest score comes first; where two are equal, the id that comes "
        "first in the alphabet, digits before letters. Each `pair` is (id, score). Which key sorts this way?",
        stub="def order(scores):\n    best = sorted(scores.items(), key=lambda pair: ____)\n"
        '    return [one for one, score in best]\n\ncheck("3.2", order)',
        solution="(-pair[1], pair[0])",
        wrong=("-pair[1]", "pair[1]", "(pair[1], pair[0])", "(pair[0], -pair[1])", "pair[0]"),
        hints=("A key may be a tuple: the second entry decides where the first ones are equal.",
               "`sorted` puts the smallest first. A minus sign turns the scores round."),
        explain="With `-pair[1]` alone, equals stay in the order in which they came, and that may differ from one "
        "index to the next.",
        revisit="Words: what BM25 is good at",
        check=check_order,
    ),
    Exercise(
        id="3.3",
        title="Recall at k",
        prompt="`ranks` holds, for each fact of a question, the rank of the passage that proves it, or `None` if it "
        "was not found. Which facts count as found among the first `k`?",
        stub="def recall(ranks, k):\n    found = [rank for rank in ranks if ____]\n"
        '    return len(found) / len(ranks)\n\ncheck("3.3", recall)',
        solution="rank is not None and rank <= k",
        wrong=("rank is not None", "rank is not None and rank < k", "rank <= k", "rank is None or rank <= k"),
        hints=("`None` cannot be compared with a number, so ask for it first.", "Rank 5 is among the first five."),
        explain="Two facts, one of them at rank 5 and one not found: recall@5 is 0.5, recall@1 is 0.",
        revisit="How good is it",
        check=check_recall,
    ),
    Exercise(
        id="3.4",
        title="Reciprocal rank",
        prompt="The reciprocal rank of a question is 1 / rank of the *first* passage that proves any of its facts, "
        "and 0 if none does. MRR is its mean over the questions. Again, `ranks` may hold `None`. Do not round.",
        stub='def reciprocal_rank(ranks):\n    return ____\n\ncheck("3.4", reciprocal_rank)',
        solution="max((1 / rank for rank in ranks if rank), default=0.0)",
        wrong=(
            "1 / min(ranks)",
            "1 / ranks[0] if ranks[0] else 0.0",
            "sum(1 / rank for rank in ranks if rank)",
            "sum(1 / rank for rank in ranks if rank) / len(ranks)",
            "1 / max(rank for rank in ranks if rank)",
        ),
        hints=("The best rank gives the largest 1 / rank.", "`max(…, default=0.0)` knows what to do with nothing."),
        explain="A single number per question, blind to all but the first hit. So it belongs beside recall, not in "
        "its place.",
        revisit="How good is it",
        check=check_reciprocal,
    ),
    Exercise(
        id="3.5",
        title="Filter, then cut",
        prompt="`ranked` holds ids, best first. `allowed` is the set of those the asker may see. Give the best `k` "
        "that are allowed.",
        stub='def best(ranked, allowed, k):\n    return ____\n\ncheck("3.5", best)',
        solution="[one for one in ranked if one in allowed][:k]",
        wrong=("[one for one in ranked[:k] if one in allowed]", "ranked[:k]",
               "[one for one in ranked if one in allowed]",
               "sorted(allowed)[:k]", "[one for one in ranked[:2 * k] if one in allowed][:k]",
               "[one for one in ranked[:50] if one in allowed][:k]"),
        hints=("Which comes first, the filter or the slice `[:k]`?",
               "First `[one for one in ranked if …]`, then `[:k]` behind the closing bracket."),
        explain="The other way round, each passage that is not allowed takes a place, and nobody gets it back.",
        revisit="Filters before ranking",
        check=check_best,
    ),
)

PREDICTIONS = (
    Prediction(
        id="3.p1",
        prompt="The warranty table is tenth by words and seventh by meaning. At which rank does it stand when both "
        "lists are fused?",
        stub='predict("3.p1", ____)',
        solution="5",
        outcome=lambda lab: rank_of_the_table(lab, "hybrid"),
        show=lambda rank: f"rank {rank}",
        explain="Better than in either list: of the eleven passages above it in one list, seven stand thirteenth or "
        "lower in the other.",
    ),
    Prediction(
        id="3.p2",
        prompt="Q30 again: the warranty table is fifth with hybrid. At which rank does it stand when the reranker has "
        "read the best twenty? Guess a rank.",
        stub='predict("3.p2", ____)',
        solution="2",
        outcome=lambda lab: rank_of_the_table(lab, "rerank"),
        show=lambda rank: f"rank {rank}",
        explain="It sees that a row of the table answers the question. Neither of the two lists could.",
    ),
    Prediction(
        id="3.p3",
        prompt="A customer asks Q34: which rules put an order on hold for a fraud check? We take the five nearest "
        "passages of all, and strike out what a customer must not see. How many of the five are left?",
        stub='predict("3.p3", ____)',
        solution="0",
        outcome=left_of_five,
        show=lambda left: f"{left} of 5",
        explain="All five are from one procedure for staff. The customer sees an empty page, though public passages "
        "exist.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="3.k1",
        question="A passage has BM25 14.6 for one question; another passage has 6.4 for another question. What "
        "follows?",
        choices=(
            Choice("a", "The first one answers its question better.",
                   "Nothing in the corpus answers the question of the 14.6. The 6.4 belongs to a passage that does."),
            Choice("b", "Nothing: scores rank passages within one question and one method.",
                   "Rare words give high scores. How loud the LM-400 is, no passage says.", right=True),
            Choice("c", "The first question is the longer one.",
                   "More words can give more points, but one rare word does it as well."),
        ),
    ),
    Knowledge(
        id="3.k2",
        question="Why does the reranker read only the best twenty of hybrid, and not all 185 passages?",
        choices=(
            Choice("a", "It reads each pair of question and passage anew, and that takes time.",
                   "Vectors are made once and compared fast. A pair can only be read once the question is there.",
                   right=True),
            Choice("b", "It would get confused by too many passages.",
                   "It sees one pair at a time and knows nothing of the others."),
            Choice("c", "The others have been filtered out.",
                   "Filters have done their work before. The other passages are allowed, but further down."),
        ),
    ),
    Knowledge(
        id="3.k3",
        question="Fused ranks found more than BM25 here, added scores did not. Why?",
        choices=(
            Choice("a", "Adding is slower.",
                   "Both take no time worth naming."),
            Choice("b", "The cosine is between -1 and 1, BM25 goes to 20 and more, so in a sum BM25 drowns the cosine.",
                   "The sum has the recall of BM25 alone, to the last digit.", right=True),
            Choice("c", "BM25 scores are wrong without a stop word list.",
                   "They are right as scores of words. They only have another unit than cosines."),
        ),
    ),
)

MODULE = Module(number="03", title="Search", exercises=EXERCISES, predictions=PREDICTIONS, knowledge=KNOWLEDGE)
