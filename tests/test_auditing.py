"""The audit names every recorded citation that the index has stopped serving, and why; nothing else."""

from dataclasses import replace

import pytest
from desk import build_desk, update_desk
from garden import write
from test_recordings import recording_of

from labsupport.pipeline.auditing import REASONS, audit, audit_recordings
from labsupport.pipeline.recordings import append
from labsupport.pipeline.store import Store

DEPOSIT = ("hire", "2", "Deposit")
OLD_DEPOSIT = ("hire", "1", "Deposit")
WAIVING = ("till", "3", "Waiving the deposit")


@pytest.fixture
def folder(tmp_path):
    build_desk(tmp_path)
    with Store(tmp_path / "index.sqlite") as store:
        for qid, wanted, audience, as_of in [
            ("G01", DEPOSIT, "public", "2026-10-09"),
            ("G02", OLD_DEPOSIT, "public", "2026-03-01"),
            ("G03", WAIVING, "staff", "2026-10-09"),
            ("G04", ("hire", "2", "Late return"), "public", "2026-10-09"),
        ]:
            append(tmp_path / "recordings" / "chat-bm25.jsonl", recording_of(store, wanted, qid, audience, as_of))
    return tmp_path


def after(folder, name=None, change=None, audience=None):
    """Change one document (None: delete it), ingest, audit: the findings as (qid, reason)."""
    if name:
        path = folder / "corpus" / "documents" / name
        text = path.read_text(encoding="utf-8")
        path.unlink()
        if change:
            write(folder / "corpus", name, change(text))
        update_desk(folder)
    with Store(folder / "index.sqlite") as store:
        result = audit(folder / "recordings", store)
    assert result.answers == 4
    assert result.lines[-1] == (f"4 recorded answers | {len(result.findings)} citations to passages that are removed, "
                                "not in force or not allowed")
    assert result.exit_code == int(bool(result.findings))
    assert all(one.recording.qid in str(one) and one.check.id in str(one) for one in result.findings)
    assert {finding.reason for finding in result.findings} <= set(REASONS)
    return [(finding.recording.qid, finding.reason) for finding in result.findings]


def test_an_intact_index_serves_all_and_invented_ids_are_no_news(folder):
    assert after(folder) == []


def test_a_deleted_document(folder):
    assert after(folder, "till.md") == [("G03", "id gone")]


def test_restored_it_is_served_again(folder):
    text = (folder / "corpus" / "documents" / "till.md").read_text(encoding="utf-8")
    assert after(folder, "till.md") == [("G03", "id gone")]
    write(folder / "corpus", "till.md", text)
    update_desk(folder)
    assert after(folder) == []


def test_an_edit_that_moves_the_text_takes_ids_away(folder):
    longer = after(folder, "hire-v2.md", lambda text: text.replace("$95", "$100"))
    assert longer == [("G01", "id gone"), ("G04", "id gone")]


def test_an_edit_of_the_same_length_keeps_the_id_and_is_found(folder):
    assert after(folder, "hire-v2.md", lambda text: text.replace("$95", "$99")) == [("G01", "text changed")]


def test_a_version_that_now_ends_before_the_recorded_day(folder):
    ended = lambda text: text.replace("effective_to: 2026-06-30", "effective_to: 2026-02-01")  # noqa: E731
    assert after(folder, "hire-v1.md", ended) == [("G02", "no longer in force")]


def test_a_version_that_another_now_replaces_on_the_recorded_day(folder):
    path = folder / "corpus" / "documents" / "hire-v2.md"
    path.write_text(path.read_text(encoding="utf-8").replace("2026-07-01", "2026-02-02"), encoding="utf-8")
    ended = lambda text: text.replace("effective_to: 2026-06-30", "effective_to: 2026-02-01")  # noqa: E731
    assert after(folder, "hire-v1.md", ended) == [("G02", "only in a newer version")]


def test_a_file_replaced_by_a_newer_version_under_the_same_name(folder):
    assert after(folder, "till.md", lambda text: text.replace("version: 3", "version: 4")) == [
        ("G03", "only in a newer version")
    ]


def test_an_audience_that_was_narrowed(folder):
    assert after(folder, "hire-v2.md", lambda text: text.replace("audience: public", "audience: staff")) == [
        ("G01", "audience narrowed"), ("G04", "audience narrowed"),
    ]


def test_lines_that_are_no_recordings_are_reported_and_the_rest_is_audited(folder):
    path = folder / "recordings" / "chat-bm25.jsonl"
    path.write_bytes(b"not json\n" + path.read_bytes())
    (folder / "corpus" / "documents" / "till.md").unlink()
    update_desk(folder)
    with Store(folder / "index.sqlite") as store:
        result = audit(folder / "recordings", store)
    assert [finding.recording.qid for finding in result.findings] == ["G03"]
    assert len(result.faults) == 1
    assert "line 1 is not JSON" in result.faults[0]
    assert result.exit_code == 1


def test_no_recordings_at_all(tmp_path):
    build_desk(tmp_path)
    with Store(tmp_path / "index.sqlite") as store:
        assert audit(tmp_path / "none", store).lines == [
            "0 recorded answers | 0 citations to passages that are removed, not in force or not allowed"
        ]


def test_a_citation_that_was_not_sent_is_audited_too(folder):
    with Store(folder / "index.sqlite") as store:
        one = recording_of(store, WAIVING, audience="staff")
        not_sent = replace(one, checks=tuple(replace(check, status="not_in_context") for check in one.checks[:1]))
        assert audit_recordings([not_sent], store).findings == ()
    (folder / "corpus" / "documents" / "till.md").unlink()
    update_desk(folder)
    with Store(folder / "index.sqlite") as store:
        assert [finding.reason for finding in audit_recordings([not_sent], store).findings] == ["id gone"]
