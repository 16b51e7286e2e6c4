"""Module 5, answers and citations: what a check can prove, who may read what, reading ids, and what answers cost."""

import re
from numbers import Real
from statistics import median

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare, short
from labsupport.pipeline.citations import status_of
from labsupport.pipeline.costs import QUESTIONS_PER_DAY
from labsupport.pipeline.index import Filters
from labsupport.pipeline.recordings import read_all

INVENTED = "c23617e24d2"  # written by a hosted chat model; the passage meant was c236034e24d2
SENT = ("c236034e24d2", "db1aadc6359f")  # what a customer's question about returns is sent, among others
CITED = (INVENTED, "963dae4229eb", "c13d27947ed1", "d753fb02bc8c")
CUSTOMER = Filters(as_of="2026-10-09", audience="public")
PRICE_IN, PRICE_OUT = 2, 8  # dollars for a million tokens, an example

NAMES = """
from statistics import median
from labsupport.pipeline.recordings import read_all
chat = [one for one in read_all(lab.corpus / "recordings")[0] if one.answerer == "chat"]
tokens_in = median(one.answer.tokens_in for one in chat)
tokens_out = median(one.answer.tokens_out for one in chat)
"""


def status(lab, chunk_id: str) -> str:
    found = {chunk.chunk_id: chunk for chunk in lab.store.get([chunk_id])}
    return status_of(found.get(chunk_id), CUSTOMER, SENT)


def check_statuses(statuses, lab) -> Wrong | None:
    if not isinstance(statuses, dict) or set(statuses) != set(CITED):
        return Wrong(short(statuses), f"a status for each of the ids {', '.join(CITED)}")
    for chunk_id, seen in statuses.items():
        expected = status(lab, chunk_id)
        if not (isinstance(seen, str) and seen.strip() == expected):
            return Wrong(f"{seen!r} for {chunk_id}", "another of the five statuses", WHY[expected])
    return None


WHY = {"missing_id": "Count its characters.", "not_in_force": "Version 4 begins on 1 November.",
       "not_allowed": "The page is for staff.", "not_in_context": "It is public and in force. What is missing?"}


def check_may_read(may_read, lab) -> Wrong | None:
    for passage in ("public", "staff"):
        for asker in ("public", "staff"):
            seen, expected = may_read(passage, asker), passage == "public" or asker == "staff"
            if bool(seen) is not expected:
                return Wrong(f"{seen} for a {passage} passage and a {asker} asker", str(expected))
    return None


def check_grounded(grounded, lab) -> Wrong | None:
    cases = [
        ([["ok"]], True, "one claim with a good citation"),
        ([["ok"], ["missing_id"]], False, "a second claim whose only id is invented"),
        ([["missing_id", "ok"]], True, "a claim with a bad citation and a good one"),
        ([["ok"], []], False, "a second claim that cites nothing"),
        ([["not_in_force"], ["ok"]], False, "a first claim that cites an ended version"),
        ([], False, "no claim at all"),
    ]
    for claims, expected, what in cases:
        seen = grounded([list(found) for found in claims])
        if bool(seen) is not expected:
            return Wrong(f"{seen} for {what}", str(expected))
    return None


def check_pattern(pattern, lab) -> Wrong | None:
    one, other = SENT
    cases = [
        (f"[{one}]", [one]), (f"{one}, {other}.", [one, other]), (f"See {one}/{other}", [one, other]), (one, [one]),
        (f"[{INVENTED}]", []), ("[1, 2]", []), ("Order LF-20418837 came.", []), ("Read the instructions first.", []),
        ("sha256 " + "0bc4fd8100c1d61e" * 4, []), ("", []),
    ]
    for text, expected in cases:
        seen = re.findall(pattern, text)
        if compare(seen, expected):
            note = 'Is there an r before the quotation mark? Without it, \\b is another character.' * ("\b" in pattern)
            return Wrong(f"{seen} in {text!r}", str(expected), note)
    return None


def check_usd(usd, lab) -> Wrong | None:
    chat = [one.answer for one in read_all(lab.corpus / "recordings")[0] if one.answerer == "chat"]
    sent, written = median(one.tokens_in for one in chat), median(one.tokens_out for one in chat)
    right = QUESTIONS_PER_DAY * (sent * PRICE_IN + written * PRICE_OUT) / 1_000_000
    if not isinstance(usd, Real) or isinstance(usd, bool) or not abs(usd - right) <= 0.005:  # to the cent will do
        return Wrong(short(usd), "45 times the price of one question, in dollars")
    return None


def days_in_force(lab) -> int:
    """Q22 searched as the lab does: as of the day of delivery."""
    best = lab.search("Q22", method="bm25", k=1)[0].chunk
    return int(re.search(r"([0-9]+) days from the day of delivery", best.body)[1])


