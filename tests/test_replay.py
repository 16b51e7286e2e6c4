"""Recording a run and replaying it: nothing twice, nothing lost, nothing for the wrong reader, differences said."""

import threading
from dataclasses import replace

import pytest
from desk import WordReranker, WordVectors, build_desk, chunk_of, update_desk
from filelock import FileLock
from garden import write
from test_ask import Parrot

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import load_answerer
from labsupport.pipeline.auditing import audit
from labsupport.pipeline.corpus import Question
from labsupport.pipeline.recorder import record
from labsupport.pipeline.recordings import find_recording, read_recordings
from labsupport.pipeline.rendering import render_asked
from labsupport.pipeline.replay import replay, replay_stream
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store


def question(qid, text, as_of="2026-10-09", audience="public", history=()):
    return Question(qid, text, "en", as_of, audience, True, "one fact", "tune", history, ())


QUESTIONS = [
    question("G01", "What is the deposit for a hired tiller?"),
    question("G02", "Who may waive the tiller deposit for a club member?", audience="staff"),
    question("G03", "My tiller was delivered on 20 June. What is the deposit?", as_of="2026-07-09"),
    question("G04", "And when it comes back late?", history=("Can I hire a tiller?",)),
]


class Desk:
    def __init__(self, folder):
        self.folder = folder
        build_desk(folder)
        self.recordings = folder / "corpus" / "recordings"
        self.path = self.recordings / "chat-bm25.jsonl"
        self.open()

    def open(self):
        self.store = Store(self.folder / "index.sqlite")
        self.retriever = Retriever(self.store, WordVectors(), WordReranker())

    def ingest(self):
        self.store.close()
        update_desk(self.folder)
        self.open()

    def record(self, answerer=None, questions=QUESTIONS, **options):
        return record(questions, self.retriever, answerer or Parrot(), self.recordings, method="bm25", name="chat",
                      command="tests", **options)

    def replay(self, qid, caller="staff"):
        return replay(find_recording(self.recordings, "chat", "bm25", qid), self.retriever, caller)

    def audit(self):
        return audit(self.recordings, self.store)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.store.close()


def test_all_is_recorded_once_and_says_who_made_it(desk):
    seen = []
    report = desk.record(progress=lambda what, done, total: seen.append((done, total)))
    assert (report.done, report.kept, report.failed) == (4, 0, [])
    assert seen[0] == (0, 4)
    assert seen[-1] == (4, 4)
    before = desk.path.read_bytes()
    report = desk.record()
    assert (report.done, report.kept) == (0, 4)
    assert desk.path.read_bytes() == before
    found, faults = read_recordings(desk.path)
    assert faults == []
    assert [one.qid for one in found] == ["G01", "G02", "G03", "G04"]
    assert found[2].asked == "2026-07-09"
    assert found[2].as_of == "2026-06-20"
    assert found[0].produced_by["command"] == "tests"
    assert found[0].produced_by["model"] == "parrot-1"
    assert not list(desk.recordings.glob("*.lock"))
    assert desk.audit().lines == [
        "4 recorded answers | 0 citations to passages that are removed, not in force or not allowed"
    ]


def test_a_run_that_was_stopped_goes_on(desk):
    desk.record(questions=QUESTIONS[:2])
    whole = desk.path.read_bytes()
    desk.path.write_bytes(whole[:-30])  # a crash in the middle of a line
    parrot = Parrot()
    report = desk.record(parrot)
    assert (report.done, report.kept, len(parrot.asked)) == (3, 1, 3)
    assert "cut short" in report.notes[0]
    assert [one.qid for one in read_recordings(desk.path)[0]] == ["G01", "G02", "G03", "G04"]


def test_a_question_that_changed_is_recorded_again(desk):
    desk.record()
    changed = [*QUESTIONS[:3], replace(QUESTIONS[3], text="And what does it cost then?")]
    report = desk.record(questions=changed)
    assert (report.done, report.again, report.kept) == (1, 1, 3)
    assert [one.question for one in read_recordings(desk.path)[0]] == [one.text for one in changed]


