"""Recordings survive crashes, never double, and read back as they were written."""

import json
from dataclasses import replace

import pytest
from desk import build_desk, chunk_of, context_of
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer, Claim
from labsupport.pipeline.citations import check_answer
from labsupport.pipeline.index import Filters
from labsupport.pipeline.recordings import (
    Recording,
    append,
    find_recording,
    mend,
    passages_of,
    read_all,
    read_recordings,
    recorded_checks,
    recording_path,
    text_sha256,
)
from labsupport.pipeline.store import Store


def recording_of(store, wanted, qid="G01", audience="public", as_of="2026-10-09", **changes):
    """A recorded answer that cites the section `wanted`, and an id that never was."""
    context = context_of(store, wanted)
    chunk = context.kept[0]
    answer = Answer(True, "Sûr 🪴.", (Claim(chunk.body, (chunk.chunk_id, "0123456789ab")),), "garden-1", 600, 40, 1.5)
    checked = check_answer(answer, context, store, Filters(as_of, audience))
    about = {
        "qid": qid, "question": "What is it?", "asked": as_of, "as_of": as_of, "audience": audience, "answerer": "chat",
        "method": "bm25", "k": 5, "passages": passages_of(context), "prompt_version": "answer_v1",
        "posture": "explaining", "answer": answer, "checks": recorded_checks(checked, [chunk]), "date": "2026-11-30",
        "produced_by": {"command": "python -m labsupport record", "package": "0.1.0"}, "history": ("Before?",),
    }
    return Recording(**{**about, **changes})


@pytest.fixture
def recording(tmp_path):
    _, index = build_desk(tmp_path)
    with Store(index) as store:
        yield recording_of(store, ("hire", "2", "Deposit"))


def test_a_recording_holds_what_was_cited_and_whether_it_was_there(recording):
    good, invented = recording.checks
    assert (good.status, good.document, good.version, good.served) == ("ok", "hire", "2", True)
    assert (invented.status, invented.document, invented.sha256, invented.served) == ("missing_id", "", "", False)
    assert good.sha256 == recording.passages[0].sha256


def test_written_and_read_back_it_is_the_same(tmp_path, recording):
    path = recording_path(tmp_path / "recordings", "chat", "bm25")
    append(path, recording)
    append(path, replace(recording, qid="G02"))
    found, faults = read_recordings(path)
    assert (found, faults) == ([recording, replace(recording, qid="G02")], [])
    assert (found[1].path, found[1].line) == (path.as_posix(), 2)
    assert "🪴" in path.read_text(encoding="utf-8")
    assert find_recording(path.parent, "chat", "bm25", "g02").qid == "G02"
    with pytest.raises(LabError, match="No recorded answer to G03 by chat with bm25"):
        find_recording(path.parent, "chat", "bm25", "G03")


@given(st.text(), st.lists(st.tuples(st.text(), st.lists(st.text()))))
def test_any_answer_fits_into_one_line(text, claims):
    answer = Answer(True, text, tuple(Claim(claim, tuple(ids)) for claim, ids in claims))
    one = Recording("Q", text, "2026-01-01", "2026-01-01", "staff", "chat", "bm25", 5, (), "v", "explaining", answer,
                    (), "2026-01-01", {})
    line = one.as_json()
    assert "\n" not in line
    assert Recording.from_json(line) == one


def test_every_cut_of_the_last_line_is_mended_without_loss(tmp_path, recording):
    path = tmp_path / "chat-bm25.jsonl"
    append(path, recording)
    whole = path.read_bytes()
    for cut in (1, 7, len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole + whole[:cut])
        assert "cut short" in mend(path)
        assert path.read_bytes() == whole
    path.write_bytes(whole + whole[:-1])  # only the line end is missing
    assert "had no end" in mend(path)
    assert path.read_bytes() == whole * 2
    assert mend(path) == ""
    path.write_bytes(whole[:20])  # cut short in the very first line
    assert "cut short" in mend(path)
    assert path.read_bytes() == b""
    assert mend(tmp_path / "none.jsonl") == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{broken", "line 2 is not JSON"),
        (b"\xff\xfe", "line 2 is not UTF-8"),
        (b"[1, 2]", "line 2 is no recorded answer"),
        (b'"text"', "line 2 is no recorded answer"),
        (b'{"qid": "G01"}', "line 2 has no 'model'"),
    ],
)
def test_a_faulty_line_is_named_and_the_others_are_read(tmp_path, recording, line, problem):
    path = tmp_path / "recordings" / "chat-bm25.jsonl"
    append(path, recording)
    with path.open("ab") as file:
        file.write(line + b"\r\n")
    append(path, replace(recording, qid="G02"))
    found, faults = read_all(path.parent)
    assert [one.qid for one in found] == ["G01", "G02"]
    assert len(faults) == 1
    assert problem in faults[0]


def test_passages_name_the_text_they_saw(tmp_path):
    _, index = build_desk(tmp_path)
    with Store(index) as store:
        context = context_of(store, ("hire", "2", "Deposit"), ("rates", "1", "Rates per day"))
        first = passages_of(context)[0]
        assert first.sha256 == text_sha256(chunk_of(store, "hire", "2", "Deposit"))
        assert sum(passage.tokens for passage in passages_of(context)) == context.tokens


def test_the_line_is_plain_json_with_the_fields_the_spec_names(recording):
    data = json.loads(recording.as_json())
    assert set(data["answer"]) == {"answerable", "answer", "claims"}
    assert {"question", "passages", "prompt_version", "model", "tokens_in", "tokens_out", "seconds", "date",
            "produced_by"} <= set(data)
