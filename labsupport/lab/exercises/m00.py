"""Module 0, start here: how exercises work, what an id is made of, who may see what, from an id to its passage."""

from hashlib import sha256

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare, short
from labsupport.pipeline.chunking import chunk_id

WANTED = "7839ded2d52b"  # returns-policy v3, Return window
ADDED = len("in your Larkfield account") - len("in your account")


def check_passages(number, lab) -> Wrong | None:
    held = len(lab.store.all_chunks())
    notes = {len(lab.store.documents()): "That is the number of documents.",
             len({one.text for one in lab.store.all_chunks()}): "That is the number of texts the model was given."}
    note = "Write a number, without quotation marks." if isinstance(number, str) else notes.get(number, "")
    return compare(number, held) and Wrong(repr(number), "the number of passages that were added", note)


def check_key(key, lab) -> Wrong | None:
    if not isinstance(key, str):
        return Wrong(repr(key), "a text in quotation marks")
    made, parts = sha256(key.encode()).hexdigest()[:12], key.split("|")
    if key != key.strip() or " |" in key or "| " in key:
        note = "The four parts are joined by | without spaces."
    elif len(parts) != 4:
        note = "There are four parts: document, version, start, end."
    elif not parts[1].isdigit():
        note = "The version is a number alone, such as 4."
    else:
        note = "Look at each of the four parts and at their order."
    return compare(made, WANTED) and Wrong(f"{short(key)}, which gives {made}", WANTED, note)


def check_hidden(hidden, lab) -> Wrong | None:
    found = lab.search("Q51", method="hybrid")
    if not isinstance(hidden, list | tuple | set | frozenset):
        return Wrong(short(hidden), "a set of documents")
    return compare(sorted(set(hidden)), sorted({r.chunk.label for r in found if r.chunk.audience == "staff"}))


def check_first_day(first_day, lab) -> Wrong | None:
    passage = lab.store.get(["963dae4229eb"])[0]
    wanted = "the field of the passage that holds its first day in force, a text such as '2026-01-31'"
    return compare(first_day, passage.effective_from) and Wrong(short(first_day), wanted)


def embedded_again(lab) -> int:
    return lab.ingest().embedded


def ids_that_change(lab) -> int:
    """Gift cards, ten characters more in the second section: ids of the sections before and after."""
    sections = lab.store.chunks("gift-cards")
    second = sections[1].end
    moved = [(c.start + ADDED * (c.start >= second), c.end + ADDED * (c.end >= second)) for c in sections]
    after = [chunk_id(c.doc_id, c.version, *place) for c, place in zip(sections, moved, strict=True)]
    return sum(c.chunk_id != new for c, new in zip(sections, after, strict=True))