def test_failures_are_not_recorded_and_a_dead_server_ends_the_run(desk):
    class Dead(Parrot):
        def stream(self, question, context, **options):
            self.asked.append(question)
            raise LabError("nobody there")
            yield

    dead = Dead()
    report = desk.record(dead)
    assert len(dead.asked) == 3
    assert report.failed == [(qid, "nobody there") for qid in ("G01", "G02", "G03")]
    assert "3 failures in a row" in report.notes[0]
    assert not desk.path.exists()
    assert desk.record().done == 4


def test_two_runs_do_not_write_the_same_file(desk):
    desk.recordings.mkdir()
    with FileLock(desk.path.with_suffix(".lock")):
        caught = []

        def other():
            try:
                desk.record()
            except LabError as error:
                caught.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "being written by another run" in caught[0]


def test_replay_tells_the_recorded_answer_and_nothing_has_changed(desk):
    desk.record()
    asked = desk.replay("G01")
    recorded = find_recording(desk.recordings, "chat", "bm25", "G01")
    assert asked.answer == recorded.answer
    assert asked.checked.grounded
    assert not [note for note in asked.notes if "other passages" in note]
    assert "recorded on" in render_asked(asked)
    found, *pieces, last = replay_stream(recorded, desk.retriever, "public")
    assert "".join(pieces) == recorded.answer.answer
    assert last.answer == recorded.answer


def test_replay_uses_the_recorded_date_and_audience(desk):
    desk.record()
    found = desk.replay("G03").found
    assert (found.asked, found.filters.as_of, found.filters.audience) == ("2026-07-09", "2026-06-20", "public")
    assert desk.replay("G02").found.filters.audience == "staff"
    assert desk.replay("G04").found.history == ("Can I hire a tiller?",)


def test_the_public_hears_no_answer_recorded_for_staff(desk):
    desk.record()
    with pytest.raises(LabError, match="recorded for staff") as caught:
        desk.replay("G02", "public")
    assert "waive" not in str(caught.value)
    assert desk.replay("G01", "public").answer.answerable


def test_the_public_hears_no_answer_from_what_is_for_staff_by_now(desk):
    desk.record()
    path = desk.folder / "corpus" / "documents" / "hire-v2.md"
    path.write_text(path.read_text(encoding="utf-8").replace("audience: public", "audience: staff"), encoding="utf-8")
    desk.ingest()
    with pytest.raises(LabError, match="no longer public"):
        desk.replay("G01", "public")
    asked = desk.replay("G01", "staff")  # sees it, with the check's word on it
    assert any(check.status == "not_allowed" for check in asked.checked.checks)


def test_after_a_deletion_replay_and_audit_say_so_until_it_is_restored(desk):
    desk.record()
    path = desk.folder / "corpus" / "documents" / "till.md"
    text = path.read_text(encoding="utf-8")
    gone = chunk_of(desk.store, "till", "3", "Waiving the deposit").chunk_id
    path.unlink()
    desk.ingest()
    shown = render_asked(desk.replay("G02"))
    assert f"CHECK: missing_id:{gone}" in shown
    assert "note: the recording saw other passages: not found now: " in shown
    assert "grounded: NO" in shown
    assert desk.audit().lines[-1].startswith("4 recorded answers | 1 citations")
    assert desk.audit().exit_code == 1
    write(desk.folder / "corpus", "till.md", text)
    desk.ingest()
    assert "CHECK" not in render_asked(desk.replay("G02"))
    assert desk.audit().exit_code == 0


def test_an_edit_of_the_same_length_is_noted(desk):
    desk.record()
    path = desk.folder / "corpus" / "documents" / "hire-v2.md"
    path.write_text(path.read_text(encoding="utf-8").replace("$95", "$99"), encoding="utf-8")
    desk.ingest()
    assert any("with other text" in note for note in desk.replay("G01").notes)


def test_replay_can_be_loaded_by_name(desk):
    desk.record()
    who = load_answerer("replay", recordings=desk.recordings, answerer="chat", method="bm25", qid="G01", reranker=None)
    assert who.recording.qid == "G01"
    with pytest.raises(LabError, match="number of a question"):
        load_answerer("replay", recordings=desk.recordings)


@pytest.mark.parametrize("name", ["store", "nobody", "../x", "", "answering"])
def test_names_that_are_no_answerers(name):
    with pytest.raises(LabError, match="Unknown answerer"):
        load_answerer(name)