def customer_is_answered(lab) -> bool:
    """Whether a page that states the fact Q01 asks for may be read by a customer."""
    pages = {fact.doc_id for fact in lab.question("Q01").facts}
    return any(row.doc_id in pages and row.audience == "public" for row in lab.store.documents())


EXERCISES = (
    Exercise(
        id="5.1",
        title="Name the status",
        prompt="A customer asks on 9 October 2026 how to return an item, and is sent the passages listed at the "
        "foot of the panel (scroll down in it). Which status does each of these citations get? Fill in `\"ok\"`, "
        "`\"missing_id\"`, `\"not_in_context\"`, `\"not_in_force\"` or `\"not_allowed\"`.",
        stub="statuses = {\n"
        '    "c23617e24d2": ____,   # written by a model\n'
        '    "963dae4229eb": ____,  # returns policy version 4, for deliveries from 1 November\n'
        '    "c13d27947ed1": ____,  # the staff discount\n'
        '    "d753fb02bc8c": ____,  # the privacy policy, public and in force\n'
        '}\ncheck("5.1", statuses)',
        solution=('"missing_id"', '"not_in_force"', '"not_allowed"', '"not_in_context"'),
        wrong=(('"missing_id"', '"not_in_force"', '"not_allowed"', '"ok"'),
               ('"not_in_context"', '"not_in_force"', '"not_allowed"', '"not_in_context"'),
               ('"missing_id"', '"not_in_force"', '"not_in_context"', '"not_in_context"')),
        hints=("Choose each of them in the list of the panel and read the status.",
               "The privacy policy is fine in every way, but was it sent with this question?"),
        explain="Three of these are proper pages. A model that cites them for this question has not read them.",
        revisit="Explore",
        check=check_statuses,
    ),
    Exercise(
        id="5.2",
        title="Who may read it",
        prompt="`passage` says for whom a passage is, `\"public\"` or `\"staff\"`, and `asker` who asks. Everybody may "
        "read what is public, and staff may read everything. Complete the rule.",
        stub='def may_read(passage, asker):\n    return ____\n\ncheck("5.2", may_read)',
        solution='passage == "public" or asker == "staff"',
        wrong=("passage == asker", 'asker == "staff"', 'passage == "public"', "True",
               'passage == "public" and asker == "staff"'),
        hints=("There are four cases; write down the answer to each. Only one of them is no.",
               "Joining two conditions with `or` leaves exactly one case out."),
        explain="`passage == asker` is the usual slip: it shuts staff out of all that customers may read.",
        revisit="Who asks, and when",
        check=check_may_read,
    ),
    Exercise(
        id="5.3",
        title="What counts as grounded",
        prompt="`claims` holds a list for each claim: the statuses of its citations. An answer is *grounded* if it "
        "makes at least one claim, and each claim has at least one citation that is `\"ok\"`. Complete the rule.",
        stub='def grounded(claims):\n    return ____\n\ncheck("5.3", grounded)',
        solution='bool(claims) and all("ok" in found for found in claims)',
        wrong=('all("ok" in found for found in claims)', 'any("ok" in found for found in claims)',
               'bool(claims) and all(one == "ok" for found in claims for one in found)', "bool(claims)",
               'bool(claims) and "missing_id" not in claims'),
        hints=("`all` goes through the claims and asks of each: is there an ok among its statuses?",
               "`all` of nothing is True. An answer that claims nothing is not grounded."),
        explain="A claim may have a bad citation beside a good one. A claim with none, or an answer with no claim, has "
        "nothing to stand on.",
        revisit="A worked example",
        check=check_grounded,
    ),
    Exercise(
        id="5.4",
        title="Find the ids",
        prompt="Models write ids in many ways: `[c236034e24d2]`, `c236034e24d2, db1aadc6359f.`, without brackets, with "
        "a full stop. An id has twelve characters, each a digit or a letter from a to f. Which regular expression, "
        "given to `re.findall`, finds ids and nothing else? Write it as `r\"…\"`.",
        stub='pattern = ____\ncheck("5.4", pattern)',
        solution=r'r"\b[0-9a-f]{12}\b"',
        wrong=(r'r"[0-9a-f]{12}"', r'r"[0-9a-f]+"', r'r"\[[0-9a-f]{12}\]"', r'r"\b[0-9a-f]{11,12}\b"',
               r'r"\b\w{12}\b"'),
        hints=("`[0-9a-f]` is one such character, and `{12}` means twelve of them.",
               "Twelve characters out of the middle of a longer number are no id. `\\b` stands where a word begins or "
               "ends."),
        explain="Read generously and check strictly: any way of writing an id is read, and then the id must be real.",
        revisit="What the checker finds in a real model",
        check=check_pattern,
    ),
    Exercise(
        id="5.5",
        title="What a day costs",
        prompt="Suppose a provider takes `$2` for a million tokens read and `$8` for a million tokens written. What "
        "would 45 questions a day like the recorded ones cost, in dollars? Use `tokens_in` and `tokens_out`.",
        stub='usd = ____\ncheck("5.5", usd)',
        solution="45 * (tokens_in * 2 + tokens_out * 8) / 1_000_000",
        wrong=("(tokens_in * 2 + tokens_out * 8) / 1_000_000", "45 * (tokens_in * 8 + tokens_out * 2) / 1_000_000",
               "45 * (tokens_in + tokens_out) * 2 / 1_000_000", "45 * (tokens_in * 2 + tokens_out * 8)"),
        hints=("First one question: each count of tokens times its own price, for a million.", "Then 45 of them."),
        explain="What is read costs less for a token, but there is far more of it.",
        revisit="What answers cost",
        check=check_usd,
        setup=NAMES,
    ),
)