EXERCISES = (
    Exercise(
        id="0.1",
        title="Your first answer",
        prompt="How many passages does the index hold? You have seen the number above. Put it in the place of `____` "
        "and run the cell. Try a wrong number first, if you like: nothing breaks.",
        stub='passages = ____\ncheck("0.1", passages)',
        solution="185",
        wrong=("36", '"185"', "182", "[185]"),
        hints=("Look at the line that the first ingest printed.", "It is the number behind `chunks: +`."),
        explain="36 documents were cut into 185 passages, and the index holds them all.",
        revisit="A worked example",
        check=check_passages,
    ),
    Exercise(
        id="0.2",
        title="Make an id yourself",
        prompt="The section “Return window” of `returns-policy`, version 3, begins at character 175 and ends at 345. "
        "Write the text from which its id is made. The check computes the SHA-256 of your text and looks whether it "
        "begins with `7839ded2d52b`.",
        stub='key = ____\ncheck("0.2", key)',
        solution='"returns-policy|3|175|345"',
        wrong=('"returns-policy|4|175|345"', '"returns-policy | 3 | 175 | 345"', '"returns-policy|3|345|175"',
               '"returns-policy v3|175|345"', '"returns-policy|v3|175|345"', "175"),
        hints=(
            "Look at the cell that makes the ids of `gift-cards` again.",
            "Four parts: document, version, start, end, with | between them, all in one pair of quotation marks.",
        ),
        explain="Document, version and place make the id. The name of the file is not in it, and neither is the text.",
        revisit="What an id is made of",
        check=check_key,
    ),
    Exercise(
        id="0.3",
        title="Not for customers",
        prompt="Q51 asks about the staff discount, and staff may see everything. Collect the documents that a customer "
        "must not see. Each passage knows its `audience`, which is `\"public\"` or `\"staff\"`.",
        stub='found = lab.search("Q51", method="hybrid")  # without the reranker: module 3\n'
        'hidden = {one.chunk.label for one in found if ____}\ncheck("0.3", hidden)',
        solution='one.chunk.audience == "staff"',
        wrong=('one.chunk.audience == "public"', "True", 'one.chunk.doc_type == "policy"', "one.rank < 3"),
        hints=(
            "The passage of a result is `one.chunk`, so its audience is `one.chunk.audience`.",
            "Compare it with `\"staff\"`; two equals signs.",
        ),
        explain="The audience belongs to the document and comes along with each of its passages.",
        revisit="From the question to the checked answer",
        check=check_hidden,
    ),
    Exercise(
        id="0.4",
        title="From an id to its passage",
        prompt="Somebody shows you an answer that cites `963dae4229eb`. From which day is that text in force? The "
        "passage has the fields `doc_id`, `version`, `section`, `effective_from` and `effective_to`.",
        stub='passage = lab.store.get(["963dae4229eb"])[0]\nfirst_day = ____\ncheck("0.4", first_day)',
        solution="passage.effective_from",
        wrong=("passage.effective_to", "passage.version", "passage.section", '"2026-10-31"', '"2026-11-1"'),
        hints=("A field is read with a dot: `passage.section`.", "“From” is in the name of the field."),
        explain="It is version 4 of the returns policy. On the course's own day, 9 October 2026, it did not hold yet.",
        revisit="From the question to the checked answer",
        check=check_first_day,
    ),
)

PREDICTIONS = (
    Prediction(
        id="0.p1",
        prompt="The first ingest gave 182 texts to the embedding model. You run it again, and nothing has changed. How "
        "many texts does the model get now?",
        stub='predict("0.p1", ____)',
        solution="0",
        outcome=embedded_again,
        show=lambda texts: f"{texts} texts",
        explain="Each file still has the bytes it had, so there is nothing to cut and nothing to embed.",
    ),
    Prediction(
        id="0.p2",
        prompt="In the second of the three sections of `gift-cards` somebody adds ten characters. How many of the "
        "three ids change?",
        stub='predict("0.p2", ____)',
        solution="2",
        outcome=ids_that_change,
        show=lambda ids: f"{ids} of 3",
        explain="The second ends later, and the third begins later. The first stays where it was and keeps its id.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="0.k1",
        question="From where does the assistant of this course take its answers?",
        choices=(
            Choice("a", "From what a language model has learned.",
                   "A model has learned a lot, but not Larkfield's policies, and not what changed this morning."),
            Choice("b", "From the passages that a search has just found.",
                   "And it names them, so that everybody can look.", right=True),
            Choice("c", "From a list of questions and answers written in advance.",
                   "There are 67 questions in the corpus, but they are there to measure by."),
        ),
    ),
    Knowledge(
        id="0.k2",
        question="A file is renamed; its text stays the same. What happens to the ids of its passages?",
        choices=(
            Choice("a", "They stay as they are.",
                   "Document, version, start and end are the same, and the file's name is not part of an id.",
                   right=True),
            Choice("b", "They all change, because the path is different.",
                   "The path is not part of an id, so that old citations outlive a tidy-up."),
            Choice("c", "Each passage gets a new random id.",
                   "Nothing is random here: anyone can compute an id again, and should get the same."),
        ),
    ),
    Knowledge(
        id="0.k3",
        question="The check says “ok” for a citation. What do you know?",
        choices=(
            Choice("a", "The sentence is true.",
                   "Not yet. The document may be wrong, or the sentence may say something else than the passage."),
            Choice("b", "The passage exists, was sent, is in force, and the asker may see it.",
                   "So a person can open it and judge. That a claim says what its passage says is for module 5.",
                   right=True),
            Choice("c", "A language model has looked at the citation and finds it good.",
                   "No model is asked. Looking up an id is a job for ordinary code."),
        ),
    ),
)

MODULE = Module(number="00", title="Start here", exercises=EXERCISES, predictions=PREDICTIONS, knowledge=KNOWLEDGE)
