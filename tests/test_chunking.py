"""Chunks: along headings, within the token limit, covering everything, quoting exactly."""

import hashlib
from types import SimpleNamespace

import pytest
from garden import count_tokens, document
from hypothesis import given, settings
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import (
    Chunk,
    FixedChunker,
    ParagraphChunker,
    StructureChunker,
    chunk_id,
    make_chunker,
)
from labsupport.pipeline.markdown import to_plain

LONG = "Let the engine cool down before you touch the cutter, and wear gloves while you clean it. " * 3


def words(text: str) -> int:
    """A simple measure for tests: one token a word."""
    return len(text.split())


def cut(source: str, limit: int = 400, count=count_tokens, **changes) -> list[Chunk]:
    made = document(source, **changes)
    chunks = StructureChunker(count, limit).chunk(made)
    check(made, chunks, count, limit)
    return chunks


def check(made, chunks, count=None, limit=None) -> None:
    """What holds for every chunker and every document."""
    plain = to_plain(made).text
    covered = set()
    for number, chunk in enumerate(chunks, 1):
        assert chunk.seq == number
        assert chunk.body == plain[chunk.start:chunk.end]
        assert chunk.body.strip()
        assert chunk.chunk_id == chunk_id(chunk.doc_id, chunk.version, chunk.start, chunk.end)
        assert count is None or count(chunk.text) <= limit
        covered.update(range(chunk.start, chunk.end))
    starts = [chunk.start for chunk in chunks]
    assert starts == sorted(set(starts))
    assert [chunk.end for chunk in chunks] == sorted({chunk.end for chunk in chunks})
    at = len(made.title) + 1
    for line in plain[at:].split("\n"):
        if line.strip():
            assert covered.issuperset(range(at, at + len(line))), f"not in any chunk: {line!r}"
        at += len(line) + 1


def bodies(chunks) -> list[str]:
    return [chunk.body for chunk in chunks]


# Structure


def test_one_chunk_for_each_section():
    intro, starting, storing = cut(
        "# Hedge trimmers\n\nFor hedges.\n\n## Starting\n\nPull.\n\nHold.\n\n## Storing\n\nDry.\n")
    assert (intro.kind, intro.section, intro.breadcrumb) == ("loose", None, ("Hedge trimmers",))
    assert intro.body == "For hedges."
    assert (starting.kind, starting.section, starting.parent) == ("section", "Starting", None)
    assert starting.breadcrumb == ("Hedge trimmers", "Starting")
    assert (starting.start, starting.end, starting.body) == (29, 51, "Starting\n\nPull.\n\nHold.")
    assert starting.text == "Hedge trimmers\nStarting\n\nPull.\n\nHold."
    assert (storing.start, storing.seq, storing.part, storing.parts, storing.section_start) == (53, 3, 1, 1, 53)
    assert (storing.label, storing.audience, storing.effective_to, storing.owner) == (
        "hedge-trimmers v2", "public", None, "Product Care")


def test_the_id_is_a_hash_of_document_version_and_place():
    [chunk] = cut("Oil it.\n")
    assert chunk.chunk_id == hashlib.sha256(b"hedge-trimmers|2|16|23").hexdigest()[:12]


def test_a_long_subsection_is_a_chunk_that_names_its_parent():
    section, first, second = cut(f"## Care\n\nOften.\n\n### Blades\n\n{LONG}\n\n### Oil\n\nA drop.\n")
    assert (section.kind, section.body) == ("section", "Care\n\nOften.")
    assert (first.kind, first.section, first.parent, first.breadcrumb) == (
        "subsection", "Blades", "Care", ("Care", "Blades"))
    assert (second.kind, second.parent) == ("subsection", "Care")  # short, but no neighbour of its parent's text


