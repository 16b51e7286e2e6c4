"""A checked answer as plain text, for the command line and the notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from labsupport.pipeline.ask import Asked, Found
from labsupport.pipeline.citations import Check
from labsupport.pipeline.context import estimate_tokens


def render_asked(asked: Asked) -> str:
    """Question, passages, notes, the answer, each claim with its checks, then model, tokens and seconds."""
    answer = [asked.answer.answer] if asked.answer.answerable else [asked.answer.answer, "(abstained)"]
    return "\n".join([render_found(asked.found), "", *answer, "", *_claims(asked), *_notes(asked), _cost(asked)])


def render_found(found: Found) -> str:
    """The question with its date, how it was understood, and the passages with their estimated tokens."""
    dates = f"asked on {found.asked}" if found.asked else "no date given"
    if found.filters.as_of and found.filters.as_of != found.asked:
        dates += f", documents as of {found.filters.as_of}"
    context = found.context
    lines = [
        " ".join(filter(None, [found.qid, found.question])),
        *[f"  after: {earlier}" for earlier in found.history],
        f"{dates} | audience {found.filters.audience} | {found.method}, top {found.k} | intent {found.intent}",
        f"passages ({context.tokens} estimated tokens):",
        *[
            f"  [{chunk.chunk_id}] {estimate_tokens(text):>4}  {chunk.label} | {chunk.section or '-'}"
            + (f" | restored: part {chunk.part} of {chunk.parts}" if chunk.chunk_id in context.restored else "")
            for chunk, text in zip(context.kept, context.passages, strict=True)
        ],
        *[f"  [{chunk_id}] dropped: {reason}" for chunk_id, reason in context.dropped],
        *[f"note: {note}" for note in found.notes],
    ]
    return "\n".join(lines)


def render_check(check: Check) -> str:
    """"[7839ded2d52b]", and what is wrong with it, if anything."""
    words = "" if check.words_in_passage is None else f" ({check.words_in_passage:.0%} of the claim's words)"
    flag = f" CHECK: {check.flag}" if check.flag else " WEAK: read the passage" if check.weak else ""
    return f"[{check.chunk_id}]{words}{flag}" + (f" ({check.note})" if check.note else "")


def _claims(asked: Asked) -> Iterator[str]:
    checked = asked.checked
    for place, claim in enumerate(asked.answer.claims):
        yield f"{place + 1}. {' '.join(claim.text.split())}"
        for check in checked.of(place):
            yield f"   {render_check(check)}"
        if place in checked.uncited:
            yield "   CHECK: no citation"
        for claim_place, quotation in checked.missing_quotations:
            if claim_place == place:
                yield f"   CHECK: quotation in no passage cited: {quotation!r}"
    if asked.answer.answerable:
        yield f"grounded: {'yes' if checked.grounded else 'NO'}"


def _notes(asked: Asked) -> Iterator[str]:
    for note in [*asked.notes, *asked.checked.notes, *asked.answer.notes]:
        yield f"note: {note}"


def _cost(asked: Asked) -> str:
    answer = asked.answer
    cached = ", from the cache" if asked.cached else ""
    return f"{answer.model} | {answer.tokens_in} tokens in, {answer.tokens_out} out | {answer.seconds:.2f} s{cached}"
