"""The budget explorer: which passages fit into a budget of estimated tokens, and what is lost of the answer.

`budget_view` gives the same content without a widget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.context import assemble, estimate_tokens, format_passage
from labsupport.pipeline.corpus import Question

from .base import Panel, View, escape, make_view, table
from .controls import stops_row

BUDGETS = (*range(100, 1001, 50), 1500)
NAME = "BudgetPanel"

CSS = """
.lab-bar { display: flex; height: 28px; margin: 8px 0 2px; border-radius: 3px; overflow: hidden;
  border: 1px solid var(--jp-border-color1, rgba(128, 128, 128, 0.7)); }
.lab-bar span { display: block; overflow: hidden; white-space: nowrap; font-size: 12px; line-height: 28px; color: #000;
  text-align: center; border-right: 2px solid var(--jp-layout-color1, var(--vscode-editor-background, #fff));
  box-sizing: border-box; background: #999; }
.lab-bar .holds { background: #1f88c4; }
.lab-bar .free { color: inherit; background: transparent; border: none; flex: 1; }
"""


@dataclass(frozen=True)
class Row:
    """One passage: where it stands among the results and what the budget made of it. Tokens are counted from 1."""

    rank: int
    chunk: Chunk
    tokens: int
    answer: bool  # holds a quotation that proves the answer
    first: int = 0  # 0: dropped
    last: int = 0
    reason: str = ""

    @property
    def kept(self) -> bool:
        return self.first > 0

    @property
    def fate(self) -> str:
        return f"kept, tokens {self.first}–{self.last}" if self.kept else f"dropped, {self.reason}"


def budget_rows(passages: Sequence, budget: int, question: Question | None = None) -> list[Row]:
    """What `assemble` does with the passages at this budget. `passages` are chunks or search results, best first.

    Raises LabError where no passage fits.
    """
    found = [getattr(passage, "chunk", passage) for passage in passages]
    chunks = list({chunk.chunk_id: chunk for chunk in found}.values())
    context = assemble(chunks, budget=budget)
    reasons, rows, used = dict(context.dropped), [], 0
    for rank, chunk in enumerate(chunks, 1):
        row = Row(rank, chunk, estimate_tokens(format_passage(chunk)), has_answer(chunk, question))
        if chunk.chunk_id in reasons:
            rows.append(replace(row, reason=reasons[chunk.chunk_id]))
        else:
            rows.append(replace(row, first=used + 1, last=used + row.tokens))
            used += row.tokens
    return rows


def has_answer(chunk: Chunk, question: Question | None) -> bool:
    """Whether the chunk holds a quotation that the question's facts rest on."""
    return question is not None and any(
        (fact.doc_id, fact.version) == (chunk.doc_id, chunk.version)
        and " ".join(fact.quotation.split()) in " ".join(chunk.text.split())
        for fact in question.facts
    )


def budget_view(passages: Sequence, budget: int = 300, question: Question | None = None) -> View:
    """What the panel shows at this budget. Raises LabError where no passage fits."""
    rows = budget_rows(passages, budget, question)
    used = sum(row.tokens for row in rows if row.kept)
    kept = sum(row.kept for row in rows)
    answers = [row for row in rows if row.answer]
    summary = f"budget {budget:,}: {kept} of {len(rows)} passages, {used} tokens"
    if question is not None:
        summary += f", {sum(row.kept for row in answers)} of {len(answers)} with the answer"
    return make_view(NAME, summary, _html(rows, budget, used, question),
                     _text(rows, budget, used, summary, question), CSS)


def _html(rows: list[Row], budget: int, used: int, question: Question | None) -> str:
    asked = f"<p>{escape(question.text)}</p>" if question else ""
    parts = " ".join(
        f'<span class="{"holds" if row.answer else "lacks"}" style="width: {100 * row.tokens / budget:.2f}%" '
        f'title="passage {row.rank}, {row.tokens} tokens">{"★ " if row.answer else ""}{row.rank}</span>'
        for row in rows if row.kept
    )
    free = f'<span class="free">({budget - used:,} free)</span>' if budget > used else ""
    label = f"{used} of {budget} tokens used by passages {', '.join(str(row.rank) for row in rows if row.kept)}"
    cells = [
        [str(row.rank), f'<span class="id">{row.chunk.chunk_id}</span>', escape(row.chunk.label),
         escape(row.chunk.section or "-"), str(row.tokens), "★ yes" if row.answer else "no",
         f'<div class="{"good" if row.kept else "bad"}">{"✓" if row.kept else "✗"} {escape(row.fate)}</div>']
        for row in rows
    ]
    if question is None:
        cells = [row[:5] + row[6:] for row in cells]
    heads = ["Rank", "Id", "Document", "Section", "Tokens", *(["Answer"] if question else []), "Kept or dropped"]
    passages = table("Passages in the order of the search", heads, cells, numbers=[0, 4])
    return (
        f'{asked}<div class="lab-bar" role="img" aria-label="{escape(label)}">{parts} {free}</div>'
        f'<p class="quiet">{used:,} of {budget:,} estimated tokens used. In the bar: the ranks of the passages kept'
        f"{', ★ holds the answer' if question else ''}.</p>{passages}"
    )


def _text(rows: list[Row], budget: int, used: int, summary: str, question: Question | None) -> str:
    lines = [f"Question: {question.text}"] if question else []
    lines += [summary[0].upper() + summary[1:] + ".",
              f"{used:,} of {budget:,} estimated tokens used, {budget - used:,} free.", ""]
    for row in rows:
        answer = "; holds the answer" if row.answer else ""
        lines.append(f"{row.rank}. [{row.chunk.chunk_id}] {row.chunk.label}, section {row.chunk.section or '-'}: "
                     f"{row.tokens} tokens{answer}; {row.fate}")
    return "\n".join(lines)


class BudgetPanel(Panel):
    """Move the budget and see which passages are kept. `.budget` is the slider, `.number` the box beside it."""

    def __init__(self, passages: Sequence, question: Question | None = None, budget: int = 1500):
        self.passages, self.question = list(passages), question
        self.budget, self.number, row = stops_row("Budget", budget, BUDGETS, "estimated tokens")
        super().__init__([row], [self.budget], height=390)

    def look(self) -> View:
        return budget_view(self.passages, self.budget.value, self.question)


def budget_panel(passages: Sequence, question: Question | None = None, budget: int = 1500) -> BudgetPanel:
    return BudgetPanel(passages, question, budget)
