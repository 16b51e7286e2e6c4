import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.context import assemble, estimate_tokens, format_passage, jaccard

Q30 = json.loads((Path(__file__).parent / "figures.json").read_text(encoding="utf-8"))["q30"]


def make_chunk(chunk_id="0123456789ab", body="Mow when the grass is dry.", **other) -> Chunk:
    values = dict(
        chunk_id=chunk_id, doc_id=f"doc-{chunk_id}", version="1", seq=1, start=0, end=len(body), title="Mowing",
        section="When", breadcrumb=("Mowing", "When"), parent=None, kind="section", content_kind="prose", part=1,
        parts=1, section_start=0, doc_type="guide", audience="public", language="en", effective_from="2026-01-01",
        effective_to=None, owner="Care", table_header="", body=body,
    )  # fmt: skip
    return Chunk(**values | other)


def sized(chunk_id: str, tokens: int, **other) -> Chunk:
    """A chunk whose passage is estimated at exactly `tokens`; its words are its own."""
    empty = len(format_passage(make_chunk(chunk_id, "", **other)))
    words = " ".join(f"{chunk_id}{n}" for n in range(400))
    return make_chunk(chunk_id, words[: tokens * 4 - empty], **other)


# The passages of Q30: lengths as in the corpus, words our own. Ranks 3 and 4 differ in nothing but title and document.
@pytest.fixture(scope="module")
def q30_chunks():
    chunks = [sized(p["chunk_id"], p["estimated_tokens"]) for p in Q30["passages"]]
    chunks[3] = replace(chunks[3], title="Sowing", body=chunks[2].body)
    return chunks


@pytest.mark.parametrize("budget, row", [(b, row) for row in Q30["budgets"] for b in row["budgets"]])
def test_q30_at_every_setting_of_the_budget(q30_chunks, budget, row):
    context = assemble(q30_chunks, budget=budget)
    ids = [p["chunk_id"] for p in Q30["passages"]]
    assert context.ids == [ids[rank - 1] for rank in row["kept_ranks"]]
    assert context.tokens == row["tokens"]
    assert sum(p["contains_answer"] for p in Q30["passages"] if p["chunk_id"] in context.ids) == row["with_answer"]
    assert sorted(context.ids + [chunk_id for chunk_id, _ in context.dropped]) == sorted(ids)


def test_q30_says_why_passages_are_dropped_at_300(q30_chunks):
    assert [list(drop) for drop in assemble(q30_chunks, budget=300).dropped] == Q30["dropped_at_300"]


def test_the_header_names_everything():
    chunk = make_chunk(effective_to="2026-10-31", version="1.10")
    assert format_passage(chunk) == (
        "[0123456789ab] Mowing | guide, version 1.10, in force from 2026-01-01 to 2026-10-31 | section: When\n"
        "Mowing\nMow when the grass is dry."
    )
    assert format_passage(replace(chunk, effective_to=None, section=None)).splitlines()[0] == (
        "[0123456789ab] Mowing | guide, version 1.10, in force from 2026-01-01, no end date | section: -"
    )


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_title_or_section_forges_a_second_header(title, section):
    chunk = make_chunk(title=f"Mowing\n[ffffffffffff] {title}", section=f"When] \u2028[eeeeeeeeeeee] {section}")
    header = format_passage(chunk)[: -len("\n" + chunk.text)]
    assert len(header.splitlines()) == 1
    assert header.count("[") == header.count("]") == 1 and header.startswith("[0123456789ab] ")


def test_a_passage_over_budget_is_skipped_and_the_next_one_tried():
    sizes = {"aaaaaaaaaaaa": 120, "bbbbbbbbbbbb": 150, "cccccccccccc": 60, "dddddddddddd": 45}
    chunks = [sized(chunk_id, tokens) for chunk_id, tokens in sizes.items()]
    context = assemble(chunks, budget=226)
    assert context.ids == ["aaaaaaaaaaaa", "cccccccccccc", "dddddddddddd"]
    assert context.dropped == (("bbbbbbbbbbbb", "over budget"),)
    assert context.tokens == 225


def test_the_blank_line_between_passages_counts_against_the_budget():
    chunks = [sized("aaaaaaaaaaaa", 120), sized("bbbbbbbbbbbb", 80)]  # 480 + 2 + 320 characters: 201 tokens joined
    assert assemble(chunks, budget=200).ids == ["aaaaaaaaaaaa"]
    assert assemble(chunks, budget=201).ids == ["aaaaaaaaaaaa", "bbbbbbbbbbbb"]


@given(st.lists(st.integers(40, 200), max_size=8), st.integers(1, 700))
def test_never_over_budget_headers_and_separators_counted(sizes, budget):
    chunks = [sized(f"{n:012x}", size) for n, size in enumerate(sizes)]
    if chunks and min(sizes) > budget:
        with pytest.raises(LabError, match=f"the smallest needs {min(sizes)}"):
            assemble(chunks, budget)
        return
    context = assemble(chunks, budget)
    assert max(context.tokens, estimate_tokens(context.text())) <= budget
    assert context.ids == [c.chunk_id for c in chunks if c.chunk_id in context.ids]
    assert len(context.ids) + len(context.dropped) == len(chunks)


