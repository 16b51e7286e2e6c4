"""The text alternative of a panel says what its view says: every word, every row, and each status beside its id."""

import re
from dataclasses import replace
from html import unescape

import pytest
from desk import WordVectors, chunk_of
from garden import document
from test_panels import (
    BLADES,
    DEPOSIT,
    MOWER,
    TODAY,
    Scripted,
    desk,  # noqa: F401  a fixture
    hire,
    passages,  # noqa: F401  a fixture
)

from labsupport.lab.panels import assistant, budget, chunks, citations, cost, deletion, evidence, filters, life, search
from labsupport.pipeline.answering import Claim
from labsupport.pipeline.citations import check_answer
from labsupport.pipeline.evidence import CUTS, default_cases, read_cases
from labsupport.pipeline.index import Filters
from labsupport.pipeline.lifecycle import Place
from labsupport.pipeline.markdown import to_plain

PUBLIC = Filters(as_of="2026-06-30", audience="public")
GUIDE = document(MOWER, doc_id="mower", version="1", title="Mower care")
STEPS = [
    deletion.Step("Before", "", (Place("the folder", True, "hire-v2.md"), Place("memory", True, "it holds 3"),
                                 Place("recordings", None, "no folder; `audit` names them"))),
    deletion.Step("The file is gone", "1 removed", (Place("the folder", False, "no such file"),
                                                    Place("memory", True, "it still holds 3"),
                                                    Place("recordings", None, "no folder; `audit` names them"))),
]
# What explains only how the picture is drawn, and the heads of columns, which sentences take the place of.
DRAWING = re.compile(r"In the bar: the ranks of the passages kept(, ★ holds the answer)?\.|Tokens a question; the full "
                     r"width is|✂ the border is inside .*? that two chunks hold\.|★ holds the answer\.|From \S+ to \S+ "
                     r"The dotted line is .*? a dashed one: not\.")

SAID_OTHERWISE = {"yes", "no"}


@pytest.fixture
def views(desk, passages):  # noqa: F811
    answer, context = odd_answer(desk)
    talk = assistant.AssistantPanel(desk, None, TODAY, answerer=Scripted(["The deposit ", "is $95."]))
    talk.answer("How much is the deposit for a tiller?")
    talk.answerer = Scripted(["![The form](screens/hire.png) Yes."], claims=odd_answer(desk)[0].claims[1:3])
    talk.answer("And how late can it be?")
    assert re.search("✗ .* missing_id", talk.shown.text)
    cases = read_cases(default_cases())
    documents = desk.store.documents()
    smallest = min(row.tokens for row in budget.budget_rows(passages, 1500))
    return [
        *(budget.budget_view(passages, most, asked) for most in (1500, smallest) for asked in (BLADES, None)),
        *(cost.cost_view(480, 12_000, 40, size) for size in (40, 200, 5000)),
        *(chunks.chunks_view(GUIDE, cut, WordVectors())
          for cut in ("structure", "fixed_7_0", "fixed_7_3", "fixed_7_5")),
        *(filters.filters_view(desk, "deposit", day, who) for day in ("2026-06-30", "2026-07-01", None)
          for who in ("public", "staff")),
        *(search.search_view(desk, DEPOSIT.text, 3, TODAY, known) for known in (DEPOSIT, None)),
        *(citations.citations_view(answer, context, desk.store, asker) for asker in (TODAY, PUBLIC)),
        *(evidence.evidence_view(one.id, cut, cases) for one in cases.questions for cut in CUTS),
        *(life.life_view(documents, day) for day in ("2026-06-30", "2020-01-01", "2031-01-01")),
        *(deletion.deletion_view(STEPS, at) for at in (1, 2)),
        talk.shown, assistant.assistant_view([]),
    ]


def odd_answer(desk):  # noqa: F811
    """An answer with a citation of every status, and a claim without any."""
    answer, context = hire(desk)
    old, other = chunk_of(desk.store, "hire", "1", "Deposit"), chunk_of(desk.store, "hire", "2", "Late return")
    claims = [Claim("Late costs $15.", (other.chunk_id, "000000000000")), Claim("It was $80.", (old.chunk_id,)),
              Claim("It says “never ever”.", ())]
    return replace(answer, claims=(*answer.claims, *claims)), context