def test_short_subsections_join_the_text_above_them():
    merged, long, short = cut("## Care\n\nOften.\n\n### Oil\n\nA drop.\n\n#### When\n\nWeekly.\n\n"
                              f"### Blades\n\n{LONG}\n\n### Dust\n\nBrush.\n")
    assert (merged.kind, merged.section, merged.parent) == ("merged", "Care", None)
    assert merged.body == "Care\n\nOften.\n\nOil\n\nA drop.\n\nWhen\n\nWeekly."
    assert (long.section, short.section) == ("Blades", "Dust")


def test_short_subsections_join_a_long_subsection_too():
    care, merged = cut(f"## Care\n\n{LONG}\n\n### Blades\n\n{LONG}\n\n#### Oil\n\nA drop.\n")
    assert (merged.kind, merged.section, merged.parent) == ("merged", "Blades", "Care")
    assert care.kind == "section"


def test_nothing_is_merged_beyond_the_limit():
    source = f"## Care\n\n{LONG}\n\n### Oil\n\nA drop of it.\n"
    whole = words(LONG) + words("Hedge trimmers Care Oil A drop of it.")
    assert [chunk.kind for chunk in cut(source, whole, words)] == ["merged"]
    assert [chunk.kind for chunk in cut(source, whole - 1, words)] == ["section", "subsection"]


def test_a_subsection_of_two_hundred_characters_is_short():
    assert len(cut("## Care\n\nOften.\n\n### Oil\n\n" + "x" * 195 + "\n")) == 1
    assert len(cut("## Care\n\nOften.\n\n### Oil\n\n" + "x" * 196 + "\n")) == 2


def test_sections_of_different_parents_are_never_joined():
    chunks = cut("# Hedge trimmers\n\n## Fees\n\nFor one: $6.\n\n## Hours\n\nDaily.\n\n## Fees\n\nFor ten: $40.\n\n"
                 "# Hedge trimmers\n\n## Fees\n\nFor schools: none.\n\n### Fees\n\nReally.\n")
    assert [chunk.section for chunk in chunks] == ["Fees", "Hours", "Fees", "Fees"]
    assert len({chunk.chunk_id for chunk in chunks}) == 4
    assert ["For one" in chunks[0].body, "For ten" in chunks[2].body, "For schools" in chunks[3].body] == [True] * 3
    again = cut("# Hedge trimmers\n\n## Fees\n\nFor one: $6.\n\n## Hours\n\nDaily.\n\n## Fees\n\nFor ten: $40.\n")
    assert [chunk.chunk_id for chunk in again] == [chunk.chunk_id for chunk in chunks[:3]]


def test_a_short_subsection_never_joins_the_section_before_its_parent():
    chunks = cut("## Care\n\nOften.\n\n## Oil\n\n### When\n\nWeekly.\n")
    assert bodies(chunks) == ["Care\n\nOften.", "Oil\n\nWhen\n\nWeekly."]


def test_sections_are_never_merged_however_short():
    assert bodies(cut("# Annex\n\nAn annex.\n\n## Oil\n\nA drop.\n")) == ["Annex\n\nAn annex.", "Oil\n\nA drop."]


def test_breadcrumbs_when_levels_are_skipped():
    chunks = cut(f"Before all.\n\n# Hedge trimmers\n\n### Starting\n\n{LONG}\n\n## Cutting\n\n{LONG}\n\n##### Thin\n\n"
                 f"{LONG}\n\n### Thick\n\n{LONG}\n\n# Annex\n\nThe end.\n")
    assert [(chunk.kind, chunk.breadcrumb) for chunk in chunks] == [
        ("loose", ()), ("subsection", ("Hedge trimmers", "Starting")), ("section", ("Hedge trimmers", "Cutting")),
        ("subsection", ("Hedge trimmers", "Cutting", "Thin")), ("subsection", ("Hedge trimmers", "Cutting", "Thick")),
        ("section", ("Annex",))]
    assert chunks[1].body.startswith("Hedge trimmers\n\nStarting\n\n")
    assert chunks[1].parent == "Hedge trimmers"


