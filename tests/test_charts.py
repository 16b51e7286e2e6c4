"""Charts: a picture, its description, its numbers as a table; readable in light and dark, the same each time."""

import base64
import io
import re

import numpy as np
import pytest
from garden import document
from PIL import Image
from test_panels import contrast

from labsupport.lab import charts
from labsupport.pipeline import LabError
from labsupport.pipeline.costs import HOSTED_REFERENCE_RUN

VERSIONS = [
    document("# Hire\n", doc_id="hire", version="1", effective_from="2026-01-01", effective_to="2026-06-30"),
    document("# Hire\n", doc_id="hire", version="2", effective_from="2026-07-01", effective_to=None),
]
RECALL = {"bm25": {"tune": 0.5, "test": 0.25}, "dense": {"tune": 0.75}}


def make_charts():
    return [
        charts.bar_chart("Recall & <more>", RECALL, unit="share of questions", form=".2f"),
        charts.lines_chart("Memory", [1, 50, 100], {"matrix": [1, 3, 5], "cache": [1, 1, 1]}, x_name="chunks",
                           y_name="MB", mark=60, mark_name="the shop"),
        charts.life_chart(VERSIONS, "2026-06-30"),
        charts.cost_chart(480, 12_000, 40),
    ]


def test_every_chart_has_words_and_its_numbers_as_a_table():
    for chart in make_charts():
        html = chart._repr_html_()
        assert re.search(r'<img [^>]*alt="[^"]{20,}"', html) and "<table>" in html and "<more>" not in html
        assert repr(chart).startswith(f"Chart: {chart.title}. ") and "\n" not in repr(chart)
        assert all(len(row) == len(chart.columns) for row in chart.rows)
        assert chart.alt in chart.text and all(cell in chart.text for row in chart.rows for cell in row)
        assert "mathjax_ignore" in html


def test_a_chart_is_the_same_each_time_and_shown_at_its_size():
    for first, second in zip(make_charts(), make_charts(), strict=True):
        assert first == second
        data = base64.b64decode(re.search(r"base64,([^\"]+)", first._repr_html_())[1])
        picture = Image.open(io.BytesIO(data))
        assert picture.width == pytest.approx(first.width * charts.FINENESS, abs=1)
        assert len(data) < 60_000


def in_the_dark(colour: str) -> str:
    """What `invert(0.933) hue-rotate(180deg)` makes of a colour (Filter Effects, W3C)."""
    amount = float(re.search(r"invert\(([0-9.]+)\)", charts.CHART_CSS)[1])
    turned = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]) * (1 - 2 * amount) + amount
    hue = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
    return "#" + "".join(f"{round(255 * part):02x}" for part in np.clip(hue @ turned, 0, 1))


def test_the_dark_picture_has_the_dark_background():
    assert in_the_dark("#ffffff") == "#111111"


@pytest.mark.parametrize("colour", [charts.INK, *charts.COLOURS])
def test_colours_stand_out_in_light_and_dark(colour):
    least = 7 if colour == charts.INK else 3  # text, and marks (WCAG 2.2, 1.4.6 and 1.4.11)
    assert contrast(colour, "#ffffff") >= least and contrast(in_the_dark(colour), "#111111") >= least


def test_series_differ_by_pattern_as_well_as_by_colour():
    assert len(set(charts.HATCHES)) == len(charts.COLOURS) == len(set(charts.COLOURS))
    with pytest.raises(LabError, match="1 to 4 series; this one has 5"):
        charts.bar_chart("Too much", {"a": dict.fromkeys("vwxyz", 1.0)})


def test_bars_leave_open_what_was_not_measured():
    assert charts.bar_chart("Recall", RECALL, form=".2f").rows == (("bm25", "0.50", "0.25"), ("dense", "0.75", "-"))


@pytest.mark.parametrize(("day", "first", "second"), [
    ("2025-12-31", "not yet", "not yet"), ("2026-01-01", "in force", "not yet"), ("2026-06-30", "in force", "not yet"),
    ("2026-07-01", "ended", "in force"),
])
def test_a_version_lives_from_its_first_day_to_the_end_of_its_last(day, first, second):
    assert [row[3] for row in charts.life_chart(VERSIONS, day).rows] == [first, second]


def test_the_cost_chart_quotes_the_reference_run_as_such():
    chart = charts.cost_chart(480, 12_000, 40, largest=80)
    tokens = HOSTED_REFERENCE_RUN["input_tokens_median"]
    assert chart.rows[-1][0] == "hosted reference run, quoted, not measured here"
    assert chart.rows[-1][1:] == (f"{tokens['five passages']:,}", f"{tokens['whole collection']:,}")
    assert ("40 documents, measured", "480", "12,000") in chart.rows
    assert ("80 documents, scaled", "480", "24,000") in chart.rows
    assert "25 times as many" in chart.alt and "quoted" in chart.alt