def plain(html):
    """The words of a view, without its style, its tags and the heads of its columns."""
    html = re.sub(r"<style>.*?</style>|<thead>.*?</thead>|<caption>.*?</caption>", " ", html, flags=re.S)
    return DRAWING.sub(" ", " ".join(unescape(re.sub(r"</?(?:b|i|mark|code)\b[^>]*>|<[^>]*>", " ", html)).split()))


def words(text):
    """Words, numbers and ids without what stands around them; signs alone are none."""
    bare = (word.strip("…★✓✗▼✂▌●○–.,;:!?()[]<>|“”\"'-").casefold() for word in text.split())
    return {word for word in bare if word}


def rows(html, caption):
    """The cells of the table with this caption, as plain text."""
    body = re.search(rf"<caption>{re.escape(caption)}</caption>.*?<tbody>(.*?)</tbody>", html, re.S)[1]
    return [[plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)]


def line_of(text, *parts):
    """The line that holds all these; fails where there is none."""
    found = [line for line in text.splitlines() if all(part in line for part in parts)]
    assert found, (parts, text)
    return found[0]


def test_every_word_number_and_id_of_a_view_stands_in_its_text(views):
    assert {view.panel for view in views} == {
        f"{name}Panel" for name in ("Assistant", "Budget", "Chunks", "Citations", "Cost", "Deletion", "Evidence",
                                    "Filters", "Life", "Search")}
    missing = {repr(view): left for view in views
               if (left := words(plain(view.html)) - words(view.text) - SAID_OTHERWISE)}
    assert not missing


def test_each_passage_of_a_budget_stands_with_its_fate(passages):  # noqa: F811
    smallest = min(row.tokens for row in budget.budget_rows(passages, 1500))
    fates = set()
    for most in (1500, smallest):
        view = budget.budget_view(passages, most, BLADES)
        for rank, one, label, section, tokens, answer, fate in rows(view.html, "Passages in the order of the search"):
            line = line_of(view.text, f"{rank}. [{one}] {label}, section {section}: {tokens} tokens", fate[2:])
            assert ("holds the answer" in line) == (answer == "★ yes")
            fates.add(fate.split()[1])
    assert fates == {"kept,", "dropped,"}


def test_each_cost_stands_with_both_ways():
    view = cost.cost_view(480, 12_000, 40, 200)
    for caption, count in (("Estimated from the collection at hand", 3),
                           ("Quoted, not measured here: a run on hosted models", 5)):
        assert len(found := rows(view.html, caption)) == count
        for name, five, whole, times in found:
            line_of(view.text, f"{name}: five passages {five}, whole collection {whole} ({times}).")


@pytest.mark.parametrize("cut", ["structure", "paragraphs", "fixed_7_0", "fixed_7_3", "fixed_7_5"])
def test_the_text_of_a_cut_document_is_all_there_and_each_border_has_what_follows_it(cut):
    view = chunks.chunks_view(GUIDE, cut, WordVectors())
    plain_text, made = to_plain(GUIDE), chunks.make_chunker(cut, WordVectors()).chunk(GUIDE)
    summary, *parts = re.split(r"\n(?=chunk \d+ \[)", view.text)
    assert "the title line" in summary and "Mower care" in summary and len(parts) == len(made)
    groups = []
    for piece in chunks.pieces(plain_text, made):
        groups += [[]] if piece.opens else []
        groups[-1:] = [[*groups[-1], piece]] if groups else []
    for part, chunk, group in zip(parts, made, groups, strict=True):
        border, *lines = part.splitlines()
        assert border == chunks.describe(chunk, chunks.torn(plain_text, chunk.start))
        shown = " ".join(line for line in lines if not line.startswith("   (the next"))
        assert shown.replace("…", "").split() == "".join(piece.text for piece in group).split()
        repeated = [piece for piece in group if len(piece.chunks) > 1 and piece.text.strip()]
        said = re.findall(r"\(the next (?:(\d+) words stand|word stands) in (.*)\)", part)
        assert [int(count or 1) for count, _ in said] == [len(piece.text.split()) for piece in repeated]
        assert [re.findall(r"\d+", where) for _, where in said] == [list(map(str, one.chunks)) for one in repeated]
    assert ("(the next" in view.text) == (cut in ("fixed_7_3", "fixed_7_5"))


