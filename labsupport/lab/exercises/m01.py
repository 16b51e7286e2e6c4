"""Module 1, chunking: windows of words, the heading tree, offsets, the model's limit, and what counts as covered."""

from types import SimpleNamespace

from labsupport.lab.exercises import Choice, Exercise, Knowledge, Module, Prediction, Wrong, compare, short
from labsupport.lab.panels.chunks import torn
from labsupport.pipeline import evidence
from labsupport.pipeline.chunking import make_chunker
from labsupport.pipeline.corpus import Document, read_document
from labsupport.pipeline.evidence_context import windows
from labsupport.pipeline.markdown import extend_path, to_plain


def document(lab, name: str) -> Document:
    return read_document(lab.corpus / "documents" / f"{name}.md", lab.corpus)


def ends_of(text: str) -> str:
    return f"{len(text)} characters, from {text[:20]!r} to {text[-20:]!r}"


def check_quote(quote, lab) -> Wrong | None:
    for name, cut in (("returns-policy-v3", "structure"), ("gift-cards", "fixed_48_0"), ("gift-cards", "paragraphs")):
        source = document(lab, name)
        plain = to_plain(source)
        for chunk in make_chunker(cut, lab.embedder).chunk(source):
            seen = quote(plain, SimpleNamespace(start=chunk.start, end=chunk.end))  # a place, and no text to copy
            if seen != chunk.body:
                return Wrong(ends_of(seen) if isinstance(seen, str) else short(seen), ends_of(chunk.body))
    return None


def check_starts(starts, lab) -> Wrong | None:
    for words, size, overlap in ((120, 48, 0), (120, 48, 16), (101, 10, 9), (7, 48, 16)):
        expected = [start for start, _ in windows(words, size, overlap)]
        seen = starts(words, size, overlap)
        if compare(seen, expected):
            return Wrong(f"{seen} for {words} words in windows of {size} with {overlap} repeated", str(expected))
    return None


def check_extend(extend, lab) -> Wrong | None:
    """The headings of a page one after another, the path after each against the pipeline's own."""
    page = [(1, "Returns policy"), (2, "How long a refund takes"), (3, "Cost of sending it back"),
            (3, "Oversize items"), (2, "Faulty items"), (1, "Annex"), (3, "Labels")]
    seen: list = []
    expected: list = []
    for level, name in page:
        seen, expected = extend(seen, level, name), extend_path(expected, level, name)
        if compare(seen, expected):
            return Wrong(" > ".join(entry[1] for entry in seen), " > ".join(entry[1] for entry in expected),
                         f"That is the path after the heading “{name}”, level {level}.")
    return None


def check_covered(covered, lab) -> Wrong | None:
    fact = set(range(121, 143))
    long = set(range(300, 360))
    cases = [
        (fact, set(range(0, 120)), False, "none of its 22 words is kept"),
        (fact, set(range(0, 168)), True, "all its words are kept, with others around them"),
        (fact, set(range(100, 142)), False, "21 of its 22 words are kept"),
        (fact, set(fact), True, "its words are kept and nothing else"),
        (fact, set(range(96, 132)) | set(range(132, 168)), True, "two passages hold half of it each"),
        (long, long - {331}, False, "59 of its 60 words are kept"),
    ]
    for wanted, kept, expected, what in cases:
        seen = bool(covered(set(wanted), set(kept)))
        if seen is not expected:
            return Wrong(f"{seen} where {what}", str(expected))
    return None


def check_fits(fits, lab) -> Wrong | None:
    counter = lab.embedder
    for text in ("mower", "PK-2400-03, NS-2400-13, WF-2400-21", "Drain the water out of pump and hose.", ""):
        tokens = counter.count_tokens(text)
        for limit in (tokens - 1, tokens, tokens + 1):
            seen, expected = bool(fits(text, counter, limit)), tokens <= limit
            if seen is not expected:
                return Wrong(f"{seen} for {text!r}, {tokens} tokens, and a limit of {limit}", str(expected))
    return None