def test_a_heading_without_text_goes_to_the_chunk_below_it():
    first, second = cut("# Hedge trimmers\n\n## Care\n\n---\n\n### Oil\n\nA drop.\n\n### Dust\n\nBrush.\n")
    assert first.body == "Care\n\n---\n\nOil\n\nA drop."
    assert (first.kind, first.section, first.parent, second.section) == ("subsection", "Oil", "Care", "Dust")


def test_a_heading_with_nothing_below_it_is_kept():
    assert bodies(cut("## Care\n\nOften.\n\n## Annex\n\n## Last\n\nText.\n\n## Empty\n")) == [
        "Care\n\nOften.", "Annex", "Last\n\nText.", "Empty"]


def test_text_under_no_heading_stays_by_itself():
    loose, section = cut("Read this first.\n\n- gloves\n- glasses\n\n## Care\n\nOften.\n")
    assert (loose.kind, loose.section, loose.breadcrumb, loose.parent) == ("loose", None, (), None)
    assert section.body == "Care\n\nOften."


@pytest.mark.parametrize("source", ["", "<!-- to do -->\n", "# Hedge trimmers\n", "\n\n"])
def test_a_document_without_text_has_no_chunks(source):
    assert cut(source) == []


@pytest.mark.parametrize(("source", "body", "section"), [
    ("# One\n\n## Two\n", "One\n\nTwo", "Two"),
    ("# Hedge trimmers\n\n## One\n\n## Two\n", "One\n\nTwo", None),
    ("## One\n\n### Two\n\n### Three\n", "One\n\nTwo\n\nThree", "One"),
    ("# One\n\n# Two\n\n---\n", "One\n\nTwo\n\n---", None),
])
def test_a_document_of_headings_only_is_one_chunk(source, body, section):
    [chunk] = cut(source)
    assert (chunk.body, chunk.section) == (body, section)


def test_a_document_without_headings_is_one_chunk():
    assert bodies(cut("Wear gloves.\n")) == ["Wear gloves."]


def test_headings_inside_code_lists_and_quotations_cut_nothing():
    source = "## Log\n\n```sh\n# newest\n## first\n```\n\n- a\n  # b\n\n> # c\n\n## Reset\n\n~~~\n```\n# open\n"
    assert [chunk.section for chunk in cut(source)] == ["Log", "Reset"]


def test_underlined_headings_cut():
    chunks = cut("Care\n----\n\nOften.\n\nOil and\ngrease\n---\n\nA drop.\n\n- x\n---\n")
    assert [chunk.section for chunk in chunks] == ["Care", "Oil and grease"]


@pytest.mark.parametrize(("doc_type", "source", "kinds"), [
    ("screen guide", "## Form\n\nFields.\n", ["screen"]),
    ("help article", "## Form\n\n![The form](../screens/form.png)\n\n## Text\n\nSee screens.\n", ["screen", "prose"]),
    ("guide", "## Pump\n\n![A pump](pictures/pump.png)\n", ["prose"]),
])
def test_content_kind(doc_type, source, kinds):
    assert [chunk.content_kind for chunk in cut(source, doc_type=doc_type)] == kinds


# Fit


def test_what_fits_exactly_is_not_cut():
    source = f"## Care\n\n{LONG}\n"
    [chunk] = cut(source)
    tokens = count_tokens(chunk.text)
    assert len(cut(source, tokens)) == 1
    assert len(cut(source, tokens - 1)) == 2


def test_the_title_counts():
    sentence = "Rinse the cutter in clean water before each use. "
    source = "## Before use\n\n" + sentence * 30 + "The yellow key is number 52.\n"
    title = "A rather long title that stands at the head of every single chunk of this document"
    plain = to_plain(document(source, title=title))
    body_only = count_tokens(plain.text[len(title) + 2:])
    chunks = cut(source, body_only, title=title)
    assert len(chunks) == 2
    assert chunks[-1].body.endswith("The yellow key is number 52.")


