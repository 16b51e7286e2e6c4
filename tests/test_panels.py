"""Panels by the values of their controls, and the rules that hold for every one of them."""

import ast
import re
import threading
from datetime import date
from html import unescape
from pathlib import Path

import ipywidgets as widgets
import pytest
from desk import WordReranker, WordVectors, build_desk, chunk_of, context_of
from garden import document

from labsupport.lab.panels import (
    assistant,
    base,
    budget,
    chunks,
    citations,
    controls,
    cost,
    deletion,
    evidence,
    filters,
    life,
    pictures,
    search,
)
from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer, Claim
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.corpus import Fact, Question
from labsupport.pipeline.index import Filters
from labsupport.pipeline.lifecycle import Place
from labsupport.pipeline.markdown import to_plain
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store

STORAGE = "Drain the water before the first frost. Keep the machine dry, indoors and above 0 °C until spring."
MOWER = f"""# Mower care

## Blades & <b>belts</b>

Sharpen the blades every 25 hours of mowing. A blade costs $5 to $10 and lasts two seasons.

## Winter storage

{STORAGE}
"""
TRIMMER = f"""# Trimmer care

## Winter storage

{STORAGE}
"""
BLADES = Question("G1", "How often are mower blades sharpened?", "en", "2026-10-09", "public", True, "one fact", "tune",
                  facts=(Fact("25 hours", "every 25 hours of mowing", "mower", "1", "Blades & belts"),))