def borders_inside(lab) -> int:
    policy = document(lab, "warranty-policy")
    plain = to_plain(policy)
    return sum(bool(torn(plain, chunk.start)) for chunk in make_chunker("fixed_48_0", lab.embedder).chunk(policy))


def parts_of_the_long_section(lab) -> int:
    return max(chunk.parts for chunk in lab.store.chunks("returns-desk-procedure"))


def facts_at_96_words(lab) -> int:
    cases = evidence.read_cases(evidence.default_cases())
    return evidence.check(cases, ["fixed_96_0"])["table"]["fixed_96_0"]["facts"]


EXERCISES = (
    Exercise(
        id="1.1",
        title="What a chunk quotes",
        prompt="A chunk keeps its place: `chunk.start` is the first character, `chunk.end` the one after the last. "
        "Return what it quotes from the plain text of its document, `plain.text`.",
        stub='def quote(plain, chunk):\n    return ____\n\ncheck("1.1", quote)',
        solution="plain.text[chunk.start:chunk.end]",
        wrong=("plain.text[chunk.start:chunk.end + 1]", "plain.text[chunk.start:chunk.end - 1]", "chunk.text",
               "plain.text[chunk.start - 1:chunk.end]", "plain.text[chunk.start:]"),
        hints=("Python cuts a text with `text[first:after_last]`.", "No `+ 1`: the end is not part of the slice."),
        explain="`text[a:b]` begins at a and stops before b, the same half-open counting as in the chunk.",
        revisit="Offsets",
        check=check_quote,
    ),
    Exercise(
        id="1.2",
        title="Where the windows start",
        prompt="`words` is the number of words in a text. It is cut into windows of `size` words, and each window "
        "repeats the last `overlap` words of the one before. How far is it from one start to the next? With 48 and 16, "
        "the first starts are 0, 32 and 64.",
        stub="def starts(words, size, overlap):\n    last = max(words - overlap, 1)\n"
        '    return list(range(0, last, ____))\n\ncheck("1.2", starts)',
        solution="size - overlap",
        wrong=("size", "size + overlap", "max(overlap, 1)", "size // 2"),
        hints=("Of the 48 words of a window, how many were not in the window before?",
               "Each step brings `size` words, of which `overlap` are old."),
        explain="Each window brings size minus overlap new words. With overlap as large as the size the cut would "
        "never get on, so the lab refuses that.",
        revisit="A worked example",
        check=check_starts,
    ),
    Exercise(
        id="1.3",
        title="The chain of headings",
        prompt="`path` holds the headings above, as pairs of level and name. A new heading ends every heading of its "
        "own level and of deeper ones; those above it stay. Which entries stay?",
        stub="def extend(path, level, name):\n    return [entry for entry in path if ____] + [(level, name)]\n\n"
        'check("1.3", extend)',
        solution="entry[0] < level",
        wrong=("entry[0] <= level", "entry[0] > level", "True", "entry[0] == level - 1", "False"),
        hints=("`entry[0]` is the level of a heading above: 1 for the title, 2 for a section.",
               "A second section does not stand under the first one."),
        explain="Only headings of a smaller level number are above the new one. This line is the whole heading tree.",
        revisit="The heading tree",
        check=check_extend,
    ),
    Exercise(
        id="1.4",
        title="Covered, or nearly",
        prompt="Both arguments are sets of word positions: those of a fact, and those of all that was kept. When is "
        "the fact covered?",
        stub='def covered(fact, kept):\n    return ____\n\ncheck("1.4", covered)',
        solution="fact <= kept",
        wrong=("bool(fact & kept)", "fact == kept", "fact < kept", "kept <= fact",
               "len(fact & kept) >= 0.9 * len(fact)", "len(fact & kept) >= 0.96 * len(fact)"),
        hints=("Is a rule still the rule when its last word is missing?", "For sets, `a <= b` asks: is all of a in b?"),
        explain="All its words must be there. The word that is missing could be “not”.",
        revisit="The evidence check",
        check=check_covered,
    ),
    Exercise(
        id="1.5",
        title="Does it fit the model",
        prompt="`counter` is the embedding model. It counts with its own tokenizer: `counter.count_tokens(text)`. Does "
        "the text fit into `limit` tokens?",
        stub='def fits(text, counter, limit):\n    return ____\n\ncheck("1.5", fits)',
        solution="counter.count_tokens(text) <= limit",
        wrong=("len(text.split()) <= limit", "len(text) / 4 <= limit", "counter.count_tokens(text) < limit",
               "counter.count_tokens(text) <= 512", "counter.count_tokens(text) > limit"),
        hints=("Words and tokens are not the same: one part number is many tokens.",
               "A text of exactly `limit` tokens still fits."),
        explain="The one who reads does the counting. Anything else is an estimate, and where it errs nobody notices.",
        revisit="The fit pass",
        check=check_fits,
    ),
)