def test_parts_are_labelled_and_overlap_by_a_sentence():
    sentences = [f"Step {number} of the yearly service takes about ten minutes." for number in range(60)]
    chunks = cut("## Service\n\n" + " ".join(sentences) + "\n\n## Next\n\nDone.\n", 200)
    parts = chunks[:-1]
    assert len(parts) > 2
    assert [chunk.part for chunk in parts] == list(range(1, len(parts) + 1))
    assert {(chunk.parts, chunk.section, chunk.section_start, chunk.kind) for chunk in parts} == {
        (len(parts), "Service", parts[0].start, "section")}
    for one, two in zip(parts, parts[1:], strict=False):
        repeated = to_plain(document("## Service\n\n" + " ".join(sentences))).text[two.start:one.end]
        assert repeated.strip() in sentences
    assert (chunks[-1].part, chunks[-1].parts) == (1, 1)


def test_the_number_of_a_list_item_is_no_sentence():
    chunks = cut("1. Oil it well today. It costs $5. Keep it dry always.\n", 8, words)
    assert bodies(chunks) == ["1. Oil it well today. ", "It costs $5. ", "Keep it dry always."]
    chunks = cut("1. Oil it well today please. Keep it dry.\n", 7, words)
    assert chunks[0].body == "1. Oil it well today "


def test_an_overlap_is_never_a_part_of_its_own():
    last = "These ten words are repeated at the head of it. "
    source = f"{'word ' * 49}end. {last}\n\nA short sentence follows here and then. {('Long ' * 59 + 'end. ') * 2}"
    chunks = cut(source, 72, words)
    assert chunks[1].body == f"{last}\n\nA short sentence follows here and then. "


def test_a_heading_never_ends_a_part():
    source = "## Care\n\n" + "Twelve words stand in each of these sentences about the hedge trimmer. " * 4
    for limit in range(10, 40):
        assert not any(body.endswith("Care") for body in bodies(cut(source + "\n\n" + source, limit, words)))
    merged = f"## Care\n\n{'Oil it. ' * 12}\n\n### Dust\n\nBrush it off.\n\n### Rust\n\n{'Rub it off. ' * 14}"
    assert [body.split()[-1] for body in bodies(cut(merged, 46, words))] == ["off.", "off."]


def test_paragraphs_that_fit_are_not_cut():
    paragraphs = [f"Paragraph {number}. " + "It says a little more about the engine. " * 6 for number in range(8)]
    chunks = cut("## Engine\n\n" + "\n\n".join(paragraphs) + "\n", 150)
    ends = {chunk.body.rstrip().split("\n\n")[-1] for chunk in chunks}
    assert ends <= {paragraph.strip() for paragraph in paragraphs}


TABLE = ("| Model | From | To | Price |\n|:--|:-:|:-:|--:|\n"
         + "".join(f"| HT-{number} | 0{number % 9}:00 | 17:30 | {number}.50 |\n" for number in range(10, 70)))


def test_a_long_table_is_cut_between_rows_and_repeats_its_header():
    chunks = cut(f"# Hedge trimmers\n\n## Rental\n\nPrices in dollars.\n\n{TABLE}\n## Codes\n\n"
                 "| Code | Meaning |\n|---|---|\n| a\\|b | either |\n| `x|y` | both |\n", 300)
    *parts, codes = chunks
    assert len(parts) > 2
    assert parts[0].body.startswith("Rental\n\nPrices in dollars.\n\nModel | From | To | Price\nHT-10 |")
    assert parts[0].table_header == ""
    for part in parts[1:]:
        assert part.text.startswith("Hedge trimmers\nModel | From | To | Price\nHT-")
        assert "dollars" not in part.text
        assert part.breadcrumb == ("Hedge trimmers", "Rental")
    rows = [line.split(" | ")[0] for part in parts for line in part.body.split("\n") if line.startswith("HT-")]
    assert rows == [f"HT-{number}" for number in range(10, 70)]
    assert codes.body == "Codes\n\nCode | Meaning\na\\|b | either\n`x|y` | both"


