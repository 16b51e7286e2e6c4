"""Module 6, updates and deletions: new ids, what a sync must remove, stale caches, and what only people can mend."""

from dataclasses import replace

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare, short
from labsupport.pipeline.chunking import chunk_id
from labsupport.pipeline.corpus import read_inventory
from labsupport.pipeline.recordings import Passage, read_all, text_sha256

WITHDRAWN = "staff-discount-and-perks"


def ids_that_change(lab) -> int:
    """A file's name is no part of a passage's id, so this is 0, whatever the file is called."""
    chunks = lab.store.chunks("gift-cards")
    return sum(chunk.chunk_id != chunk_id(chunk.doc_id, chunk.version, chunk.start, chunk.end) for chunk in chunks)


def places_left(lab) -> list[str]:
    """Where a deleted document is still found when every sync has done its work: what only people can mend."""
    ids = {chunk.chunk_id for chunk in lab.store.chunks(WITHDRAWN)}
    recorded = any(check.id in ids for one in read_all(lab.corpus / "recordings")[0] for check in one.checks)
    listed = any(row.doc_id == WITHDRAWN for row in read_inventory(lab.corpus))
    return ["recorded answers"] * recorded + ["inventory.csv"] * listed


def check_new_ids(new_ids, lab) -> Wrong | None:
    numbers = sorted(new_ids) if isinstance(new_ids, list | tuple | set) else None
    wanted = "a list of the numbers of the passages whose start or end has moved"
    return compare(numbers, [3]) and Wrong(short(new_ids), wanted)


def check_to_remove(to_remove, lab) -> Wrong | None:
    """On folders that tell the usual slips apart: gone, changed, new, renamed, nothing, everything."""
    old = {"a.md": "11", "b.md": "22", "c.md": "33"}
    folders = {
        "nothing has changed": old,
        "b.md is gone": {"a.md": "11", "c.md": "33"},
        "the bytes of c.md have changed": old | {"c.md": "34"},
        "d.md is new": old | {"d.md": "44"},
        "a.md is gone, b.md has changed and d.md is new": {"b.md": "23", "c.md": "33", "d.md": "44"},
        "all files are gone": {},
    }
    for what, folder in folders.items():
        seen = to_remove(dict(old), dict(folder))
        expected = sorted(path for path, digest in old.items() if folder.get(path) != digest)
        seen = sorted(seen) if isinstance(seen, list | tuple | set | dict) else seen
        if compare(seen, expected):
            return Wrong(f"{short(seen)} when {what}", str(expected))
    return None


def check_still_true(still_true, lab) -> Wrong | None:
    """A passage as it was recorded against the same, another, a reworded and a missing one."""
    using, lost = lab.store.chunks("gift-cards")[1:3]
    recorded = Passage(using.chunk_id, text_sha256(using), 40)
    reworded = replace(using, body=using.body.replace("never", "seldom")[: len(using.body)])
    cases = [
        (using, True, "the very passage that was recorded"),
        (reworded, False, "a passage with the same id and other words"),
        (replace(lost, chunk_id=using.chunk_id), False, "the same id in front of another section"),
        (None, False, "a passage that is gone"),
    ]
    for chunk, expected, what in cases:
        if bool(seen := still_true(recorded, chunk)) is not expected:
            return Wrong(f"{seen} for {what}", str(expected))
    return None


def check_key(key, lab) -> Wrong | None:
    """Two keys may be the same only if question, passages and state of the index are."""
    first = ("What is the staff discount?", ["c13d27947ed1", "ea0bff365b2c"], (1, 0, None))
    others = {
        "after another process has changed the index": (*first[:2], (2, 0, None)),
        "after this process has changed the index": (*first[:2], (1, 1, None)),
        "after the file of the index was exchanged": (*first[:2], (1, 0, (688128, 7, 7))),
        "when a customer asks, who is sent other passages": (first[0], ["ea0bff365b2c", "1c39dfa3647f"], first[2]),
        "when the first passage is another": (first[0], ["1c39dfa3647f", "ea0bff365b2c"], first[2]),
        "when the second passage is another": (first[0], ["c13d27947ed1", "1c39dfa3647f"], first[2]),
        "when one passage fewer is sent": (first[0], first[1][:1], first[2]),
        "for another question": ("What perks do staff have?", *first[1:]),
    }
    try:
        hash(mine := key(*first))
    except TypeError as error:
        return Wrong(f"a key that no dictionary takes ({error})", "numbers, texts and tuples only")
    if key(*first) != mine:
        return Wrong("two keys for the very same request", "the same key, or no answer is ever found again")
    for what, other in others.items():
        if key(*other) == mine:
            return Wrong(f"the same key {what}", "another one")
    return None