PREDICTIONS = (
    Prediction(
        id="1.p1",
        prompt="The prototype cut the whole warranty policy every 48 words. That makes 10 passages, with 9 "
        "borders between them. How many of the 9 borders fall inside a paragraph, a list or a table?",
        stub='predict("1.p1", ____)',
        solution="9",
        outcome=borders_inside,
        show=lambda borders: f"{borders} of 9",
        explain="A counter of words meets the end of a paragraph only by chance, and here it never did.",
    ),
    Prediction(
        id="1.p2",
        prompt="One section has 719 tokens, and the limit is 400. Into how many parts is it cut?",
        stub='predict("1.p2", ____)',
        solution="3",
        outcome=parts_of_the_long_section,
        show=lambda parts: f"{parts} parts",
        explain="Two would do by the numbers. But the cut is made at the best place, not at the last possible one, and "
        "neighbours share a sentence.",
    ),
    Prediction(
        id="1.p3",
        prompt="Windows of 48 words: 9 of the 10 facts arrive. Now windows of 96 words, twice as long. How many facts "
        "arrive?",
        stub='predict("1.p3", ____)',
        solution="8",
        outcome=facts_at_96_words,
        show=lambda facts: f"{facts} of 10",
        explain="Longer passages are cut through less often, but one of them fills most of the 120 words.",
    ),
)

KNOWLEDGE = (
    Knowledge(
        id="1.k1",
        question="A border separates a figure from what it belongs to. Who notices?",
        choices=(
            Choice("a", "The chunker, which raises an error.",
                   "It did what it was told: it counted 48 words. Every word is in the index, so nothing is missing."),
            Choice("b", "The search, which gives the torn passage a low score.",
                   "The torn passage came first. It is shorter than the whole table, so its words count for more."),
            Choice("c", "Nobody, unless somebody checks whether the facts arrive.",
                   "That is what the evidence check is for.", right=True),
        ),
    ),
    Knowledge(
        id="1.k2",
        question="Windows that overlap tear no fact in our measurement. What do they cost?",
        choices=(
            Choice("a", "Nothing, the words are there anyway.",
                   "They are there twice: in the index, and sometimes in the context, where they take up room."),
            Choice("b", "Repeated words, and passages without a name.",
                   "101 of 600 words were sent twice in the evidence check. And a window still has no heading to cite.",
                   right=True),
            Choice("c", "Facts, because each window is shorter.",
                   "The windows are as long as before. All ten facts arrived."),
        ),
    ),
    Knowledge(
        id="1.k3",
        question="Why does the lab measure a chunk with the embedding model's own tokenizer?",
        choices=(
            Choice("a", "Because the model reads only so many tokens, and what is beyond is not in the vector.",
                   "And many libraries cut it off without a word.", right=True),
            Choice("b", "Because all tokenizers count alike, so any will do.",
                   "Each model brings its own, and cuts the same sentence into another number of pieces."),
            Choice("c", "Because longer texts are not allowed in the index.",
                   "The index would take them. It is the model that would not read them to the end."),
        ),
    ),
)

MODULE = Module(number="01", title="Chunking", exercises=EXERCISES, predictions=PREDICTIONS, knowledge=KNOWLEDGE)