def test_a_table_that_fits_is_not_cut_because_of_the_text_before_it():
    rows = "".join(f"| part {number} | {number} |\n" for number in range(12))
    chunks = cut(f"## Parts\n\n{LONG}\n\n{LONG}\n\n| Part | Number |\n|---|---|\n{rows}", 150)
    assert len(chunks) == 2
    assert chunks[1].body.startswith("Part | Number\npart 0 | 0\n")


def test_a_header_never_stands_without_a_row():
    rows = "".join(f"| {'many words ' * 10} | {number} |\n" for number in range(4))
    for limit in range(35, 80):
        chunks = cut(f"## Parts\n\n{'Before. ' * 9}\n\n| Part | Number |\n|---|---|\n{rows}", limit, words)
        assert not any(body.rstrip().endswith("Part | Number") for body in bodies(chunks))


def test_rows_that_fit_with_their_header_are_never_cut():
    rows = [f"{'Many words. ' * 10}| {number}" for number in range(4)]
    source = "## Parts\n\n| Part | Number |\n|---|---|\n" + "".join(f"| {row} |\n" for row in rows)
    for limit in range(27, 60):
        found = bodies(cut(source, limit, words))
        assert all(sum(row in body for body in found) == 1 for row in rows)


def test_a_row_too_long_for_any_part_is_cut_with_its_header():
    row = "It hums. " * 60
    chunks = cut(f"| Fault | Remedy |\n|---|---|\n| noise | {row}|\n| smoke | Switch it off. |\n", 80, words)
    assert [chunk.table_header for chunk in chunks] == [""] + ["Fault | Remedy"] * (len(chunks) - 1)


def test_a_header_too_long_to_repeat_is_not_repeated():
    header = "| " + " | ".join(f"a very long name for column {number}" for number in range(8)) + " |\n"
    chunks = cut(header + "|" + "---|" * 8 + "\n" + "| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |\n" * 10, 90, words)
    assert len(chunks) > 1
    assert {chunk.table_header for chunk in chunks} == {""}


STEPS = """1. Clear the lawn.
   - Pick up the stones.

     Look under the hedge too.

   - Mark the edges.
       - The left edge with string.
       - The right edge with pegs.
2. Choose the cutting height.

   | Grass | Height |
   |-------|--------|
   | dry   | 5      |

3. Start the engine.
"""


def test_a_list_is_cut_between_items_but_never_below_a_first_line():
    plain = to_plain(document(STEPS)).text
    assert plain == "Hedge trimmers\n\n" + STEPS.rstrip("\n")
    for limit in range(24, 60):
        chunks = cut(STEPS, limit, words)
        for chunk in chunks[1:]:
            assert not chunk.body.startswith("   | Grass")
            assert not chunk.body.startswith("   - Pick")
            assert not chunk.body.startswith("       - The left")
        assert "".join(bodies(chunks)).replace("\n", "") == STEPS.replace("\n", "")


def test_code_is_cut_between_lines_only_if_it_alone_is_too_long():
    code = "```sh\n" + "".join(f"step {number} # not a heading\n" for number in range(10)) + "```"
    whole = cut(f"## Log\n\n{'Words before it. ' * 10}\n\n{code}\n", words(code) + 3, words)
    assert code in bodies(whole)
    parts = cut(code + "\n", 40, words)
    assert len(parts) > 1
    assert "\n".join(chunk.body.rstrip("\n") for chunk in parts) == code
    assert [chunk.parts for chunk in parts] == [len(parts)] * len(parts)


