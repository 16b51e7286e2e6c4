"""A learner's answers are never lost from view: beside a snapshot's solution, from one workspace to the next."""

import json

import pytest

from labsupport.lab import open_module, progress, snapshots, workspace
from labsupport.lab.answers import Answers
from labsupport.lab.home import Home

pytestmark = pytest.mark.usefixtures("closed_at_the_end")

MINE = {"answer": "half of it", "by": "learner", "passed": False}
PASSED = {"answer": "all of it", "by": "learner", "passed": True}


def kept(exercise="3.2"):
    return Answers(Home().current()).read()["exercises"].get(exercise)


def answer(values, exercise="3.2"):
    Answers(Home().current()).record("exercises", exercise, **values)


def test_an_attempt_is_kept_beside_the_solution_of_a_snapshot():
    open_module("03")
    answer(MINE)
    assert kept() == MINE and progress().rows[3][1] == "0 of 5"
    snapshots.restore("end-of-m03")
    assert kept().pop("answer") != MINE["answer"]
    assert kept() == kept("3.1") | {"answer": kept()["answer"], "attempt": "half of it"}
    assert progress().rows[3][1] == "5 of 5 (5 from a snapshot)"
    assert progress().note == (
        "Answers from a snapshot are the course's solutions; your own take their place. Your attempts (3.2) are kept "
        "beside them in answers.json and count once they pass.")
    assert json.loads((Home().current() / "answers.json").read_text(encoding="utf-8"))["exercises"]["3.2"]["attempt"]


def test_it_stays_through_restores_in_a_row():
    open_module("03")
    answer(MINE)
    for name in ("end-of-m03", "end-of-m05", "end-of-m03"):
        snapshots.restore(name)
        assert kept()["attempt"] == "half of it" and kept()["by"] == "snapshot"
    snapshots.restore("end-of-m02")  # there the exercise is the learner's again
    assert kept() == MINE
    open_module("04", fresh=True)
    assert kept()["attempt"] == "half of it"


def test_a_later_pass_takes_the_place_of_the_solution_and_of_the_attempt():
    open_module("03")
    answer(MINE)
    snapshots.restore("end-of-m03")
    answer(MINE | {"answer": "more of it"})
    assert kept()["attempt"] == "more of it" and kept()["by"] == "snapshot" and kept()["passed"]
    answer(PASSED)
    assert kept() == PASSED and progress().rows[3][1] == "5 of 5 (4 from a snapshot)"
    assert "attempts" not in progress().note
    for name in ("end-of-m03", "end-of-m02", "end-of-m07"):
        snapshots.restore(name)
        assert kept() == PASSED


def test_solutions_that_came_with_another_snapshot_do_not_come_along():
    snapshots.restore("end-of-m05")
    answer(PASSED)
    answer(MINE, "5.1")
    snapshots.restore("end-of-m01")
    assert [row[1] for row in progress().rows] == [
        "4 of 4 (4 from a snapshot)", "5 of 5 (5 from a snapshot)", "0 of 5", "1 of 5", *["0 of 5"] * 4]
    assert kept("5.1") == {"answer": "half of it", "by": "learner", "passed": False} and kept("5.2") is None


@pytest.mark.parametrize(("mine", "theirs", "together"), [
    (None, MINE, MINE),
    (MINE, PASSED, PASSED),
    (PASSED, MINE, PASSED),
    (MINE, MINE | {"answer": "other"}, MINE),
    (PASSED, PASSED | {"answer": "other"}, PASSED),
    ({"by": "snapshot", "passed": True, "answer": "x", "attempt": "newer"}, MINE,
     {"by": "snapshot", "passed": True, "answer": "x", "attempt": "newer"}),
    ({"by": "snapshot", "passed": True, "answer": "x", "attempt": "a"}, PASSED, PASSED),
    (PASSED, {"by": "snapshot", "passed": True, "answer": "x", "attempt": "a"}, PASSED),
    (PASSED, {"by": "snapshot", "passed": True, "answer": "x"}, PASSED),
    (MINE, {"by": "snapshot", "passed": True, "answer": "x"}, MINE),
])
def test_what_stands_where_both_workspaces_have_an_answer(mine, theirs, together, tmp_path):
    both = Answers(tmp_path)
    if mine:
        both.record("exercises", "3.2", **mine)
    both.take_over({"exercises": {"3.2": theirs}, "predictions": {"3.p1": {"guess": 2, "seen": True}}})
    both.take_over({"predictions": {"3.p1": {"guess": 4, "seen": False}}})
    assert both.read()["exercises"] == {"3.2": together}
    assert both.read()["predictions"] == {"3.p1": {"guess": 2, "seen": True}}


SPOILT = '{"exercises": {"3.1": {"answer": "a", "by": "learner", "passed": true}, "3.2": "oops"}, "knowledge": [1]}'
NOT_TAKEN = "Not taken over from ws-0001/answers.json, which is kept as it is: "


@pytest.mark.parametrize(("text", "fault"), [
    (SPOILT, "exercises 3.2, knowledge"),
    ("{ not json", "the file, which is not JSON"),
    ("[" * 100_000, "the file, which is not JSON"),
    ("[]", "the file, which holds no answers"),
    ('{"notes": {"3.1": {}}}', "notes"),
    ("{}", ""), ("", ""), ('{"exercises": {}}', ""),
])
def test_one_entry_that_cannot_be_read_does_not_cost_the_others(text, fault, tmp_path):
    (tmp_path / "answers.json").write_text(text, encoding="utf-8")
    mine = Answers(tmp_path)
    before = mine.read()
    assert mine.fault() == fault and before["exercises"].keys() == ({"3.1"} if text == SPOILT else set())
    mine.record("exercises", "3.3", **PASSED)
    assert mine.fault() == "" and mine.read() == before | {"exercises": before["exercises"] | {"3.3": PASSED}}
    aside = [path.read_text(encoding="utf-8") for path in tmp_path.glob("answers-unreadable-*.json")]
    assert aside == ([text] if fault else [])


def test_what_could_not_be_taken_over_is_said_in_one_line(capsys):
    folder = open_module("03").folder
    workspace.current().close()
    (folder / "answers.json").write_text(SPOILT, encoding="utf-8")
    capsys.readouterr()
    assert snapshots.restore("end-of-m02").note == NOT_TAKEN + "exercises 3.2, knowledge."
    assert capsys.readouterr().err == NOT_TAKEN + "exercises 3.2, knowledge.\n"
    assert kept("3.1") == {"answer": "a", "by": "learner", "passed": True} and kept("3.2") is None
    assert (folder / "answers.json").read_text(encoding="utf-8") == SPOILT
    snapshots.undo()
    open_module("03", fresh=True)
    assert capsys.readouterr().out.splitlines()[1] == NOT_TAKEN + "exercises 3.2, knowledge."
    assert kept("3.1")["passed"]
    done = snapshots.restore_many("end-of-m02", [Home().folder])
    assert done[0].note == "" and capsys.readouterr().err == ""


def test_a_wrong_answer_after_a_restore_is_not_the_learners_pass():
    from labsupport.lab import check

    snapshots.restore("end-of-m03")
    open_module("04")
    check("3.2", lambda scores: sorted(scores))
    assert (kept()["by"], kept()["passed"]) == ("snapshot", True)
    assert kept()["attempt"] == 'check("3.2", lambda scores: sorted(scores))'
    check("3.2", lambda scores: sorted(scores, key=lambda one: (-scores[one], one)))
    assert kept() == {"answer": 'check("3.2", lambda scores: sorted(scores, key=lambda one: (-scores[one], one)))',
                      "by": "learner", "passed": True}