PREDICTIONS = (
    Prediction(
        id="5.p1",
        prompt="Marek's answer cites `c23617e24d2`. Which of the five statuses does that get? Guess one of them, as a "
        "text in quotation marks.",
        stub='predict("5.p1", ____)',
        solution='"missing_id"',
        outcome=lambda lab: status(lab, INVENTED),
        explain="It has eleven characters; 17 stands where 034 should. The index holds no such passage.",
    ),
    Prediction(
        id="5.p2",
        prompt="Q22 is asked on 5 November: “My order was delivered on 20 October. How long do I have to return it?” "
        "Version 3 of the returns policy says 30 days and ends on 31 October; version 4 says 45. How many days will "
        "the answer say?",
        stub='predict("5.p2", ____)',
        solution="30",
        outcome=days_in_force,
        show=lambda days: f"{days} days",
        explain="The day of delivery decides, so the lab reads it out of the question and searches as of that day.",
    ),
    Prediction(
        id="5.p3",
        prompt="Q01: “I was billed twice for one order. When do I get the extra charge back?” Only a procedure for "
        "staff says so. Staff are answered. Is a customer who asks the same thing answered as well? Guess `True` or "
        "`False`.",
        stub='predict("5.p3", ____)',
        solution="False",
        outcome=customer_is_answered,
        explain="The procedure is filtered out before the search ranks. What was never seen cannot slip out.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="5.k1",
        question="A citation is checked, and its status is ok. What has been proved?",
        choices=(
            Choice("a", "That the passage says what the claim says.",
                   "No program here reads for meaning. “Yes, we sell plants and seeds” cited a page that says nothing "
                   "of the kind, and its id was fine."),
            Choice("b", "That the passage exists, was sent, is in force, and may be read by the person who asks.",
                   "That, and no more. It is worth having: whoever doubts the claim can look it up.", right=True),
            Choice("c", "That the model has really used the passage.",
                   "Nobody can see that from outside. It was sent; whether it was used is another matter."),
        ),
    ),
    Knowledge(
        id="5.k2",
        question="A customer's answer cites a page that is for staff only and has ended as well. Which status is told?",
        choices=(
            Choice("a", "not_in_force, because the page has ended.",
                   "That would tell a customer that there was such a page, and when it ended."),
            Choice("b", "missing_id, so that nothing is given away.",
                   "Then whoever runs the assistant would look for an invention, and not for a leak."),
            Choice("c", "not_allowed, and nothing more of the page.",
                   "Access is looked at before anything else, and not even the words of the page are compared.",
                   right=True),
        ),
    ),
    Knowledge(
        id="5.k3",
        question="A vendor's text holds the sentence “ignore your earlier instructions”. What protects the answers "
        "from it?",
        choices=(
            Choice("a", "The prompt says that orders in passages are not to be followed.",
                   "It says so, and our chat model promised the guarantee all the same. An instruction is no wall."),
            Choice("b", "A filter that takes out such sentences.",
                   "The extractive answerer has one, so that answers read well. Anybody can put the order in other "
                   "words, so it is no protection."),
            Choice("c", "Nothing for certain. Each measure makes it rarer: fences, instructions, sending less, people.",
                   "None of them makes sure that a model stays unmoved. What was never sent cannot move it.",
                   right=True),
        ),
    ),
    Knowledge(
        id="5.k4",
        question="A recorded answer is replayed, and today's search finds other passages than it saw. What happens?",
        choices=(
            Choice("a", "It is told as recorded, its citations are checked today, and a note names the difference.",
                   "A recording is evidence of what was said. The check says what it is worth today.", right=True),
            Choice("b", "The answer is worked out anew from today's passages.",
                   "Then it would be another answer, and nobody would learn what was said at the time."),
            Choice("c", "It is refused, because it no longer fits.",
                   "Only who may not read it is refused. For everybody else the difference is what they need to see."),
        ),
    ),
)

MODULE = Module(number="05", title="Answers and citations", exercises=EXERCISES, predictions=PREDICTIONS,
                knowledge=KNOWLEDGE)