def test_code_in_a_list_is_not_cut_because_of_the_line_before_it():
    code = "  ```\n" + "".join(f"  step {number} of the log\n" for number in range(8)) + "  ```"
    chunks = cut(f"- short\n- {'Words before it and no end ' * 4}\n{code}\n- last\n", words(code) + 8, words)
    assert sum(code in chunk.body for chunk in chunks) == 1


def test_a_lead_in_with_a_colon_stays_with_its_list():
    items = "".join(f"- item {number} of the tool box\n" for number in range(6))
    chunks = cut(f"## Tools\n\n{'Some words first. ' * 10}\n\nYou need:\n\n{items}", 50, words)
    assert ["You need:\n\n- item 0" in chunk.body for chunk in chunks] == [False, True]


def test_words_are_cut_only_if_one_alone_is_too_long():
    chunks = cut("blade " * 300 + "\n", 50)
    assert all(set(chunk.body.split()) == {"blade"} for chunk in chunks)
    chunks = cut("ab-" * 400 + "\n", 60)
    assert len(chunks) > 1
    assert "".join(bodies(chunks)) == "ab-" * 400


def test_a_very_long_section_is_cut_whole():
    chunks = StructureChunker(words, 100).chunk(document("Wear gloves when you clean it. " * 10_000))
    assert len(chunks) > 600


def test_a_title_that_leaves_no_room_is_refused_by_name():
    with pytest.raises(LabError, match="documents/hedge-trimmers.md: 8 tokens leave no room .* shorten the title"):
        StructureChunker(count_tokens, 8).chunk(document("Text.\n", title="One title of eight tokens or more"))


# The other chunkers


def test_fixed_windows():
    source = "# Hedge trimmers\n\n" + " ".join(f"w{number}" for number in range(10)) + "\n"
    chunks = FixedChunker(4, 1).chunk(document(source))
    check(document(source), chunks)
    assert [chunk.body.split() for chunk in chunks] == [
        ["w0", "w1", "w2", "w3"], ["w3", "w4", "w5", "w6"], ["w6", "w7", "w8", "w9"]]
    assert {(chunk.kind, chunk.section, chunk.breadcrumb) for chunk in chunks} == {("loose", None, ())}


SHORT_LINES, ONE_LINE = "oil\n" * 60, "trim " * 300


