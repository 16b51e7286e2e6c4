"""Search comparison: one question, four methods side by side, every score shown as what it is.

`search_view` gives the same content without a widget. The scores of two methods do not compare: BM25 has no upper end,
a cosine lies between -1 and 1, a fused score is made of ranks, and the reranker's may be below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ipywidgets as widgets

from labsupport.pipeline.corpus import Question
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import METHODS, Result, Results, Retriever

from .base import Panel, View, escape, make_view, table
from .budget import has_answer
from .controls import label_width, question_row, slider_row

NAME = "SearchPanel"
SCORES = {"bm25": ("BM25", ".2f"), "cosine": ("cosine", ".3f"), "rrf": ("RRF", ".4f"), "reranker": ("reranker", ".2f")}
WHAT = {
    "bm25": "words of the question, rare ones count more",
    "dense": "nearness of meaning, as the embedding model sees it",
    "hybrid": "the ranks of both, added up",
    "rerank": "hybrid's best, each read together with the question",
}

CSS = """
.lab-panel.lab-panel .lab-four table { table-layout: fixed; }
.lab-panel.lab-panel .lab-four th:first-child { width: 3.4em; }
"""


def search_view(retriever: Retriever, question: str, k: int = 5, filters: Filters | None = None,
                known: Question | None = None, rewriting: bool = True) -> View:
    """The first `k` results of each method. `known` tells which passages hold the answer; they get a star."""
    found = {name: retriever.search(question, name, k, filters or Filters(), known.history if known else (), rewriting)
             for name in METHODS}
    firsts = {name: found[name][0].chunk.label if found[name] else "nothing" for name in METHODS}
    same = len(set(firsts.values())) == 1
    summary = "found first: " + (f"{firsts['bm25']} by all four" if same else _listed(firsts))
    if known and known.facts:
        summary += "; the answer is at rank: " + _listed({name: _place(found[name], known) for name in METHODS})
    rows = [[str(rank + 1), *(_cell(found[name], rank, known) for name in METHODS)] for rank in range(k)]
    searched = dict.fromkeys(text for results in found.values() for text in results.searched)
    notes = list(dict.fromkeys(note for results in found.values() for note in results.notes))
    used = found["bm25"].filters  # as applied: a question may name a day of delivery
    said = [f"Searched: {' / '.join(searched)} ({used.as_of or 'any date'}, {used.audience})", *notes]
    meaning = [f"{name}: {what}" for name, what in WHAT.items()]
    star, apart = ["★ holds the answer."] if known and known.facts else [], "Scores of two methods do not compare."
    body = (
        "".join(f'<p class="quiet">{escape(line)}</p>' for line in said)
        + table("The same question, four ways", ("Rank", *METHODS), rows, numbers=[0])
        + f'<p class="quiet">{escape(" ".join([*star, apart]))}</p>'
        + "".join(f'<p class="quiet">{escape(line)}</p>' for line in meaning)
    )
    lines = [f"Question: {question}", summary + ".", *said]
    for name, results in found.items():
        lines += ["", f"{name} ({WHAT[name]}):"]
        lines += [f"{result.rank}. {_line(result, known)}" for result in results] or ["nothing"]
    lines += ["", apart]
    return make_view(NAME, summary, f'<div class="lab-four">{body}</div>', "\n".join(lines), CSS)


def show_score(result: Result) -> str:
    """ "BM25 7.31", "reranker -2.04": a score with its name."""
    name, form = SCORES[result.scored_by]
    return f"{name} {result.score:{form}}"


def _cell(results: Results, rank: int, known: Question | None) -> str:
    if rank >= len(results):
        return "-"
    result = results[rank]
    star = "★ " if has_answer(result.chunk, known) else ""
    return (f"{star}{escape(result.chunk.label)}<br>{escape(result.chunk.section or '-')}<br>"
            f'<span class="score">{show_score(result)}</span><br><span class="id">{result.chunk.chunk_id}</span>')


def _line(result: Result, known: Question | None) -> str:
    star = ", holds the answer" if has_answer(result.chunk, known) else ""
    return f"[{result.chunk.chunk_id}] {result.chunk.label}, {result.chunk.section or '-'}, {show_score(result)}{star}"


def _place(results: Results, known: Question) -> str:
    ranks = [result.rank for result in results if has_answer(result.chunk, known)]
    return str(ranks[0]) if ranks else "none"


def _listed(values: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


class SearchPanel(Panel):
    """Ask and compare. Controls: `.question` (list), `.ask` (box), `.k` (slider, with its box), `.rewriting`.

    A question of the course is asked on its own date, for its own audience; `filters` are for all others.
    """

    def __init__(self, retriever: Retriever, question: str = "", questions: Sequence[Question] = (),
                 filters: Filters | None = None, k: int = 5):
        self.retriever, self.filters = retriever, filters or Filters()
        self.questions = {one.text: one for one in questions}
        self.question, self.ask, row = question_row(questions, question)
        self.k, self.k_box, k_row = slider_row("Results", k, 1, 10, unit="of each method")
        self.rewriting = widgets.Checkbox(value=True, description="Rewrite the question where that helps",
                                          style=label_width("0px"), layout=widgets.Layout(width="420px"))
        super().__init__([row, k_row, self.rewriting], [self.ask, self.k, self.rewriting], height=560)

    def look(self) -> View:
        known = self.questions.get(self.ask.value)
        filters = replace(self.filters, as_of=known.as_of, audience=known.audience) if known else self.filters
        return search_view(self.retriever, self.ask.value, self.k.value, filters, known, self.rewriting.value)


def search_panel(retriever: Retriever, question: str = "", questions: Sequence[Question] = (),
                 filters: Filters | None = None, k: int = 5) -> SearchPanel:
    return SearchPanel(retriever, question, questions, filters, k)