def test_long_paragraphs_are_wrapped_between_words_and_rows_of_a_table_are_told_apart():
    row = "| " + " | ".join(["many words in one cell"] * 8) + " |\n"
    text = "## Long\n\n" + "A sentence of six short words. " * 12 + "\n\n" + row + "|" + "---|" * 8 + "\n" + row * 2
    view = chunks.chunks_view(document(f"# Page\n\n{text}", title="Page"), "structure", WordVectors())
    lines = view.text.splitlines()
    assert all(len(line) <= 100 for line in lines if line.startswith("   "))
    assert sum(line.startswith("   many") for line in lines) == 3 and any(line.startswith("     ") for line in lines)
    assert "" in lines[lines.index("   Long") :]


def test_what_a_filtered_search_finds_and_what_is_kept_from_it_stand_with_their_reasons(desk):  # noqa: F811
    view = filters.filters_view(desk, "deposit code for a tiller", "2026-06-30", "public")
    found, kept = view.text.split("Found with bm25:")[1].split("Kept from this search:")
    for rank, label, section, who, force in (there := rows(view.html, "Found with bm25")):
        line_of(found, f"{rank}. {label} | {section} | for {who} | {force}")
    reasons = rows(view.html, "Would be found as well, but is kept from this search")
    for label, section, who, force, why in reasons:
        line_of(kept, f"- {label} | {section} | for {who} | {force} | {why[2:]}")
    assert len(there) >= 2 and {row[0] for row in reasons} >= {"hire v2", "till v3"}


def test_every_result_of_every_method_stands_with_its_score(desk):  # noqa: F811
    view = search.search_view(desk, DEPOSIT.text, 3, TODAY, DEPOSIT)
    blocks = dict(re.findall(r"\n(bm25|dense|hybrid|rerank) \([^\n]*\):\n((?:.+\n?)+)", view.text))
    assert list(blocks) == list(search.METHODS)
    for name, block in blocks.items():
        results = desk.search(DEPOSIT.text, name, 3, TODAY)
        assert len(block.splitlines()) == len(results) == 3
        for result in results:
            chunk = result.chunk
            line = line_of(block, f"{result.rank}. [{chunk.chunk_id}] {chunk.label}, {chunk.section}",
                           search.show_score(result))
            assert ("holds the answer" in line) == (chunk.label == "hire v2" and chunk.section == "Deposit")
    starred = sum("★" in cell for row in rows(view.html, "The same question, four ways") for cell in row)
    assert starred == view.text.count("holds the answer") == 4


@pytest.mark.parametrize("asker", [TODAY, PUBLIC], ids=["staff", "public"])
def test_every_citation_stands_with_its_own_status(desk, asker):  # noqa: F811
    answer, context = odd_answer(desk)
    view = citations.citations_view(answer, context, desk.store, asker)
    blocks = re.split(r"\nClaim \d+: ", view.text.split("Sent with")[0])[1:]
    checked = check_answer(answer, context, desk.store, asker)
    for place, (block, claim) in enumerate(zip(blocks, answer.claims, strict=True)):
        assert block.startswith(claim.text)
        for check in checked.of(place):
            line = line_of(block, f"cites {check.chunk_id}: ")
            assert f": {check.status}, {citations.MEANING[check.status]};" in line
        assert ("uncited" in block) == (not checked.of(place))
    wanted = {"ok", "missing_id", "not_in_context", "not_in_force"} if asker == TODAY else {"not_allowed"}
    assert {check.status for check in checked.checks} >= wanted
    for cells in rows(view.html, "Its claims and what they cite"):
        if cells[1] != "-":
            line_of(view.text, f"cites {cells[1]}: {cells[2].split()[1]},", f"; {cells[3]}; ", f": {cells[4]}")


