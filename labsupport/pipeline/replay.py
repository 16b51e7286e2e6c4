"""Replay: a recorded answer, told again, held against what the index serves today.

The question is searched anew with the date and audience of the recording, never today's, and every citation is checked
against the passages found now. Where these differ from what the answerer saw, a note says how.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer, StreamingAnswerer, in_words
from labsupport.pipeline.ask import Asked, Found, ask_stream
from labsupport.pipeline.context import Context
from labsupport.pipeline.index import Filters, Index
from labsupport.pipeline.intents import Intent
from labsupport.pipeline.prompting import PROMPT_VERSION, Prompt
from labsupport.pipeline.recordings import Recording, find_recording, passages_of
from labsupport.pipeline.search import Retriever


class ReplayAnswerer(StreamingAnswerer):
    """Gives one recorded answer, whatever the passages: model, tokens and seconds are those of the recording."""

    name = "replay"

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.model = recording.answer.model

    def stream(
        self, question: str, context: Context, *, prompt: Prompt | None = None, intent: Intent | None = None
    ) -> Iterator[str | Answer]:
        yield from in_words(self.recording.answer.answer)
        yield self.recording.answer


def replay_stream(recording: Recording, retriever: Retriever, caller: str) -> Iterator[Found | str | Asked]:
    """As `ask_stream`, for a recording. `caller` is the audience of who asks now: staff or public.

    Raises LabError for a caller who may not read what the recording was made for.
    """
    refuse_if_not_for(recording, retriever.store, caller)
    events = ask_stream(
        recording.question, retriever, ReplayAnswerer(recording), method=recording.method, k=recording.k,
        filters=Filters(recording.as_of, recording.audience), asked=recording.asked, history=recording.history,
        qid=recording.qid,
    )
    for event in events:
        if isinstance(event, Asked):
            made = f"recorded on {recording.date} by {recording.produced_by.get('command', 'an unnamed command')}"
            event = replace(event, notes=(*event.notes, *differences(recording, event.found.context), made))
        yield event


def replay(recording: Recording, retriever: Retriever, caller: str) -> Asked:
    """`replay_stream` read to its end."""
    *_, last = replay_stream(recording, retriever, caller)
    return last


def refuse_if_not_for(recording: Recording, index: Index, caller: str) -> None:
    """A public caller hears no answer that was recorded for staff, nor one from passages that are for staff by now."""
    if caller == "staff":
        return
    if recording.audience == "staff":
        raise LabError(f"The answer to {recording.qid} was recorded for staff; ask as staff, or use another answerer.")
    seen = [passage.id for passage in recording.passages] + [check.id for check in recording.checks if check.served]
    if any(chunk.audience == "staff" for chunk in index.get(seen)):
        raise LabError(f"The recorded answer to {recording.qid} rests on text that is no longer public; "
                       "ask the extractive answerer, and record the question again.")


def differences(recording: Recording, context: Context) -> list[str]:
    """How today's passages differ from those the recording saw; empty if they do not."""
    then = {passage.id: passage.sha256 for passage in recording.passages}
    now = {passage.id: passage.sha256 for passage in passages_of(context)}
    parts = [
        f"{what} {', '.join(ids)}" for what, ids in [
            ("not found now:", [one for one in then if one not in now]),
            ("found now only:", [one for one in now if one not in then]),
            ("with other text:", [one for one in then if one in now and then[one] != now[one]]),
        ] if ids
    ]
    if not parts and list(then) != list(now):
        parts = ["in another order"]
    notes = [f"the recording saw other passages: {'; '.join(parts)}"] if parts else []
    if recording.prompt_version != PROMPT_VERSION:
        notes.append(f"the recording was made with prompt {recording.prompt_version}, now it is {PROMPT_VERSION}")
    return notes


def make_answerer(
    recordings: Path = Path("corpus/recordings"), answerer: str = "chat", method: str = "rerank", qid: str = "",
    **_: Any,
) -> ReplayAnswerer:
    """The recorded answer of `answerer` to question `qid`."""
    if not qid:
        raise LabError("Replay needs the number of a question, such as Q51; for a free question use extractive.")
    return ReplayAnswerer(find_recording(recordings, answerer, method, qid))
