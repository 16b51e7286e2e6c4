"""The course's corpus, held together: documents, chunks, inventory, questions, screenshots, figures."""

import csv
import json
import re
import struct
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest

from labsupport.pipeline.chunking import LIMIT, StructureChunker, chunk_id
from labsupport.pipeline.context import assemble, estimate_tokens, format_passage, jaccard, word_set
from labsupport.pipeline.corpus import (
    KEYS,
    InventoryRow,
    course_defaults,
    read_document,
    read_documents,
    read_inventory,
    read_questions,
)
from labsupport.pipeline.embedding import load_embedder
from labsupport.pipeline.markdown import to_plain

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "corpus"
FIGURES = json.loads((ROOT / "tests" / "figures.json").read_text(encoding="utf-8"))
Q30 = FIGURES["q30"]
FRONT = ["doc_id", "version", "title", "doc_type", "audience", "language", "effective_from", "effective_to", "owner"]
KINDS = {  # kind of question: how many at least
    "one fact": 5, "two facts": 5, "comparison": 3, "table look-up": 3, "product code": 3, "follow-up": 3,
    "cross-language": 5, "out of scope": 8, "staff only": 6, "date dependent": 4, "screen": 5,
    "near-duplicate guides": 2, "contradiction": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def documents():
    return read_documents(CORPUS)


@pytest.fixture(scope="module")
def plain(documents):
    return {(document.doc_id, document.version): to_plain(document).text for document in documents}


@pytest.fixture(scope="module")
def chunker():
    return StructureChunker(load_embedder().count_tokens)


@pytest.fixture(scope="module")
def chunks(documents, chunker):
    return [chunk for document in documents for chunk in chunker.chunk(document)]


@pytest.fixture(scope="module")
def by_id(chunks):
    return {chunk.chunk_id: chunk for chunk in chunks}


@pytest.fixture(scope="module")
def questions():
    return {question.qid: question for question in read_questions(CORPUS)}


def find(chunks, doc_id, version, section):
    [chunk] = [c for c in chunks if (c.doc_id, c.version, c.section) == (doc_id, version, section)]
    return chunk


# documents and chunks


def test_counts(documents, chunks, questions):
    staff = [document for document in documents if document.audience == "staff"]
    assert {
        "documents": len(documents), "chunks": len(chunks), "questions": len(questions),
        "staff_only_procedures": len(staff),
        "default_as_of": course_defaults(CORPUS)[0], "default_audience": course_defaults(CORPUS)[1],
    } == FIGURES["corpus"]  # fmt: skip
    assert {document.doc_type for document in staff} == {"procedure"}
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


@pytest.mark.parametrize("known", FIGURES["known_chunks"], ids=lambda known: known["chunk_id"])
def test_known_chunks(known, by_id, plain):
    chunk = by_id[known["chunk_id"]]
    assert {key: getattr(chunk, key) for key in known if known[key] is not None} == {
        key: value for key, value in known.items() if value is not None
    }
    assert chunk.section, "a section that the figures leave open still has a name"
    assert chunk.body == plain[chunk.doc_id, chunk.version][known["start"] : known["end"]]
    assert chunk.chunk_id == chunk_id(known["doc_id"], known["version"], known["start"], known["end"])


def test_file_form(documents):
    for document in documents:
        lines = (CORPUS / document.path).read_text(encoding="utf-8").split("\n")
        assert [line.split(":")[0] for line in lines[1:10]] == FRONT, document.path
        assert lines[10] == "---" and lines[11] == f"# {document.title}", document.path
    versions = Counter(document.doc_id for document in documents)
    names = {
        f"documents/{d.doc_id}-v{d.version}.md" if versions[d.doc_id] > 1 else f"documents/{d.doc_id}.md"
        for d in documents
    }
    assert names == {document.path for document in documents}


def test_chunks_of_every_kind(chunks):
    assert {chunk.kind for chunk in chunks} == {"section", "subsection", "merged", "loose"}
    assert {chunk.doc_type for chunk in chunks if chunk.content_kind == "screen"} == {"screen guide"}
    cut = Counter((chunk.doc_id, chunk.section) for chunk in chunks if chunk.parts > 1)
    assert cut == {("returns-desk-procedure", "Inspecting a returned item"): 3}
    count = load_embedder().count_tokens
    assert all(count(chunk.text) <= LIMIT for chunk in chunks)


def test_gift_cards_after_edit(chunker, tmp_path):
    source = (CORPUS / "documents" / "gift-cards.md").read_text(encoding="utf-8")
    assert source.count("in your account") == 1
    path = tmp_path / "documents" / "gift-cards.md"
    path.parent.mkdir()
    path.write_text(source.replace("in your account", "in your Larkfield account"), encoding="utf-8", newline="\n")
    edited = chunker.chunk(read_document(path, tmp_path))
    found = [{"start": chunk.start, "end": chunk.end, "chunk_id": chunk.chunk_id} for chunk in edited]
    assert found == FIGURES["gift_cards_after_edit"]["chunks"]


def test_return_versions(documents):
    dates = {d.version: (d.effective_from, d.effective_to) for d in documents if d.doc_id == "returns-policy"}
    assert dates["3"][1] == "2026-10-31" and dates["4"] == ("2026-11-01", None)


# similarity and the passages of Q30


def test_similar_return_windows(chunks):
    figures = FIGURES["similarity"]["returns-policy 'Return window' v3 against v4"]
    old, new = (word_set(find(chunks, "returns-policy", version, "Return window").body) for version in "34")
    assert (len(old & new), len(old | new)) == (figures["shared"], figures["distinct"])
    assert sorted(old ^ new) == figures["differing_words"]
    assert round(len(old & new) / len(old | new), 3) == figures["jaccard"]


def test_similar_parts(chunks):
    figures = FIGURES["similarity"]["product-care-pw2200 'Parts' against product-care-pw2400 'Parts'"]
    one, other = find(chunks, "product-care-pw2200", "2", "Parts"), find(chunks, "product-care-pw2400", "1", "Parts")
    assert round(jaccard(one.body, other.body), 3) == figures["jaccard"]


def test_winter_storage(by_id):
    one, other = by_id["50f5713033a7"].body, by_id["08705a17f766"].body
    assert one == other and jaccard(one, other) == Q30["winter_storage"]["jaccard"]
    assert len(word_set(one)) == len(word_set(other)) == Q30["winter_storage"]["distinct_words_each"]


@pytest.mark.parametrize("passage", Q30["passages"], ids=lambda passage: passage["chunk_id"])
def test_q30_passages(passage, by_id, questions):
    chunk = by_id[passage["chunk_id"]]
    assert estimate_tokens(format_passage(chunk)) == passage["estimated_tokens"]
    held = any(
        (fact.doc_id, fact.version) == (chunk.doc_id, chunk.version) and fact.quotation in chunk.body
        for fact in questions["Q30"].facts
    )
    assert held == passage["contains_answer"]


BUDGETS = [(budget, row) for row in Q30["budgets"] for budget in row["budgets"]]


@pytest.mark.parametrize(("budget", "row"), BUDGETS, ids=[str(budget) for budget, _ in BUDGETS])
def test_q30_budgets(budget, row, by_id):
    ranks = {passage["chunk_id"]: passage["rank"] for passage in Q30["passages"]}
    answering = {passage["chunk_id"] for passage in Q30["passages"] if passage["contains_answer"]}
    context = assemble([by_id[identity] for identity in ranks], budget=budget)
    assert [ranks[identity] for identity in context.ids] == row["kept_ranks"]
    assert (context.tokens, len(answering & set(context.ids))) == (row["tokens"], row["with_answer"])
    if budget == 300:
        assert [list(drop) for drop in context.dropped] == Q30["dropped_at_300"]


def test_q30_is_answered_by_two_documents_only(documents, plain):
    about = {d.doc_id for d in documents if re.search(r"\bpumps?\b", plain[d.doc_id, d.version], re.IGNORECASE)}
    assert about == {"warranty-policy", "warranty-claims-procedure", "product-care-pw2200", "product-care-pw2400"}


# what the lessons need


def holding(documents, plain, pattern):
    return {d.doc_id for d in documents if re.search(pattern, plain[d.doc_id, d.version], re.IGNORECASE)}


def test_how_to_start_a_return_stands_in_four_documents(documents, plain):
    found = holding(documents, plain, r"\bstart(ing)? (a|an|your|the) return\b")
    assert found == {"returns-policy", "help-centre-faq", "contact-and-hours", "screen-return-form"}


def test_extended_warranties_in_french_only(documents, plain):
    assert holding(documents, plain, r"extended|extension of (the|a) warranty|longer warranty") == set()
    assert holding(documents, plain, r"extensions? de garantie") == {"extensions-de-garantie"}
    french = {document.doc_id for document in documents if document.language == "fr"}
    assert french == {"extensions-de-garantie", "livraison-et-retrait", "entretien-tondeuse-lm400"}


def test_vendor_text_tries_to_steer(documents, plain):
    [vendor] = [document for document in documents if document.doc_type == "vendor content"]
    assert holding(documents, plain, r"ignore your earlier instructions") == {vendor.doc_id}


def test_double_billing_is_for_staff(documents, plain):
    public = [document for document in documents if document.audience == "public"]
    assert holding(documents, plain, r"(billed|charged|paid) twice") == {"billing-corrections-procedure"}
    assert holding(public, plain, r"(second|extra|double|duplicate) charge") == set()


def test_policy_and_faq_contradict_each_other_once(plain):
    for version in "34":
        assert "at most 5 business days" in plain["returns-policy", version]
    assert "up to 10 business days" in plain["help-centre-faq", "7"]
    ranks = plain["policy-governance", "2"]
    assert ranks.index("1. A policy") < ranks.index("3. A help article")


def test_screenshots(documents, plain, chunks):
    linked = Counter()
    for document in documents:
        links = re.findall(r"!\[([^\]]+)\]\((screens/[^)]+\.png)\)", plain[document.doc_id, document.version])
        if document.doc_type == "screen guide":
            assert 2 <= len(links) <= 3 and all(len(words) > 20 for words, _ in links), document.path
        else:
            assert not links, document.path
        linked.update(target for _, target in links)
    assert set(linked) == {path.relative_to(CORPUS).as_posix() for path in (CORPUS / "screens").glob("*.png")}
    assert sum("](screens/" in chunk.text for chunk in chunks) == len(linked) == sum(linked.values())
    for target in linked:
        data = (CORPUS / target).read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) < 30_000, target
        assert 400 <= width <= 800 and 200 <= height <= 600, target