@pytest.mark.parametrize("text", [SHORT_LINES, ONE_LINE])
@pytest.mark.parametrize(("size", "overlap"), [(50, 0), (50, 10), (50, 25), (50, 26), (50, 49), (2, 1), (1, 0)])
def test_fixed_cuts_end_and_move_on(text, size, overlap):
    chunks = FixedChunker(size, overlap).chunk(document(text))
    check(document(text), chunks)
    total = len(text.split())
    assert len(chunks) == max(1, -(-(total - overlap) // (size - overlap)))  # no last chunk of repeated words only


@pytest.mark.parametrize(("size", "overlap"), [(50, 50), (50, 60), (1, 1), (0, 0), (10, -1), (-5, -6)])
def test_impossible_cuts_are_refused_with_both_values(size, overlap):
    with pytest.raises(LabError, match=f"{size} words with {overlap} repeated"):
        FixedChunker(size, overlap)


def test_fixed_windows_shrink_to_the_limit():
    source = "ordinary words and then " + "un-be-liev-ab-ly " * 40 + "and ordinary words again " * 10
    chunks = FixedChunker(60, 20, count_tokens, 100).chunk(document(source))
    check(document(source), chunks, count_tokens, 100)


def test_paragraphs_keep_their_heading():
    source = "# Hedge trimmers\n\nIntro.\n\n## Care\n\n### Oil\n\nA drop.\n\n- a\n- b\n\n---\n\n## Dust\n\nBrush.\n"
    chunks = ParagraphChunker().chunk(document(source))
    check(document(source), chunks)
    assert bodies(chunks) == ["Intro.", "Care\n\nOil\n\nA drop.", "- a\n- b\n\n---", "Dust\n\nBrush."]
    assert [chunk.section for chunk in chunks] == [None, "Oil", "Oil", "Dust"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    for make in (lambda: StructureChunker(words, limit), lambda: FixedChunker(5, 1, words, limit),
                 lambda: ParagraphChunker(words, limit)):
        with pytest.raises(LabError, match=f"limit of {limit}"):
            make()


def test_chunkers_by_name():
    embedder = SimpleNamespace(count_tokens=words, max_tokens=512)
    assert make_chunker("structure", embedder).name == "structure(limit=400,overlap=1,v1)"
    assert make_chunker("structure", SimpleNamespace(count_tokens=words, max_tokens=256)).limit == 200
    assert make_chunker("fixed_48_16", embedder).name == "fixed(words=48,overlap=16,limit=400,v1)"
    labels = ["structure", "paragraphs", "fixed_120_20", "fixed_48_16"]
    assert [make_chunker(label, embedder).label for label in labels] == labels
    assert make_chunker("fixed", embedder).label == "fixed_120_20"
    assert len({make_chunker(label, embedder).name for label in labels}) == 4
    for wrong in ("Structure", "fixed_48", "fixed_a_b", "semantic", ""):
        with pytest.raises(LabError, match="use structure, paragraphs, fixed"):
            make_chunker(wrong, embedder)


def test_a_chunk_survives_json():
    for chunk in cut(f"# Hedge trimmers\n\n## Rental\n\n{TABLE}\n### Note\n\n{LONG}\n", 200):
        assert Chunk.from_dict(chunk.as_dict()) == chunk
        assert isinstance(chunk.as_dict()["breadcrumb"], list)


# Properties


MARKDOWN = st.lists(max_size=60, elements=st.sampled_from([
    "# Hedge trimmers\n\n", "# Other\n", "## Care\n\n", "### Oil\n\n", "##### Deep\n", "\n", "\n\n", "\n\n---\n\n",
    "Word. ", "Two words, no end ", "A sentence that goes on for a while. ", "A question? ", "You need:\n\n", "\t",
    "  ", "longwordwithoutanyspace" * 3 + " ", "\u00a0", "e\u0301\u0323", "🌱 ", "\u2028", "[text](/u) ",
    "<!-- note -->", "\n- item ", "\n  - inner ", "\n1. step ", "\n> quote ", "\n```\ncode\n", "\n```\n",
    "\n\n    indented ",
    "\n\n| a | b |\n|---|---|\n", "| one cell | and another |\n", "![form](screens/f.png) ",
])).map("".join)


@settings(deadline=None)
@given(MARKDOWN, st.integers(16, 60))
def test_any_document_is_covered_within_the_limit(source, limit):
    cut(source, limit, words, title="Hedge trimmers")
    made = document(source)
    for chunker in (FixedChunker(7, 3, words, limit), FixedChunker(5, 0),
                    ParagraphChunker(words, limit), ParagraphChunker()):
        check(made, chunker.chunk(made))


@settings(deadline=None, max_examples=40)
@given(MARKDOWN, st.integers(24, 80))
def test_no_text_over_the_limit_by_the_models_own_tokenizer(source, limit):
    made = document(source)
    for chunker in (StructureChunker(count_tokens, limit), FixedChunker(30, 10, count_tokens, limit),
                    ParagraphChunker(count_tokens, limit)):
        check(made, chunker.chunk(made), count_tokens, limit)


@settings(deadline=None, max_examples=50)
@given(MARKDOWN)
def test_table_rows_stand_in_one_part_each(source):
    made = document(source)
    plain = to_plain(made)
    rows = [row for block in plain.blocks for row in block.rows[1:]]
    chunks = StructureChunker(words, 30).chunk(made)
    for start, end in rows:
        if words(plain.text[start:end]) < 10:
            assert sum(chunk.start < end and start < chunk.end for chunk in chunks) == 1
