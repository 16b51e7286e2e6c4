"""Module 2, metadata: what an id hangs on, dates and versions, who may see what, front matter that is refused."""

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare
from labsupport.lab.panels.filters import hidden_because
from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import make_chunker
from labsupport.pipeline.corpus import read_document
from labsupport.pipeline.index import Filters

GIFT_CARDS = "documents/gift-cards.md"
V3 = "documents/returns-policy-v3.md"
LAST_DAY = "effective_to: 2026-10-31"
UNUSED = "How long can I return unused items?"

# What somebody does to gift-cards, as the old and the new text; for a renamed file nothing in it changes.
EVENTS = {
    "a": ("", ""),
    "b": ("Choose any amount", "Please choose any amount"),
    "c": ("owner: Finance", "owner: Marketing"),
    "d": ("version: 1", "version: 2"),
    "e": ("effective_to:\n", "effective_to: 2027-12-31\n"),
    "f": ("Lost cards and returns", "Lost or stolen cards, and returns"),
}


def id_of_second_section(lab, old: str = "", new: str = "") -> str:
    path = lab.corpus / GIFT_CARDS
    text = path.read_text(encoding="utf-8")
    if old and text.count(old) < 1:
        raise LabError(f"{GIFT_CARDS} no longer holds {old!r}: open the module with fresh=True.")
    document = read_document(path, lab.corpus, (text.replace(old, new, 1) if old else text).encode())
    return make_chunker("structure", lab.embedder).chunk(document)[1].chunk_id


def check_new_id(letters, lab) -> Wrong | None:
    before = id_of_second_section(lab)
    expected = {name for name, change in EVENTS.items() if id_of_second_section(lab, *change) != before}
    if isinstance(letters, list | tuple | set):
        letters = "".join(map(str, letters))
    written = letters.casefold().replace(" and ", " ") if isinstance(letters, str) else ""
    seen = {letter for letter in written if letter.isalpha()}
    if not seen or not seen <= set(EVENTS):
        return Wrong(repr(letters), 'letters from a to f in quotation marks, such as "af"')
    if seen != expected:
        odd = sorted(seen ^ expected)[0]
        has = "changes" if odd in expected else "does not change"
        return Wrong(repr("".join(sorted(seen))), "the changes that give a new id", f"Change {odd} {has} it.")
    return None


def check_in_force(in_force, lab) -> Wrong | None:
    cases = [("2026-01-01", "2026-10-31", day) for day in
             ("2025-12-31", "2026-01-01", "2026-10-09", "2026-10-31", "2026-11-01")]
    cases += [("2026-11-01", None, day) for day in ("2026-10-31", "2026-11-01", "2031-01-01")]
    for first, last, day in cases:
        seen, expected = bool(in_force(first, last, day)), first <= day and (last is None or day <= last)
        if seen is not expected:
            until = f"to {last}" if last else "without end date"
            return Wrong(f"{seen} on {day} for a version from {first} {until}", str(expected))
    return None


def check_may_see(may_see, lab) -> Wrong | None:
    for reader in ("public", "staff"):
        for chunk in (lab.store.chunks("gift-cards")[0], lab.store.chunks("staff-discount-and-perks")[0]):
            seen = bool(may_see(reader, chunk.audience))
            expected = not hidden_because(chunk, Filters(audience=reader))
            if seen is not expected:
                return Wrong(f"{seen} for the reader {reader} and a document for {chunk.audience}", str(expected))
    return None


def check_deciding_day(deciding_day, lab) -> Wrong | None:
    ordered, delivered, asked = "2026-10-14", "2026-10-20", "2026-11-05"
    for kind, expected in (("return", delivered), ("delivery charge", ordered), ("price match", ordered)):
        seen = deciding_day(kind, ordered, delivered, asked)
        if compare(seen, expected):
            return Wrong(f"{seen!r} for a {kind}; ordered {ordered}, delivered {delivered}, asked {asked}", expected)
    return None


