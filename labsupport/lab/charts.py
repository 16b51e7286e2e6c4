"""Charts of the lessons: a matplotlib picture with its description, and the same numbers as a table.

A picture is drawn once, dark on white. In a dark theme the page turns it round (`filter: invert`), and the colours are
chosen so that they stand out either way. Figures are drawn without pyplot: no window, no global state.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from labsupport.lab.panels.base import STYLE, table
from labsupport.lab.panels.life import life_state
from labsupport.pipeline import LabError
from labsupport.pipeline.costs import HOSTED_REFERENCE_RUN

INK, FAINT = "#222222", "#d0d0d0"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a3679d")  # after Okabe and Ito
HATCHES = ("", "//", "..", "xx")  # and a pattern, for whoever sees no difference between colours
NUMBER = re.compile(r"-|[-+$]*[0-9][0-9,.]*%?")
FINENESS = 1.5  # pixels of a picture for one pixel of the page, so that it stays sharp on fine screens
LOOK = {
    "font.family": "DejaVu Sans", "font.size": 10.5, "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.titlesize": 11, "hatch.linewidth": 0.6,
    "figure.facecolor": "white", "savefig.facecolor": "white",
}
# invert(0.933) turns white into JupyterLab's dark #111; hue-rotate gives the colours their hue back.
CHART_CSS = """<style>
.lab-chart.lab-chart img { max-width: 100%; height: auto; background: #fff; }
body[data-jp-theme-light="false"] .lab-chart.lab-chart img, body.vscode-dark .lab-chart.lab-chart img,
body.vscode-high-contrast:not(.vscode-high-contrast-light) .lab-chart.lab-chart img {
  filter: invert(0.933) hue-rotate(180deg); }
</style>"""


@dataclass(frozen=True)
class Chart:
    """A picture (`png`, bytes), its description in words (`alt`), and its numbers (`columns`, `rows`)."""

    title: str
    alt: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    png: bytes

    def __repr__(self) -> str:
        return f"Chart: {self.title}. {self.alt}"

    @property
    def text(self) -> str:
        """Description and table in plain words."""
        return "\n".join([self.alt, "", " | ".join(self.columns), *(" | ".join(row) for row in self.rows)])

    @property
    def width(self) -> int:
        """In CSS pixels. A PNG holds its width, in its own pixels, at bytes 16 to 19."""
        return round(int.from_bytes(self.png[16:20], "big") / FINENESS)

    def _repr_html_(self) -> str:
        source = base64.b64encode(self.png).decode("ascii")
        numbers = [at for at in range(len(self.columns)) if all(NUMBER.fullmatch(row[at]) for row in self.rows)]
        cells = table(self.title, self.columns, [[escape(cell) for cell in row] for row in self.rows], numbers)
        return (
            f'{STYLE}{CHART_CSS}<div class="lab-panel lab-chart mathjax_ignore tex2jax_ignore">'
            f'<img width="{self.width}" alt="{escape(self.alt)}" src="data:image/png;base64,{source}">{cells}</div>'
        )


def bar_chart(title: str, values: Mapping[str, Mapping[str, float]], *, unit: str = "", form: str = ",.0f",
              alt: str = "") -> Chart:
    """Grouped bars: `values[group][series]`. Each bar carries its number; colour and pattern tell the series apart.

    `alt` is what the chart shows in a sentence; left out, it names every number.
    """
    series = list(dict.fromkeys(name for group in values.values() for name in group))
    if not series or len(series) > len(COLOURS):
        raise LabError(f"A bar chart takes 1 to {len(COLOURS)} series; this one has {len(series)}.")
    with rc_context(LOOK):
        figure, axes = _figure(7.4, 0.9 + 0.34 * len(values) * (len(series) + 0.7) / 1.2)
        draw_bars(axes, values, series, form)
        axes.set_title(title)
        axes.set_xlabel(unit)
        if len(series) > 1:
            axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        png = _png(figure)
    rows = tuple((group, *(format(bars[name], form) if name in bars else "-" for name in series))
                 for group, bars in values.items())
    said = alt or "; ".join(f"{group}: " + ", ".join(f"{name} {value:{form}}" for name, value in bars.items())
                            for group, bars in values.items())
    return Chart(title, said, ("", *series), rows, png)


def draw_bars(axes: Axes, values: Mapping[str, Mapping[str, float]], series: Sequence[str], form: str) -> None:
    """Horizontal bars from top to bottom, groups in order."""
    thick = 0.8 / len(series)
    for at, name in enumerate(series):
        places = [group + (at - (len(series) - 1) / 2) * thick for group in range(len(values))]
        lengths = [bars.get(name, 0.0) for bars in values.values()]
        drawn = axes.barh(places, lengths, thick * 0.92, label=name, color=COLOURS[at], hatch=HATCHES[at],
                          edgecolor="white", linewidth=0)
        labels = [format(bars[name], form) if name in bars else "" for bars in values.values()]
        axes.bar_label(drawn, labels, padding=4)
    axes.set_yticks(range(len(values)), list(values))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.16)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=FAINT, linewidth=0.7)


def lines_chart(title: str, x: Sequence[float], lines: Mapping[str, Sequence[float]], *, x_name: str, y_name: str,
                mark: float | None = None, mark_name: str = "", form: str = ",.0f", alt: str = "") -> Chart:
    """Lines over `x`, each named at its end. `mark` is a place on x with a dotted line and a name."""
    with rc_context(LOOK):
        figure, axes = _figure(7.4, 3.2)
        for at, (name, values) in enumerate(lines.items()):
            axes.plot(x, values, color=COLOURS[at], linewidth=2.2, linestyle=("-", "--", "-.", ":")[at])
            axes.annotate(f" {name}", (x[-1], values[-1]), color=INK, va="center")
        if mark is not None:
            axes.axvline(mark, color=INK, linewidth=1, linestyle=":")
            axes.annotate(f" {mark_name}", (mark, 1), xycoords=("data", "axes fraction"), va="top")
        axes.set(title=title, xlabel=x_name, ylabel=y_name, xlim=(min(x), max(x)), ylim=(0, None))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.grid(color=FAINT, linewidth=0.7)
        png = _png(figure)
    rows = tuple((f"{place:,.0f}", *(format(line[at], form) for line in lines.values())) for at, place in enumerate(x))
    ends = ", ".join(f"{name} from {values[0]:{form}} to {values[-1]:{form}}" for name, values in lines.items())
    said = alt or f"{y_name} as {x_name} goes from {x[0]:,.0f} to {x[-1]:,.0f}: {ends}."
    return Chart(title, said, (x_name, *lines), rows, png)


def life_chart(documents: Sequence, as_of: str, title: str = "When each version is in force") -> Chart:
    """A line for each document version from its first to its last day, and the date asked about.

    `documents` have doc_id, version, effective_from and effective_to. An arrow: no end date.
    """
    rows = [(document, life_state(document, as_of)) for document in documents]
    if not rows:
        raise LabError("There is no document to draw: give at least one.")
    day = date.fromisoformat
    starts = [day(document.effective_from) for document, _ in rows]
    ends = [day(document.effective_to) for document, _ in rows if document.effective_to]
    first, last = min([*starts, day(as_of)]) - timedelta(30), max([*starts, *ends, day(as_of)]) + timedelta(120)
    with rc_context(LOOK):
        figure, axes = _figure(7.4, 1.1 + 0.34 * len(rows))
        for at, (document, state) in enumerate(rows):
            until = day(document.effective_to) if document.effective_to else last
            colour, style = (COLOURS[0], "-") if state == "in force" else (COLOURS[1], (0, (3, 1.2)))
            axes.plot([day(document.effective_from), until], [at, at], color=colour, linestyle=style, linewidth=5,
                      solid_capstyle="butt", dash_capstyle="butt")
            if not document.effective_to:
                axes.annotate("▶", (last, at), color=colour, va="center", ha="center")
        axes.axvline(day(as_of), color=INK, linewidth=1.2, linestyle=":")
        axes.annotate(f" {as_of}", (day(as_of), 1), xycoords=("data", "axes fraction"), va="bottom", ha="center")
        axes.set_yticks(range(len(rows)), [f"{document.doc_id} v{document.version}" for document, _ in rows])
        axes.set(xlim=(first, last), ylim=(len(rows) - 0.4, -0.6))
        axes.set_title(title, pad=22)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=FAINT, linewidth=0.7)
        figure.autofmt_xdate(rotation=30)
        png = _png(figure)
    cells = tuple((f"{document.doc_id} v{document.version}", document.effective_from,
                   document.effective_to or "no end date", state) for document, state in rows)
    alive = [cell[0] for cell in cells if cell[3] == "in force"]
    said = f"On {as_of} {len(alive)} of {len(cells)} versions are in force: {', '.join(alive) or 'none'}."
    return Chart(title, said, ("Version", "First day", "Last day", f"On {as_of}"), cells, png)


def cost_chart(five: float, whole: float, measured: int, largest: int = 200) -> Chart:
    """Tokens one question sends, as the collection grows: five passages against the whole collection.

    `five` and `whole` were measured on `measured` documents; other sizes are scaled. A hosted reference run is quoted.
    """
    sizes = sorted({1, measured, *(round(largest * part / 4) for part in range(1, 5))})
    grown = [whole * size / measured for size in sizes]
    run = HOSTED_REFERENCE_RUN["input_tokens_median"]
    quoted = ("five passages", "whole collection")
    with rc_context(LOOK):
        figure, (axes, bars) = _figure(9.6, 3.4, 1, 2, gridspec_kw={"width_ratios": (1.15, 1)})
        axes.plot(sizes, grown, color=COLOURS[1], linewidth=2.2, linestyle="--")
        axes.plot(sizes, [five] * len(sizes), color=COLOURS[0], linewidth=2.2)
        axes.annotate("whole collection", (largest * 0.62, whole * largest * 0.66 / measured), ha="right")
        axes.annotate("five passages", (largest, five), va="bottom", ha="right")
        axes.axvline(measured, color=INK, linewidth=1, linestyle=":")
        axes.annotate(f" our {measured}", (measured, 0.97), xycoords=("data", "axes fraction"), va="top")
        axes.set(title="Tokens a question sends", xlabel="documents in the collection", xlim=(0, largest), ylim=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.grid(color=FAINT, linewidth=0.7)
        both = {
            f"our {measured} documents,\nestimated": {"five passages": five, "whole collection": whole},
            "hosted reference run,\nquoted": {name: run[name] for name in quoted},
        }
        draw_bars(bars, both, quoted, ",.0f")
        bars.set_title("Measured here, and quoted")
        bars.margins(x=0.28)
        figure.legend(*bars.get_legend_handles_labels(), frameon=False, loc="outside lower right", ncols=2)
        bars.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:.0f}k")
        png = _png(figure)
    rows = [(f"{size:,} document{'s' if size > 1 else ''}, {'measured' if size == measured else 'scaled'}",
             f"{five:,.0f}", f"{tokens:,.0f}") for size, tokens in zip(sizes, grown, strict=True)]
    rows.append(("hosted reference run, quoted, not measured here", *(f"{run[name]:,}" for name in quoted)))
    said = (f"Five passages send {five:,.0f} tokens a question however large the collection is; the whole collection "
            f"sends {whole:,.0f} at {measured} documents, {whole / five:,.0f} times as many, and {grown[-1]:,.0f} at "
            f"{largest}. A hosted reference run, quoted, measured {run[quoted[0]]:,} against {run[quoted[1]]:,}.")
    return Chart("Tokens a question sends", said, ("Collection", *quoted), tuple(rows), png)


def _figure(width: float, height: float, *grid: int, **options: object) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(*grid, **options)


def _png(figure: Figure) -> bytes:
    """The picture, without anything that would differ between two runs."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=90 * FINENESS, bbox_inches="tight")
    colours = Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE)  # a third of the bytes
    colours.save(small, format="png", optimize=True)
    return small.getvalue()