@pytest.fixture
def passages():
    """Three passages of two documents: one with the answer, and two with the same text."""
    chunker = StructureChunker(lambda text: len(text.split()))
    mower = document(MOWER, doc_id="mower", version="1", title="Mower care")
    trimmer = document(TRIMMER, doc_id="trimmer", version="1", title="Trimmer care")
    return [*chunker.chunk(mower), *chunker.chunk(trimmer)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A retriever over the help desk of tools for hire."""
    _, index = build_desk(tmp_path_factory.mktemp("desk"))
    with Store(index) as store:
        yield Retriever(store, WordVectors(), WordReranker())


DEPOSIT = Question("H1", "How much is the deposit for a tiller?", "en", "2026-08-01", "public", True, "one fact",
                   "tune", facts=(Fact("$95", "deposit for a hired tiller is $95", "hire", "2", "Deposit"),))
TODAY = Filters(as_of="2026-08-01", audience="staff")


def hire(desk):
    """An answer about the deposit with two claims, and what was sent with the question."""
    context = context_of(desk.store, ("hire", "2", "Deposit"), ("till", "3", "Waiving the deposit"))
    claims = (Claim("The deposit is $95.", (context.ids[0],)), Claim("A shift lead may waive it.", (context.ids[1],)))
    return Answer(True, "The deposit is $95; a shift lead may waive it.", claims), context


class Scripted:
    """Answers with these words, citing the first passage; `gate` holds it up after the first."""

    name, model = "scripted", "none"

    def __init__(self, words, gate=None, claims=None):
        self.words, self.gate, self.claims, self.asked = words, gate, claims, []

    def stream(self, question, context, *, prompt, intent):
        self.asked.append(question)
        for place, word in enumerate(self.words):
            if place and self.gate:
                assert self.gate.wait(20)
            yield word
        text = "".join(self.words)
        claims = self.claims or (Claim(text, tuple(context.ids[:1])),)
        yield Answer(True, text, claims, model=self.model)


@pytest.fixture
def panels(passages, desk):
    answer, context = hire(desk)
    return [
        budget.BudgetPanel(passages, BLADES),
        cost.CostPanel(480, 12_000, 40),
        chunks.ChunksPanel([document(MOWER, doc_id="mower")], WordVectors()),
        filters.FiltersPanel(desk, "deposit", "2026-08-01", "staff", [DEPOSIT]),
        search.SearchPanel(desk, "H1", [DEPOSIT], TODAY),
        citations.CitationsPanel(answer, context, desk.store, TODAY),
        evidence.EvidencePanel(),
        life.LifePanel(desk.store.documents(), "2026-08-01"),
        assistant.AssistantPanel(desk, None, TODAY, "H1", [DEPOSIT], Scripted(["The deposit ", "is $95."])),
        deletion.DeletionPanel([deletion.Step("Before", "", (Place("the folder", True, "hire-v2.md"),))]),
    ]


def test_every_panel_keeps_the_rules(panels):
    for panel in panels:
        inside = list(base.everything_in(panel))
        assert not any(isinstance(one, widgets.Output) for one in inside)
        assert re.fullmatch(r"\d+px", panel.view.layout.height) and panel.view.layout.overflow == "auto"
        assert all(one.continuous_update is False for one in inside if hasattr(one, "continuous_update")), panel
        sliders = [one for one in inside if isinstance(one, widgets.IntSlider | widgets.SelectionSlider)]
        boxes = [one for one in inside if isinstance(one, widgets.BoundedIntText)]
        assert len(boxes) >= len(sliders)
        assert all(one.description for one in sliders) and all(box.tooltip or box.description for box in boxes)
        assert all(one.tooltip for one in inside if getattr(one, "description", ""))
        assert repr(panel) == repr(panel.shown) and repr(panel).startswith(type(panel).__name__ + ": ")
        assert "\n" not in repr(panel)
        assert panel.view.value == panel.shown.html and panel.shown.text in unescape(panel.alternative.value)
        # Drop-downs get an arrow that is seen in the dark.
        assert "lab-controls" in panel._dom_classes and base.CONTROLS in panel.alternative.value


def test_the_text_alternative_opens_with_a_button_and_stays_open(panels):
    for panel in panels:
        assert panel.alternative.layout.display == "none"
        panel.as_text.value = True
        panel.refresh()
        assert panel.alternative.layout.display is None


def test_a_notebook_is_given_the_widget_the_line_and_a_view_for_readers_without_a_kernel(panels):
    for panel in panels:
        bundle = panel._repr_mimebundle_()
        assert bundle["text/plain"] == repr(panel) and bundle["text/html"] == panel.shown.html
        assert "application/vnd.jupyter.widget-view+json" in bundle


# Colours: a mark must stand out from white and from the dark theme's background (WCAG 2.2, 1.4.11: 3:1).


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", sorted({base.GOOD, base.BAD, base.OTHER, base.QUIET, *base.CATEGORIES}))
def test_colours_stand_out_in_light_and_dark(colour):
    assert contrast(colour, "#ffffff") >= 3 and contrast(colour, "#111111") >= 3


# The budget explorer


def test_the_budget_decides_what_is_kept_and_the_row_says_why(passages):
    blades, storage, twin = passages
    rows = budget.budget_rows(passages, 1500, BLADES)
    sizes = [row.tokens for row in rows]
    assert [row.fate for row in rows] == [
        f"kept, tokens 1–{sizes[0]}",
        f"kept, tokens {sizes[0] + 1}–{sizes[0] + sizes[1]}",
        f"dropped, near-duplicate of {storage.chunk_id}",
    ]
    assert [row.answer for row in rows] == [True, False, False]
    assert sizes[1] < sizes[0]
    small = budget.budget_rows(passages, sizes[1], BLADES)
    assert [row.fate for row in small][:2] == ["dropped, over budget", f"kept, tokens 1–{sizes[1]}"]


def test_slider_and_number_box_move_each_other(passages):
    panel = budget.BudgetPanel(passages, BLADES)
    assert panel.budget.value == panel.number.value == 1500
    panel.budget.value = 300
    assert panel.number.value == 300 and repr(panel).startswith("BudgetPanel: budget 300: 2 of 3 passages")
    for typed, nearest in ((287, 300), (1250, 1000), (1251, 1500), (120, 100), (1, 100), (99999, 1500)):
        panel.number.value = typed
        assert panel.budget.value == panel.number.value == nearest
        assert panel.shown == budget.budget_view(passages, nearest, BLADES) or "too small" in panel.shown.text


def test_the_stops_are_those_of_the_lesson(passages):
    stops = [value for _, value in budget.BudgetPanel(passages).budget.options]
    assert stops == [*range(100, 1001, 50), 1500]


def test_passages_are_escaped_and_dollars_stay_dollars(passages):
    html = budget.budget_view(passages, 300, BLADES).html
    assert "mathjax_ignore" in html and "<b>" not in html and "Blades &amp; &lt;b&gt;belts" in html
    sly = Question(*("<script>alert(1)</script>" if name == "text" else getattr(BLADES, name) for name in
                     ("qid", "text", "language", "as_of", "audience", "answerable", "kind", "split")))
    assert "<script>" not in budget.budget_view(passages, 300, sly).html


def test_a_budget_too_small_for_every_passage_is_shown_and_not_raised(passages):
    long = document("# Long\n\n## Only\n\n" + "The hedge is cut in June. " * 40, doc_id="long", title="Long")
    panel = budget.BudgetPanel(StructureChunker(lambda text: len(text.split())).chunk(long), budget=100)
    assert "too small for any passage" in panel.view.value and "too small" in panel.shown.text
    panel.budget.value = 1500
    assert "1 of 1 passages" in repr(panel)


def test_without_a_question_no_column_claims_to_know_the_answer(passages):
    view = budget.budget_view(passages, 300)
    assert "answer" not in view.text and "Answer" not in view.html and "with the answer" not in repr(view)


# Token cost


def test_cost_grows_with_the_collection_and_only_for_the_whole_of_it():
    panel = cost.CostPanel(480, 12_000, 40)
    assert "40 documents: 480 tokens a question with five passages, 12,000 with the whole" in repr(panel)
    panel.documents.value = 400
    assert "400 documents: 480 tokens a question with five passages, 120,000 with the whole" in repr(panel)
    assert "full at about 426 documents" in panel.shown.text and "scaled to 400" in panel.shown.text


def test_prices_can_be_edited():
    panel = cost.CostPanel(1000, 10_000, 40)
    panel.questions.value, panel.price_in.value, panel.price_out.value, panel.answer_tokens.value = 100, 1.0, 10.0, 50
    # 100 questions: a million tokens read at $1 and 5,000 written at $10 a million
    assert "$0.150 against $1.05 a day" in repr(panel) and "7.0 times" in panel.shown.text
    panel.price_in.value = panel.price_out.value = 0
    assert "$0.00 against $0.00 a day" in repr(panel)


def test_the_reference_run_is_quoted_as_such():
    view = cost.cost_view(480, 12_000, 40)
    quoted = view.text.split("Quoted, not measured here")[1]
    assert "905, whole collection 17,850" in quoted and "16, whole collection 19 (+3)" in quoted
    with pytest.raises(LabError, match="measure both ways"):
        cost.cost_view(0, 12_000, 40)


# Chunk explorer


def test_borders_stand_where_the_chunks_begin_and_no_character_is_lost():
    guide = document(MOWER, doc_id="mower", version="1", title="Mower care")
    for cut in ("structure", "paragraphs", "fixed_7_0", "fixed_7_3"):
        plain, made = to_plain(guide), chunks.make_chunker(cut, WordVectors()).chunk(guide)
        shown = list(chunks.pieces(plain, made))
        assert "".join(piece.text for piece in shown) == plain.text
        assert [piece.opens for piece in shown if piece.opens] == made
        assert any(len(piece.chunks) > 1 for piece in shown) == (cut == "fixed_7_3")


def test_a_border_inside_a_block_is_named_and_one_between_blocks_is_not():
    rows = "| Tool | Use |\n|---|---|\n| Shears | Small hedges |\n| Trimmer | Tall ones |\n"
    guide = document(f"# Hedges\n\n## Tools\n\n{rows}\nCut in June and in August.\n", title="Hedges")
    plain = to_plain(guide)
    table = next(block for block in plain.blocks if block.kind == "table")
    paragraph = plain.blocks[-1]
    assert [chunks.torn(plain, at) for at in (table.start, paragraph.start)] == ["", ""]
    assert chunks.torn(plain, table.rows[1][0]) == "between two parts of a table"
    assert chunks.torn(plain, table.rows[1][0] + 2) == "inside a table"
    assert chunks.torn(plain, paragraph.start + 4) == "inside a paragraph"


def test_the_cut_and_its_numbers_can_be_chosen():
    panel = chunks.ChunksPanel([document(MOWER, doc_id="mower"), document(TRIMMER, doc_id="trimmer")], WordVectors(),
                               "trimmer")
    assert repr(panel).startswith("ChunksPanel: cut structure, trimmer v2: 1 chunk, 0 borders") and panel.words.disabled
    panel.document.value, panel.cut.value, panel.words_box.value = "mower v2", "fixed", 12
    assert repr(panel).startswith("ChunksPanel: cut fixed_12_0, mower v2: 4 chunks") and panel.repeated.disabled
    panel.cut.value, panel.repeated.value = "overlap", 4
    assert "fixed_12_4" in repr(panel) and not repr(panel).endswith(" 0 words repeated")
    panel.repeated.value = 12
    assert "overlap from 0 to one less than the size" in panel.shown.text and "12" in panel.view.value


# Filter explorer


def test_the_date_decides_which_version_is_found_and_the_last_day_counts(desk):
    panel = filters.FiltersPanel(desk, "deposit for a tiller", "2026-06-30", "public", [DEPOSIT])
    assert "found first: hire v1, Deposit" in repr(panel) and "not in force before 2026-07-01" in panel.shown.text
    panel.day.value = date(2026, 7, 1)
    assert "found first: hire v2, Deposit" in repr(panel) and "not in force after 2026-06-30" in panel.shown.text
    panel.day.value = None
    assert "any date" in repr(panel) and "not in force" not in panel.shown.text


def test_staff_documents_are_found_by_staff_only(desk):
    panel = filters.FiltersPanel(desk, "waive the deposit code", "2026-08-01", "public")
    found, kept_from = panel.shown.text.split("Kept from this search:")
    assert "till v3" not in found and "till v3" in kept_from and "for staff only" in kept_from
    panel.audience.value = "staff"
    assert "found first: till v3" in repr(panel)


def test_choosing_a_question_fills_the_box_and_typing_makes_it_ones_own(desk):
    panel = filters.FiltersPanel(desk, "late return", "2026-08-01", "staff", [DEPOSIT])
    assert panel.question.value == controls.OWN
    panel.question.value = "H1"
    assert panel.ask.value == DEPOSIT.text and DEPOSIT.text in panel.shown.text
    panel.ask.value = "tiller rates"
    assert panel.question.value == controls.OWN and "tiller rates" in panel.shown.text
    panel.ask.value = DEPOSIT.text
    assert panel.question.value == "H1"


def test_any_string_is_a_question(desk):
    panel = filters.FiltersPanel(desk, "", None, "public")
    for odd in ("", '"(AND OR', "<script>alert(1)</script> deposit", "💧" * 300):
        panel.ask.value = odd
        assert repr(panel).startswith("FiltersPanel: any date, public") and "<script>" not in panel.view.value


# Search comparison


def test_four_methods_stand_side_by_side_each_with_its_own_kind_of_score(desk):
    panel = search.SearchPanel(desk, "H1", [DEPOSIT], TODAY)
    scores = re.findall(r'class="score">([A-Za-z0-9]+) -?[0-9.]+<', panel.view.value)
    assert scores[:4] == ["BM25", "cosine", "RRF", "reranker"]
    panel.k.value = 1
    assert re.findall(r'class="score">', panel.view.value) == ['class="score">'] * 4
    assert panel.k_box.value == 1


def test_the_star_marks_the_answer_for_the_course_s_own_questions_only(desk):
    panel = search.SearchPanel(desk, "H1", [DEPOSIT], TODAY, k=3)
    assert "the answer is at rank: bm25 1" in repr(panel) and "★" in panel.view.value
    panel.ask.value = "deposit"
    assert "the answer" not in repr(panel) and "★" not in panel.view.value
    gone = search.search_view(desk, DEPOSIT.text, 3, Filters(as_of="2026-06-30"), DEPOSIT)
    assert "bm25 none, dense none" in gone.summary


# Citation checker


def test_an_edited_id_is_caught(desk):
    answer, context = hire(desk)
    panel = citations.CitationsPanel(answer, context, desk.store, TODAY, {"one digit missing": context.ids[0][1:]})
    assert repr(panel) == "CitationsPanel: 2 of 2 citations ok, grounded"
    panel.claims[0].value = "000000000000"
    assert "1 of 2 citations ok, not grounded; CHECK: missing_id:000000000000" in repr(panel)
    late = chunk_of(desk.store, "hire", "2", "Late return")
    panel.claims[0].value = f"{context.ids[0]}, {late.chunk_id}"
    assert f"2 of 3 citations ok, grounded; CHECK: not_in_context:{late.chunk_id}" in repr(panel)
    panel.claims[0].value = "see the page about deposits, " * 20
    assert "see the page about deposits" in panel.view.value and "✗ missing_id" in panel.view.value
    panel.claims[0].value = "x" * 500
    assert "x" * 40 not in panel.view.value.split("Passages sent")[0].split("Its claims")[1]
    panel.claims[0].value = ""
    assert "cites nothing" in panel.shown.text and "not grounded" in repr(panel)
    panel.example.value = "one digit missing"
    assert f"missing_id:{context.ids[0][1:]}" in repr(panel)
    panel.example.value = citations.AS_IT_IS
    assert repr(panel) == "CitationsPanel: 2 of 2 citations ok, grounded"


def test_an_example_chosen_after_an_edit_always_acts(desk):
    answer, context = hire(desk)
    panel = citations.CitationsPanel(answer, context, desk.store, TODAY, {"one digit missing": context.ids[0][1:]})
    panel.example.value = "one digit missing"
    assert panel.claims[0].value == context.ids[0][1:]
    for box, edit in ((0, "000000000000"), (1, "")):
        panel.claims[box].value = edit
        assert panel.example.value == citations.OWN
        panel.example.value = "one digit missing"
        assert [one.value for one in panel.claims] == [context.ids[0][1:], context.ids[1]]
    panel.claims[0].value = context.ids[0]
    assert panel.example.value == citations.AS_IT_IS
    panel.claims[1].value = "x"
    panel.example.value = citations.AS_IT_IS
    assert repr(panel) == "CitationsPanel: 2 of 2 citations ok, grounded"
    panel.example.value = citations.OWN
    assert repr(panel) == "CitationsPanel: 2 of 2 citations ok, grounded"


def test_date_and_audience_are_part_of_the_check_and_nothing_of_a_staff_passage_is_named(desk):
    answer, context = hire(desk)
    panel = citations.CitationsPanel(answer, context, desk.store, TODAY)
    panel.day.value = date(2026, 6, 30)
    assert f"not_in_force:{context.ids[0]}" in repr(panel)
    panel.day.value, panel.audience.value = date(2026, 8, 1), "public"
    assert f"not_allowed:{context.ids[1]}" in repr(panel)
    sent = panel.shown.text.split("Sent with the question")[1].splitlines()
    assert f"[{context.ids[1]}] not allowed" in sent and f"[{context.ids[0]}] hire v2, Deposit" in sent
    for shown in (panel.shown.text, panel.view.value):
        assert "hire v2" in shown and "till v3" not in shown and "Waiving the deposit" not in shown


def test_an_answer_without_claims_is_shown(desk):
    _, context = hire(desk)
    panel = citations.CitationsPanel(Answer(False, "The passages do not say."), context, desk.store, TODAY)
    assert repr(panel) == "CitationsPanel: 0 of 0 citations ok, not grounded"


# Assistant

GROUNDED = "answered, 1 claim, 1 of 1 citations ok, grounded"


def test_an_answer_is_shown_as_it_is_written_and_checked_at_the_end(desk):
    gate, views = threading.Event(), []
    panel = assistant.AssistantPanel(desk, None, TODAY, answerer=Scripted(["The deposit ", "is $95."], gate), pace=0)
    panel.view.observe(lambda change: views.append(change["new"]), names="value")
    assert repr(panel) == "AssistantPanel: nothing asked yet"
    panel.ask.value = "deposit for a tiller"
    assert panel.send.disabled and not panel.stop.disabled
    gate.set()
    panel.wait()
    assert panel.stop.disabled and not panel.send.disabled
    assert any("searching" in view or "writing" in view for view in views)
    assert repr(panel) == "AssistantPanel: question 1, “deposit for a tiller”: " + GROUNDED
    assert "The deposit is $95." in panel.shown.text and "hire v2, Deposit" in panel.shown.text


def test_an_answer_can_be_stopped(desk):
    gate = threading.Event()
    panel = assistant.AssistantPanel(desk, None, TODAY, answerer=Scripted(["One, ", "two."], gate), pace=0)
    panel.ask.value = "deposit"
    panel.stop.click()
    gate.set()
    panel.wait()
    assert repr(panel).endswith("“deposit”: stopped") and "two." not in panel.shown.text
    panel.answer("late return")
    assert "question 2, “late return”: answered" in repr(panel)


def test_a_conversation_is_remembered_until_a_new_one_begins(desk):
    script = Scripted(["$95."])
    panel = assistant.AssistantPanel(desk, None, TODAY, answerer=script)
    panel.answer("How much is the deposit for a tiller?")
    panel.answer("And how late can it be?")
    assert "tiller" in script.asked[1] and "how late can it be?" in script.asked[1]
    assert "Follows up on: How much is the deposit" in panel.shown.text and "Question 1:" in panel.shown.text
    panel.fresh.click()
    assert repr(panel) == "AssistantPanel: nothing asked yet"
    panel.answer("And how late can it be?")
    assert script.asked[2] == "And how late can it be?"


def test_a_question_of_the_course_brings_its_date_its_reader_and_what_was_asked_before(desk):
    later = Question("H2", "And when it comes back late?", "en", "2026-06-01", "public", True, "follow-up", "tune",
                     history=("What does hiring a tiller cost?",))
    script = Scripted(["$15."])
    panel = assistant.AssistantPanel(desk, None, TODAY, "H2", [DEPOSIT, later], script)
    assert (panel.day.value, panel.audience.value) == (date(2026, 6, 1), "public")
    assert "hiring" in script.asked[0] and "comes back late?" in script.asked[0]
    assert "hire v1" in panel.shown.text and "hire v2" not in panel.shown.text


def test_a_wrong_citation_and_a_failing_answerer_are_shown(desk):
    invented = Scripted(["Yes."], claims=(Claim("Yes.", ("000000000000",)),))
    panel = assistant.AssistantPanel(desk, None, TODAY, answerer=invented)
    assert "0 of 1 citations ok, not grounded, CHECK: missing_id:000000000000" in panel.answer("deposit").summary
    panel.answerer = Scripted([1])
    assert "broke off: TypeError" in panel.answer("deposit").summary
    assert "empty" in panel.answer("  ").summary


def test_pictures_are_those_of_the_corpus_and_no_others(tmp_path):
    (tmp_path / "screens").mkdir()
    (tmp_path / "screens" / "form.png").write_bytes(b"picture")
    (tmp_path / "secret.png").write_bytes(b"secret")
    assert pictures.read_picture("screens/form.png", tmp_path) == b"picture"
    for odd in ("secret.png", "screens/../secret.png", "/etc/passwd", "screens/none.png", "screens/form.txt", "screens",
                "https://example.org/screens/form.png", "data:image/png;base64,AAAA", "screens\\form.png", "\0.png",
                "screens/" + "x" * 5000 + ".png", str(tmp_path / "secret.png")):
        assert pictures.read_picture(odd, tmp_path) is None, odd
    assert pictures.read_picture("screens/form.png", None) is None
    large = tmp_path / "screens" / "large.png"
    large.write_bytes(b"x" * pictures.MOST_BYTES)
    assert len(pictures.read_picture("screens/large.png", tmp_path)) == pictures.MOST_BYTES
    large.write_bytes(b"x" * (pictures.MOST_BYTES + 1))
    assert pictures.read_picture("screens/large.png", tmp_path) is None


def test_a_link_becomes_a_picture_with_its_words_and_all_else_is_escaped(tmp_path):
    (tmp_path / "screens").mkdir()
    (tmp_path / "screens" / "form.png").write_bytes(b"picture")
    text = 'See <b>here</b>: ![The "form"](screens/form.png) and ![a spy](https://example.org/x.png).'
    html = pictures.answer_html(text, tmp_path)
    assert '<img alt="The &quot;form&quot;" src="data:image/png;base64,cGljdHVyZQ==">' in html
    assert "&lt;b&gt;here" in html and "example.org" not in html and "[picture: a spy]" in html
    assert pictures.answer_words(text).endswith('[picture: The "form"] and [picture: a spy].')
    for end in range(text.index("!["), text.index(")") + 1):
        assert "screens/" not in pictures.answer_html(text[:end], tmp_path)


# Document life


def test_a_version_s_life_is_read_on_the_day_chosen(desk):
    panel = life.LifePanel(desk.store.documents(), "2026-06-30")
    assert "hire v1: in force; from 2026-01-01, to 2026-06-30" in panel.shown.text and "rates" not in panel.shown.text
    panel.number.value = 1
    assert panel.later.value == 1 and repr(panel) == "LifePanel: 2026-07-01: 1 of 2 document versions in force"
    assert "hire v1: ended" in panel.shown.text and "hire v2: in force" in panel.shown.text
    panel.later.value, panel.documents.value = -400, life.ALL
    assert "0 of 7 document versions" in repr(panel) and panel.shown.text.count("not yet") == 7


def test_the_bars_lie_within_the_line(desk):
    for day in ("2020-01-01", "2026-06-30", "2031-12-31"):
        html = life.life_view(desk.store.documents(), day).html
        bars = [(float(a), float(b)) for a, b in re.findall(r"left: ([0-9.]+)%; width: ([0-9.]+)%", html)]
        assert len(bars) == 7 and all(left >= 0 and width > 0 and left + width <= 100.01 for left, width in bars)


# A deletion, step by step


def test_a_deletion_is_followed_through_six_places_and_the_copy_is_as_before(tmp_path):
    corpus, index = build_desk(tmp_path)
    inventory = corpus / "inventory.csv"
    inventory.write_text("doc_id,version,title,doc_type,audience,language,effective_from,effective_to,owner\n"
                         "till,3,Till routines,procedure,staff,en,2026-01-01,,Finance\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in corpus.rglob("*") if path.is_file()}
    copy = type("Copy", (), {"corpus": corpus, "index": index})
    steps = deletion.deletion_steps(copy, "till", WordVectors())
    found = [[place.found for place in step.places] for step in steps]
    assert found == [  # folder, tables, keywords and vectors, memory, recordings (there are none), inventory
        [True, True, True, True, None, True],
        [False, True, True, True, None, True],
        [False, True, True, True, None, True],
        [False, False, False, True, None, True],
        [False, False, False, False, None, True],
        [False, False, False, False, None, False],
    ]
    assert steps[2].report.startswith("0 added, 0 updated, 6 unchanged, 0 removed")
    assert steps[3].report.startswith("0 added, 0 updated, 6 unchanged, 1 removed")
    assert {path: path.read_bytes() for path in corpus.rglob("*") if path.is_file()} == before
    with Store(index) as store:
        assert store.chunks("till")

    panel = deletion.DeletionPanel(steps)
    panel.step.value = 3
    assert "step 3 of 6" in repr(panel) and "still found in 4 of 6 places" in repr(panel)
    panel.step.value = 6
    assert "found nowhere" in repr(panel) and not re.search(r"process \d", panel.shown.text)


def test_a_panel_module_reads_in_one_sitting():
    for path in sorted(Path(base.__file__).parent.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        assert len(source.splitlines()) <= 250 and ast.get_docstring(ast.parse(source)), path.name
