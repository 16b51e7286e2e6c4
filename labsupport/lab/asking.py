"""For notebooks: ask a question of the course as anybody, say the outcome in a few lines, list the faults recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from labsupport.lab.source import shortened
from labsupport.pipeline.ask import Asked, ask
from labsupport.pipeline.context import Context
from labsupport.pipeline.index import Filters

if TYPE_CHECKING:
    from labsupport.lab.workspace import Lab
    from labsupport.pipeline.answering import Answerer
    from labsupport.pipeline.recordings import RecordedCheck, Recording


def ask_question(lab: Lab, qid: str, answerer: Answerer, audience: str | None = None, **options) -> Asked:
    """Ask a question of questions.csv with its own date and audience, or as another `audience`."""
    known = lab.question(qid)
    filters = Filters(as_of=known.as_of, audience=audience or known.audience)
    return ask(known.text, lab.retriever, answerer, filters=filters, history=known.history, qid=known.qid, **options)


def in_brief(asked: Asked) -> str:
    """The question, who asked, the answer, and what it cites, one line each."""
    found, names = asked.found, sources(asked.found.context)
    dates = f"asked on {found.asked}"
    if found.filters.as_of != found.asked:
        dates += f", documents as of {found.filters.as_of}"
    cited = dict.fromkeys((one.chunk_id, one.status) for one in asked.checked.checks)
    return "\n".join([
        " ".join(filter(None, [found.qid, found.question])),
        f"  {found.filters.audience}, {dates}",
        f"  {asked.answer.answer}",
        *(f"  [{chunk_id}] {names.get(chunk_id, '-')}: {status}" for chunk_id, status in cited),
    ])


def sources(context: Context) -> Mapping[str, str]:
    """Document and section of each passage sent, by its id."""
    return {chunk.chunk_id: f"{chunk.label}, {chunk.section or '-'}" for chunk in context.kept}


def recorded_in_brief(one: Recording) -> str:
    """Who said what in a recording, and what it cited, one line each."""
    return "\n".join([
        f"{one.answerer}, {one.method}: {one.answer.answer}",
        *(f"  [{cited.id}]{_of(cited)}: {cited.status}" for cited in one.checks),
    ])


def recorded_faults(recordings: Iterable[Recording]) -> list[dict[str, str]]:
    """What the checker refused when the answers were recorded: a row for each bad citation and each claim with none."""
    rows = []
    for one in recordings:
        about = {"question": one.qid, "answerer": one.answerer, "method": one.method}
        for place, _ in enumerate(one.answer.claims):
            checks = [check for check in one.checks if check.claim == place]
            found = [(check.cited, check.status) for check in checks if check.status != "ok"]
            for cited, status in found if checks else [("", "uncited")]:
                rows.append(about | {"claim": str(place + 1), "cites": shortened(cited, 30), "status": status})
    return rows


def _of(cited: RecordedCheck) -> str:
    return f" {cited.document} v{cited.version}" if cited.document else ""