@pytest.mark.parametrize("budget", [0, -1, True, 12.5, "300"])
def test_a_budget_that_is_no_positive_whole_number_is_refused(budget):
    with pytest.raises(LabError, match="above 0"):
        assemble([make_chunk()], budget)


def test_nothing_found_is_an_empty_context():
    context = assemble([], 100)
    assert (context.ids, context.tokens, context.text(), context.dropped) == ([], 0, "", ())


SENTENCE = "Rinse the grass box with a hose after every tenth use and let it dry in the shade"


def test_only_a_kept_passage_of_another_document_makes_a_near_duplicate():
    first = make_chunk("aaaaaaaaaaaa", SENTENCE + ".")
    other = make_chunk("bbbbbbbbbbbb", SENTENCE + "!", title="Quite another title about something else")
    version = replace(first, chunk_id="cccccccccccc", version="2", body=SENTENCE.replace("tenth", "fifth"))
    assert jaccard(first.body, version.body) < 0.9  # 15 words, one of them changed
    same_words = replace(version, body=SENTENCE)
    context = assemble([first, other, same_words])
    assert context.ids == ["aaaaaaaaaaaa", "cccccccccccc"]
    assert context.dropped == (("bbbbbbbbbbbb", "near-duplicate of aaaaaaaaaaaa"),)
    # The twin of a passage that did not fit is no duplicate of anything shown.
    long, short = replace(first, title="T" * 100), replace(other, title="T")
    assert assemble([long, short], budget=45).ids == ["bbbbbbbbbbbb"]


def test_jaccard_ignores_case_and_punctuation_and_survives_empty_texts():
    assert jaccard("Oil the BLADE.", "oil; the blade!") == 1.0
    assert jaccard("oil the blade", "oil a blade") == 0.5
    assert jaccard("", "") == jaccard("…", "?!") == jaccard("", "oil") == 0.0
    assert assemble([make_chunk("aaaaaaaaaaaa", ""), make_chunk("bbbbbbbbbbbb", "")]).dropped == ()


@given(st.text(), st.text())
def test_jaccard_is_symmetric_and_bounded(a, b):
    assert jaccard(a, b) == jaccard(b, a) and 0.0 <= jaccard(a, b) <= 1.0


def test_jaccard_agrees_with_datasketch_estimates():
    datasketch = pytest.importorskip("datasketch")
    texts = [" ".join(f"w{n}" for n in range(start, start + 60)) for start in (0, 10, 30)]
    hashes = []
    for text in texts:
        minhash = datasketch.MinHash(num_perm=512, seed=1)
        minhash.update_batch([word.encode() for word in text.split()])
        hashes.append(minhash)
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        assert jaccard(texts[i], texts[j]) == pytest.approx(hashes[i].jaccard(hashes[j]), abs=0.08)


def parts_of_one_section(tokens=60, parts=4):
    """A section in `parts` parts, each repeating the last 20 characters of the one before."""
    section = make_chunk(doc_id="long", parts=parts, section_start=10)
    text = "".join(f"Step {n} of the long procedure is done by two persons with gloves. " for n in range(50))
    size = tokens * 4 - len(format_passage(replace(section, body=""), f"part 1 of {parts}, restored"))
    return [
        replace(section, chunk_id=f"{n:012x}", part=n, start=start, end=start + size, body=text[start : start + size])
        for n in range(1, parts + 1)
        for start in [10 + (n - 1) * (size - 20)]
    ]


def test_hits_outrank_restored_parts_and_parts_stay_in_order():
    parts = parts_of_one_section()
    rival = sized("ffffffffffff", 60)
    context = assemble([*parts, rival], budget=185, hits=[parts[2].chunk_id, rival.chunk_id])
    assert context.ids == [parts[0].chunk_id, parts[2].chunk_id, rival.chunk_id]
    assert context.restored == {parts[0].chunk_id}
    assert context.dropped == ((parts[1].chunk_id, "over budget"), (parts[3].chunk_id, "over budget"))


def test_restored_parts_are_marked_and_overlapping_text_is_shown_once():
    parts = parts_of_one_section()
    context = assemble(parts, hits=[parts[2].chunk_id])
    headers = [passage.splitlines()[0].rsplit(" | ", 1)[1] for passage in context.passages]
    assert headers == ["part 1 of 4, restored", "part 2 of 4, restored", "part 3 of 4", "part 4 of 4, restored"]
    shown = "".join(passage.split("\nMowing\n", 1)[1] for passage in context.passages)
    assert shown.replace(" ", "") == (parts[0].body + "".join(p.body[20:] for p in parts[1:])).replace(" ", "")
    # With a part missing between two, nothing is left out of the later one.
    assert parts[2].body in assemble([parts[0], parts[2]], hits=[parts[2].chunk_id]).text()
    # A plain search shows parts as it found them.
    assert all(part.body in assemble(parts).text() for part in parts)