def test_inventory_matches(documents):
    rows = read_inventory(CORPUS)
    assert len(rows) == len(set(rows))
    assert set(rows) == {InventoryRow(**{key: getattr(document, key) for key in KEYS}) for document in documents}


# questions


def test_question_ids_and_splits(questions):
    assert list(questions) == [f"Q{number:02}" for number in range(1, 68)]
    split = {name: {q.kind for q in questions.values() if q.split == name} for name in ("tune", "test")}
    assert split["tune"] == split["test"] == set(KINDS)
    assert 20 <= sum(question.split == "tune" for question in questions.values()) <= 28
    assert {questions[qid].split for qid in ("Q01", "Q13", "Q22", "Q30", "Q51")} == {"test"}


def test_question_kinds(questions):
    counts = Counter(question.kind for question in questions.values())
    assert all(counts[kind] >= least for kind, least in KINDS.items()), counts
    for question in questions.values():
        assert question.answerable == bool(question.facts), question.qid
        assert bool(question.history) == (question.kind == "follow-up"), question.qid
        if question.kind == "out of scope":
            assert not question.answerable, question.qid
        if question.kind in ("two facts", "comparison"):
            assert len(question.facts) == 2, question.qid
    assert {question.language for question in questions.values()} == {"en", "fr"}