def check_mended(line, lab) -> Wrong | None:
    if not isinstance(line, str):
        return Wrong(repr(line), "a line of text in quotation marks")
    path = lab.corpus / V3
    text = path.read_text(encoding="utf-8")
    try:
        document = read_document(path, lab.corpus, text.replace(LAST_DAY, line.strip(), 1).encode())
    except LabError as error:
        note = str(error).split("\n")[0]
        if ":" in line and ": " not in line:
            note = "A space stands after the colon."
        return Wrong(repr(line), "a line that is read without a fault", note)
    if document.effective_to is None:
        return Wrong("no last day", "a version that ends the day before version 4 begins",
                     "With this line both versions are in force from 1 November on.")
    return compare(document.effective_to, "2026-10-31") and Wrong(repr(line), "the last day of October 2026")


def first_without_date(lab) -> str:
    return lab.search(UNUSED, "bm25", k=1, as_of=None)[0].chunk.version


def version_on_the_last_day(lab) -> str:
    return lab.search(UNUSED, "bm25", k=1, as_of="2026-10-31")[0].chunk.version


def open_to_the_public(lab) -> int:
    filters = Filters(as_of=lab.filters.as_of, audience="public")
    return sum(not hidden_because(row, filters) for row in lab.store.documents())


EXERCISES = (
    Exercise(
        id="2.1",
        title="Which change gives a new id",
        prompt="The middle section of `gift-cards`, “Using a gift card”, has an id. Which of these give it another "
        "one?\n\n- a: the file is renamed\n- b: the section before it gets a word more\n- c: the document gets a new "
        "owner\n- d: the version becomes 2\n- e: the document gets a last day\n- f: the heading of the section after "
        "it is reworded\n\nWrite the letters, such as `\"af\"`. The check tries all six on the document.",
        stub='letters = ____\ncheck("2.1", letters)',
        solution='"bd"',
        wrong=('"b"', '"abd"', '"bde"', '"bdf"', '"abcdef"', '""'),
        hints=("Four things go into an id. Look at the cell that makes it.",
               "What comes before a section moves it. What comes after it does not."),
        explain="Document, version, start and end: b moves start and end, d is the version. Name, owner, dates and "
        "what stands below are no part of it.",
        revisit="An id that anyone can compute",
        check=check_new_id,
    ),
    Exercise(
        id="2.2",
        title="In force on a day",
        prompt="`first`, `last` and `day` are ISO dates, which compare as text. `last` is `None` where no end is set. "
        "The last day still counts. Return True if the version is in force on `day`.",
        stub='def in_force(first, last, day):\n    return ____\n\ncheck("2.2", in_force)',
        solution="first <= day and (last is None or day <= last)",
        wrong=("first <= day and (last is None or day < last)", "first < day and (last is None or day <= last)",
               "first <= day <= last", "first <= day", "last is None or day <= last"),
        hints=("Two conditions: it has begun, and it has not ended.",
               "`day <= last` fails where `last` is None. Ask for that first: `last is None or …`."),
        explain="Both ends belong to it. With `<` for the last day nothing at all is in force on 31 October.",
        revisit="Versions and dates",
        check=check_in_force,
    ),
    Exercise(
        id="2.3",
        title="Who may see what",
        prompt="`reader` and `audience` are both `\"public\"` or `\"staff\"`. Staff may see everything, the public "
        "only what is public. May this reader see a document for this audience?",
        stub='def may_see(reader, audience):\n    return ____\n\ncheck("2.3", may_see)',
        solution='reader == "staff" or audience == "public"',
        wrong=("reader == audience", 'audience == "public"', 'reader == "staff"', "True",
               'reader == "staff" and audience == "public"'),
        hints=("There are four cases. Only one of them is forbidden.",
               "Staff always; everybody where the document is public."),
        explain="`reader == audience` is the usual slip: staff would no longer find the returns policy.",
        revisit="Access",
        check=check_may_see,
    ),
    Exercise(
        id="2.4",
        title="The day that decides",
        prompt="The rule stands in `policy-governance`: a return follows the version in force on the day of delivery, "
        "all else the version in force on the day of the order. `kind` is `\"return\"` or something else; "
        "`ordered`, `delivered` and `asked` are days. Which of the three decides?",
        stub="def deciding_day(kind, ordered, delivered, asked):\n    return ____\n\n"
        'check("2.4", deciding_day)',
        solution='delivered if kind == "return" else ordered',
        wrong=("asked", "delivered", "ordered", 'ordered if kind == "return" else delivered',
               'delivered if kind == "return" else asked', "max(ordered, delivered, asked)"),
        hints=("`a if condition else b` chooses between two values.", "The day of asking is in neither of the rules."),
        explain="When the question is asked decides nothing. That is why “the latest version” is the wrong question.",
        revisit="“The latest version” is the wrong question",
        check=check_deciding_day,
    ),
    Exercise(
        id="2.5",
        title="Mend the front matter",
        prompt="Somebody ended version 3 of the returns policy with the line `effective_to: 31/10/2026`. The file is "
        "refused. Write the whole line as it should be.",
        stub='line = ____\ncheck("2.5", line)',
        solution='"effective_to: 2026-10-31"',
        wrong=('"effective_to: 31/10/2026"', '"effective_to: 2026-31-10"', '"effective_to:"', 
               '"effective_to: 2026-11-01"', '"2026-10-31"', '"effective_to: 2026-10-30"'),
        hints=("Look at the message about `effective_from` under “What is refused”.",
               "Year, month, day, with hyphens; key and colon stay."),
        explain="31/10/2026 is clear to you; 03/04/2026 would not be. One way of writing leaves nothing to guess.",
        revisit="What is refused",
        check=check_mended,
    ),
)