def check_choices(choices, lab) -> Wrong | None:
    if not isinstance(choices, dict) or len(choices) != 4:
        return Wrong(short(choices), "the four cases, each with a word")
    for (case, seen), expected in zip(choices.items(), ("retire", "delete", "edit", "retire"), strict=True):
        if not (isinstance(seen, str) and seen.strip().casefold() == expected):
            return Wrong(f"{seen!r} where {case}", "another of the three", WHY[expected])
    return None


WHY = {
    "retire": "Somebody will still ask about the time in which it was right.",
    "delete": "There was no day on which it was right.",
    "edit": "The page stays; one thing in it is wrong.",
}

EXERCISES = (
    Exercise(
        id="6.1",
        title="Which ids change?",
        prompt="Suppose the ten characters had been added to the *last* section, “Lost cards and returns”, and nothing "
        "else. Which of the three passages would have a new id? Give their numbers as a list, such as `[1, 2]`.",
        stub='new_ids = ____\ncheck("6.1", new_ids)',
        solution="[3]",
        wrong=("[1, 2, 3]", "[2, 3]", "[]", "3"),
        hints=(
            "An id is made of document, version, start and end. For which passages does one of these change?",
            "Text that stands before the edit keeps its place.",
        ),
        explain="Only the end of the third passage moves. What stands before an edit keeps its place, and so its id.",
        revisit="A worked example",
        check=check_new_ids,
    ),
    Exercise(
        id="6.2",
        title="What the sync has to remove",
        prompt="`indexed` and `folder` map the path of each file to the SHA-256 of its bytes: as the index holds it, "
        "and as it lies in the folder now. The rows of which paths have to leave the index? A changed file counts: its "
        "old rows go before the new ones come. Give a sorted list.",
        stub='def to_remove(indexed, folder):\n    return ____\n\ncheck("6.2", to_remove)',
        solution="sorted(path for path in indexed if folder.get(path) != indexed[path])",
        wrong=(
            "sorted(set(indexed) - set(folder))",
            "sorted(path for path in indexed if path in folder and folder[path] != indexed[path])",
            "sorted(set(folder) - set(indexed))",
            "sorted(path for path in folder if folder[path] != indexed.get(path))",
            "[]",
        ),
        hints=(
            "Go through what is *indexed*. A sync that goes through the folder never comes across what is gone.",
            "`folder.get(path)` is None for a path that is gone, and another hash for one that has changed.",
        ),
        explain="One comparison finds both: None is not the old hash, and neither is a new hash.",
        revisit="The sync that never removes",
        check=check_to_remove,
    ),
    Exercise(
        id="6.3",
        title="The same id, other words",
        prompt="An id names a place, not words. If `$500` becomes `$800`, nothing moves, and every id stays. So a "
        "recording also keeps the hash of each passage it saw, and the audit compares it with `text_sha256(chunk)`. "
        "Complete the test; `recorded` has an `id` and a `sha256`, and `chunk` is what the index holds under that id.",
        stub="def still_true(recorded, chunk):\n    return chunk is not None and ____\n\n"
        'check("6.3", still_true)',
        solution="recorded.sha256 == text_sha256(chunk)",
        wrong=("recorded.id == chunk.chunk_id", "True", "recorded.sha256 == chunk.chunk_id",
               "recorded.sha256 != text_sha256(chunk)"),
        hints=(
            "Comparing ids is no use here: they are the same by definition.",
            "Compare the recorded hash with the hash of what stands there today.",
        ),
        explain="Equal ids say that the place is the same. Only equal hashes say that the words are.",
        revisit="What no sync can mend",
        check=check_still_true,
        setup="from labsupport.pipeline.recordings import text_sha256",
    ),
    Exercise(
        id="6.4",
        title="A key that cannot go stale",
        prompt="Answers that took time may be kept in a dictionary, a *cache*. `passages` is the list of the ids that "
        "were sent, `generation` the state of the index. Which key finds an answer again only where the same answer "
        "would be given again?",
        stub='def key(question, passages, generation):\n    return ____\n\ncheck("6.4", key)',
        solution="(question, tuple(passages), generation)",
        wrong=("question", "(question, tuple(passages))", "(question, generation)", "(question, passages, generation)",
               "(question, len(passages), generation)", "(question, passages[0], generation)",
               "(question, passages[-1], generation)", "(question, tuple(passages), generation[0])",
               "(question, tuple(passages), generation[:2])"),
        hints=(
            "The same question, asked by a customer and by staff, is sent different passages.",
            "A list cannot be part of a key; a tuple can.",
        ),
        explain="Passages tell apart who asks and for which day; the generation tells apart before and after a change.",
        revisit="A process that runs on",
        check=check_key,
    ),
    Exercise(
        id="6.5",
        title="Retire, delete or edit?",
        prompt="What would you do with the page in each case: `\"retire\"` it with an end date, `\"delete\"` the file, "
        "or `\"edit\"` its text?",
        stub="choices = {\n"
        '    "version 4 takes over from this page, version 3, on 1 November": ____,\n'
        '    "a draft that nobody approved was saved into the folder": ____,\n'
        '    "the page gives a wrong telephone number": ____,\n'
        '    "a promotion ended, and its customers may still have questions": ____,\n'
        '}\ncheck("6.5", choices)',
        solution=('"retire"', '"delete"', '"edit"', '"retire"'),
        wrong=(('"delete"', '"delete"', '"edit"', '"retire"'), ('"retire"', '"retire"', '"edit"', '"retire"'),
               ('"retire"', '"delete"', '"delete"', '"retire"'), ('"retire"', '"delete"', '"edit"', '"delete"')),
        hints=(
            "Ask for each page: was there a day on which it was right, and may somebody ask about that day?",
            "A draft was never right. A policy was, for everything delivered until the day it ended.",
        ),
        explain="What was right once is retired, what never was is deleted, what is right but for a detail is edited.",
        revisit="Retire or delete",
        check=check_choices,
    ),
)