def test_quotations(questions, plain, chunks):
    faults = []
    for question in questions.values():
        for fact in question.facts:
            found = plain[fact.doc_id, fact.version].count(fact.quotation)
            if found != 1:
                faults.append(f"{question.qid}: {fact.quotation!r} is {found} times in {fact.doc_id} v{fact.version}")
            elif not any(
                (chunk.doc_id, chunk.version, chunk.section or "") == (fact.doc_id, fact.version, fact.section)
                and fact.quotation in chunk.text
                for chunk in chunks
            ):
                faults.append(f"{question.qid}: {fact.quotation!r} is not in the section {fact.section!r}")
            if fact.fact not in fact.quotation:
                faults.append(f"{question.qid}: the fact {fact.fact!r} is not in its quotation")
    assert not faults, "\n".join(faults)


def test_answers_are_allowed_and_in_force(questions, documents):
    by_version = {(document.doc_id, document.version): document for document in documents}
    ended = set()
    for question in questions.values():
        sources = [by_version[fact.doc_id, fact.version] for fact in question.facts]
        assert question.audience == "staff" or all(source.audience == "public" for source in sources), question.qid
        for source in sources:
            if not source.effective_from <= question.as_of <= (source.effective_to or "9999-12-31"):
                ended.add(question.qid)
        if question.kind == "staff only" and question.answerable:
            assert {source.audience for source in sources} == {"staff"}, question.qid
        if question.kind == "cross-language":
            assert question.language not in {source.language for source in sources}, question.qid
    # Asked later, but the day of delivery decides.
    assert ended == {"Q22", "Q60"}
    staff_only = [question for question in questions.values() if question.kind == "staff only"]
    assert sum(question.answerable for question in staff_only) >= 6
    assert {q.audience for q in staff_only if not q.answerable} == {"public"}


def test_fixed_questions(questions):
    assert astuple(questions["Q30"])[1:5] == (Q30["question"], "en", Q30["as_of"], Q30["audience"])
    assert [fact.doc_id for fact in questions["Q01"].facts] == ["billing-corrections-procedure"]
    assert (questions["Q13"].language, questions["Q13"].facts[0].doc_id) == ("en", "extensions-de-garantie")
    assert (questions["Q22"].facts[0].fact, questions["Q22"].facts[0].version) == ("30 days", "3")
    assert questions["Q22"].as_of > "2026-11-01" and "20 October" in questions["Q22"].text
    assert [fact.doc_id for fact in questions["Q51"].facts] == ["staff-discount-and-perks"] * 2
    assert (questions["Q01"].audience, questions["Q51"].audience) == ("staff", "staff")


def test_reference_answers(questions):
    with (CORPUS / "reference_answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["qid"] for row in rows] == list(questions)
    assert all(len(row["reference_answer"]) >= 8 for row in rows)