def test_each_version_stands_with_its_state_and_its_days(desk):  # noqa: F811
    states = set()
    for day in ("2026-06-30", "2026-07-01", "2020-01-01"):
        view = life.life_view(desk.store.documents(), day)
        for row in desk.store.documents():
            states.add(state := life.life_state(row, day))
            line = line_of(view.text, f"{row.label}: {state}; from {row.effective_from}")
            assert line.endswith(f"to {row.effective_to}" if row.effective_to else "no end date")
            assert f"<span>{row.label}</span>" in view.html and f"{life.SIGNS[state]} {state}: " in view.html
    assert states == set(life.SIGNS)


def test_each_place_of_a_deletion_stands_with_its_state_after_every_step():
    assert "<code>audit</code>" in deletion.deletion_view(STEPS, 1).html
    for at, step in enumerate(STEPS, 1):
        view = deletion.deletion_view(STEPS, at)
        assert "`" not in view.html + view.text
        details, steps = view.text.split("\n\n")
        for name, sign, detail in rows(view.html, f"After step {at}"):
            line_of(details, f"{name}: {sign[2:]} ({detail})")
        assert (step.report or "No sync has run.") in details
    assert steps.splitlines() == [
        "Step 1: Before. Found in: the folder, memory. Not kept in: recordings.",
        "Step 2: The file is gone. Found in: memory. Gone from: the folder. Not kept in: recordings.",
    ]
    for name, first, second in rows(view.html, "Six places, after each step"):
        states = {True: "● found", False: "○ gone", None: "– not kept"}
        places = [next(one for one in step.places if one.name == name) for step in STEPS]
        assert [first, second] == [states[one.found] for one in places]


def test_each_fact_of_the_evidence_stands_with_what_became_of_it():
    cases = read_cases(default_cases())
    for one in cases.questions:
        for cut in CUTS:
            view = evidence.evidence_view(one.id, cut, cases)
            result = evidence.check(cases, [cut])["cuts"][cut]
            for fact in next(entry for entry in result if entry["id"] == one.id)["facts"]:
                line = line_of(view.text, f"fact {fact['id']}: ")
                assert line.split(": ")[1].startswith("covered" if fact["covered"] else "not covered")


def test_each_claim_of_an_answer_stands_with_its_checks(desk):  # noqa: F811
    good = chunk_of(desk.store, "hire", "2", "Deposit").chunk_id
    claims = (Claim("2. Pay $95.", (good, "000000000000")), Claim("- Bring it back.", ()))
    panel = assistant.AssistantPanel(desk, None, TODAY, answerer=Scripted(["Pay."], claims=claims))
    text = panel.answer("How much is the deposit for a tiller?").text
    assert f"Claim 1: Pay $95. ✓ {good}, ✗ 000000000000 missing_id" in text.splitlines()
    assert "Claim 2: Bring it back. ✗ cites nothing" in text.splitlines()
    assert f"[{good}] hire v2, Deposit" in line_of(text, "Sent: ") and "(answered, 2 claims, 1 of 2" in text


@pytest.mark.parametrize(("claim", "shown"), [
    ("3. Bring the item.", "Bring the item."), ("- Normal wear", "Normal wear"), ("12) Wait.", "Wait."),
    ("3.5 hours", "3.5 hours"), ("-5 °C is cold.", "-5 °C is cold."), ("2026. A year.", "2026. A year."),
    ("3. ", "3. "),
])
def test_a_claim_is_shown_without_the_mark_of_its_list_and_stays_as_it_is(claim, shown, desk):  # noqa: F811
    answer, context = hire(desk)
    answer = replace(answer, claims=(Claim(claim, ()),))
    view = citations.citations_view(answer, context, desk.store, TODAY)
    assert f"Claim 1: {shown}" in view.text.splitlines() and f"<td>1. {shown}</td>" in view.html
    assert answer.claims[0].text == claim