PREDICTIONS = (
    Prediction(
        id="6.p1",
        prompt="`gift-cards.md` is renamed to `gift-card-rules.md`; its text stays as it is. How many of its three "
        "passages get a new id?",
        stub='predict("6.p1", ____)',
        solution="0",
        outcome=ids_that_change,
        show=lambda count: f"{count} of 3 passages",
        explain="Document, version, start and end make the id. The name of the file is no part of it. The report "
        "counts files, so it says one added and one removed, and counts the chunks of both.",
    ),
    Prediction(
        id="6.p2",
        prompt="The file is deleted, a proper ingest has run, and every running process checks before it searches. In "
        "how many of the six places can the document still be found?",
        stub='predict("6.p2", ____)',
        solution="2",
        outcome=lambda lab: len(places_left(lab)),
        show=lambda count: f"{count} of 6",
        explain="Recorded answers still cite it, and inventory.csv still lists it. No sync can mend either: the one is "
        "history, the other is kept by hand.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="6.k1",
        question="The report of a sync says: 0 added, 0 updated, 35 unchanged, 0 removed. Does the index hold what the "
        "folder holds?",
        choices=(
            Choice("a", "Yes: nothing failed and nothing is missing.",
                   "Nothing it looked at failed. A sync that goes through the folder never looks at what is gone."),
            Choice("b", "The report alone cannot tell. Compare the list of indexed documents with the folder.",
                   "The naive sync wrote this very line while the index held 36 documents.", right=True),
            Choice("c", "No: 35 is one too few.",
                   "There are 35 files, so 35 is right for the folder. The report says nothing of the index."),
        ),
    ),
    Knowledge(
        id="6.k2",
        question="A service keeps the vectors in memory. When should it look whether the index has changed?",
        choices=(
            Choice("a", "Once an hour.",
                   "Then it answers from what is deleted for up to an hour, and nobody can say to whom."),
            Choice("b", "When the sync sends it a message.",
                   "A message can be lost, and a sync run by hand sends none. Only the index itself always knows."),
            Choice("c", "Before each search, in the same transaction as the search.",
                   "It is one cheap question, and nothing can change between the look and the search.", right=True),
        ),
    ),
    Knowledge(
        id="6.k3",
        question="On the gift card page “$500” becomes “$800”. Which ids do its passages have then?",
        choices=(
            Choice("a", "New ones, because the text has changed.",
                   "The id is made of places, not of words, and no place has changed."),
            Choice("b", "The same ones as before.",
                   "A recorded answer that says $500 now cites a passage that says $800. Its id is fine; only the hash "
                   "of the text gives it away, which the audit calls “text changed”.", right=True),
            Choice("c", "The first section gets a new one, and so does all that follows.",
                   "That would be so if the edit made the text longer or shorter."),
        ),
    ),
    Knowledge(
        id="6.k4",
        question="Recorded answers cite a page that was deleted. What should happen to them?",
        choices=(
            Choice("a", "The sync should delete them together with the page.",
                   "Then nobody could see any more what customers were told. People decide that, not a sync."),
            Choice("b", "The audit names them, and a person decides: record anew, or keep as history.",
                   "The audit never changes a recording. It says which ones no longer stand on anything.", right=True),
            Choice("c", "Nothing. They were right when they were recorded.",
                   "They were, but they are replayed as well. Who reads one today must learn that its source is gone."),
        ),
    ),
)

MODULE = Module(
    number="06", title="Updates and deletions", exercises=EXERCISES, predictions=PREDICTIONS, knowledge=KNOWLEDGE
)
