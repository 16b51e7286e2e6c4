"""Panels by the values of their controls, and the rules that hold for every one of them."""

import ast
import re
from html import unescape
from pathlib import Path

import ipywidgets as widgets
import pytest
from garden import document

from labsupport.lab.panels import base, budget, cost
from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.corpus import Fact, Question

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


def make_panels(passages):
    return [
        budget.BudgetPanel(passages, BLADES),
        cost.CostPanel(480, 12_000, 40),
    ]


def test_every_panel_keeps_the_rules(passages):
    for panel in make_panels(passages):
        inside = list(controls(panel))
        assert not any(isinstance(one, widgets.Output) for one in inside)
        assert re.fullmatch(r"\d+px", panel.view.layout.height) and panel.view.layout.overflow == "auto"
        assert all(one.continuous_update is False for one in inside if hasattr(one, "continuous_update")), panel
        sliders = [one for one in inside if isinstance(one, widgets.IntSlider | widgets.SelectionSlider)]
        boxes = [one for one in inside if isinstance(one, widgets.BoundedIntText)]
        assert len(boxes) >= len(sliders)
        assert all(one.description for one in sliders)
        assert repr(panel) == repr(panel.shown) and repr(panel).startswith(type(panel).__name__ + ": ")
        assert "\n" not in repr(panel)
        assert panel.view.value == panel.shown.html and panel.shown.text in unescape(panel.alternative.value)


def test_the_text_alternative_opens_with_a_button_and_stays_open(passages):
    for panel in make_panels(passages):
        assert panel.alternative.layout.display == "none"
        panel.as_text.value = True
        panel.refresh()
        assert panel.alternative.layout.display is None


def test_a_notebook_is_given_the_widget_the_line_and_a_view_for_readers_without_a_kernel(passages):
    for panel in make_panels(passages):
        bundle = panel._repr_mimebundle_()
        assert bundle["text/plain"] == repr(panel) and bundle["text/html"] == panel.shown.html
        assert "application/vnd.jupyter.widget-view+json" in bundle


def controls(widget):
    for child in getattr(widget, "children", ()):
        yield child
        yield from controls(child)


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


def test_a_panel_module_reads_in_one_sitting():
    for path in sorted(Path(base.__file__).parent.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        assert len(source.splitlines()) <= 250 and ast.get_docstring(ast.parse(source)), path.name