PREDICTIONS = (
    Prediction(
        id="2.p1",
        prompt="Now a search with no date at all: both versions may be found, and they match the question equally "
        "well. Which one comes first? Guess `\"3\"` or `\"4\"`.",
        stub='predict("2.p1", ____)',
        solution='"3"',
        outcome=first_without_date,
        show=lambda version: f"version {version}",
        explain="Their scores are equal, so the id decides, and 7839ded2d52b comes before 963dae4229eb. The order "
        "repeats exactly, but it means nothing: it is right in October and wrong in November.",
    ),
    Prediction(
        id="2.p2",
        prompt="Version 3 ends on 2026-10-31, and version 4 begins on 2026-11-01. Which one is found for a delivery "
        "on 31 October? Guess `\"3\"`, `\"4\"` or `\"none\"`.",
        stub='predict("2.p2", ____)',
        solution='"3"',
        outcome=version_on_the_last_day,
        show=lambda version: f"version {version}",
        explain="The last day belongs to the version that ends.",
    ),
    Prediction(
        id="2.p3",
        prompt="Of the 36 document versions, how many may a customer search on 9 October 2026? You have seen what is "
        "out of force on that day; six others are for staff.",
        stub='predict("2.p3", ____)',
        solution="28",
        outcome=open_to_the_public,
        show=lambda number: f"{number} of 36",
        explain="36 without the six for staff, without version 4 of the returns policy, which is still to come, and "
        "without version 3 of the shipping policy, which has ended.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="2.k1",
        question="On 5 November a customer asks about a return of goods delivered on 20 October. Which version counts?",
        choices=(
            Choice("a", "The newest one, version 4.",
                   "It is in force when the question is asked. But the goods came in October, under version 3."),
            Choice("b", "The one in force on the day of delivery, version 3.",
                   "The governance page says so for returns, and the search takes the day from the question.",
                   right=True),
            Choice("c", "Both, and the model chooses.",
                   "Both look alike to a model, and neither says in its text when it holds. The dates are metadata."),
        ),
    ),
    Knowledge(
        id="2.k2",
        question="Why are staff texts kept out by a filter, and not by a line in the prompt (“do not show staff "
        "texts”)?",
        choices=(
            Choice("a", "What was never sent cannot leak.",
                   "A prompt is a request, and a clever question may talk a model out of it. A filter is not asked.",
                   right=True),
            Choice("b", "Because the prompt would become too long.",
                   "One line costs next to nothing. It also guarantees next to nothing."),
            Choice("c", "Because models cannot read the word staff.",
                   "They read it well. They just do not always do what it asks."),
        ),
    ),
    Knowledge(
        id="2.k3",
        question="The front matter of a page lacks `audience`. What should the lab do?",
        choices=(
            Choice("a", "Take it as public: most pages are.",
                   "And the first staff page with the line forgotten is open to everybody."),
            Choice("b", "Take it as staff: that is the safe side.",
                   "Safer, but now a public page is missing for customers, and nobody is told why."),
            Choice("c", "Refuse the page, and name file and line.",
                   "A minute's work for its author, and nothing is guessed.", right=True),
        ),
    ),
)

MODULE = Module(number="02", title="Metadata", exercises=EXERCISES, predictions=PREDICTIONS, knowledge=KNOWLEDGE)
