"""The filter explorer: a question, a date and an audience decide what may be searched, before anything is ranked.

`filters_view` gives the same content without a widget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import Retriever

from .base import Panel, View, escape, make_view, table
from .controls import asker_row, filters_from, question_row

NAME = "FiltersPanel"


def hidden_because(chunk: Chunk, filters: Filters) -> str:
    """Why a search with these filters does not see a chunk or document; "" if it does."""
    if chunk.audience == "staff" and filters.audience != "staff":
        return "for staff only"
    if filters.as_of and chunk.effective_from > filters.as_of:
        return f"not in force before {chunk.effective_from}"
    if filters.as_of and chunk.effective_to and chunk.effective_to < filters.as_of:
        return f"not in force after {chunk.effective_to}"
    return ""


def filters_view(retriever: Retriever, question: str, as_of: str | None = None, audience: str = "staff",
                 method: str = "bm25", k: int = 5) -> View:
    """What the search finds for this date (None: any) and audience, and what the filters keep from it."""
    results = retriever.search(question, method, k, Filters(as_of=as_of, audience=audience))
    filters = results.filters  # a day of delivery in the question takes the place of the date
    everything = retriever.search(question, method, 4 * k, replace(filters, as_of=None, audience="staff"),
                                  rewriting=False)
    hidden = [(chunk, why) for chunk in everything.chunks if (why := hidden_because(chunk, filters))][:k]
    documents = retriever.store.documents()
    open_ones = [row for row in documents if not hidden_because(row, filters)]
    day = filters.as_of or "any date"
    first = f"{results[0].chunk.label}, {results[0].chunk.section or '-'}" if results else "nothing"
    summary = (f"{day}, {audience}: {len(open_ones)} of {len(documents)} document versions may be searched; "
               f"found first: {first}")
    found = [(str(one.rank), *_about(one.chunk)) for one in results]
    kept_from = [(*_about(chunk), why) for chunk, why in hidden]
    columns = ("Document", "Section", "For", "In force")
    body = "".join(f'<p class="quiet">{escape(note)}</p>' for note in results.notes)
    body += table(f"Found with {method}", ("Rank", *columns), [map(escape, row) for row in found], numbers=[0])
    nothing = "The filters keep nothing from this search that it would find."
    if kept_from:
        body += table("Would be found as well, but is kept from this search", (*columns, "Why"),
                      [[*map(escape, row[:-1]), f'<div class="bad">✗ {escape(row[-1])}</div>'] for row in kept_from])
    else:
        body += f'<p class="quiet">{nothing}</p>'
    lines = [f"Question: {question}", summary + ".", *results.notes, "", f"Found with {method}:"]
    lines += [f"{rank}. {label} | {section} | for {who} | {force}" for rank, label, section, who, force in found]
    lines += ["", "Kept from this search:" if kept_from else nothing]
    lines += [f"- {label} | {section} | for {who} | {force} | {why}" for label, section, who, force, why in kept_from]
    return make_view(NAME, summary, body, "\n".join(lines))


def _about(chunk: Chunk) -> tuple[str, str, str, str]:
    until = f"{chunk.effective_from} to {chunk.effective_to}" if chunk.effective_to else f"from {chunk.effective_from}"
    return chunk.label, chunk.section or "-", chunk.audience, until


class FiltersPanel(Panel):
    """Ask, choose a date and an audience. Controls: `.question` (list), `.ask`, `.day` (None: any), `.audience`.

    A question of the course brings its own date and audience along, unless they are given.
    """

    def __init__(self, retriever: Retriever, question: str = "", as_of: str | None = None, audience: str | None = None,
                 questions: Sequence[Question] = (), method: str = "bm25"):
        self.retriever, self.method = retriever, method
        self.day, self.audience, asker = asker_row(as_of, audience or "staff")
        self.question, self.ask, row = question_row(questions, question, self._chosen)
        if as_of:
            self.day.value = date.fromisoformat(as_of)
        self.audience.value = audience or self.audience.value
        super().__init__([row, asker], [self.ask, self.day, self.audience], height=400)

    def _chosen(self, question: Question) -> None:
        self.day.value, self.audience.value = date.fromisoformat(question.as_of), question.audience

    def look(self) -> View:
        filters = filters_from(self.day, self.audience)
        return filters_view(self.retriever, self.ask.value, filters.as_of, filters.audience, self.method)


def filters_panel(retriever: Retriever, question: str = "", as_of: str | None = None, audience: str | None = None,
                  questions: Sequence[Question] = (), method: str = "bm25") -> FiltersPanel:
    return FiltersPanel(retriever, question, as_of, audience, questions, method)
