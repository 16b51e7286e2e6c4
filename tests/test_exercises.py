"""The machinery on a module made up here, then the content of every module: right, wrong and blank answers."""

import ast
import functools
import re
from functools import cache

import ipywidgets
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from labsupport.lab import (
    ____,
    blank,
    check,
    hint,
    knowledge,
    knowledge_text,
    open_module,
    predict,
    reveal,
    solution,
    workspace,
)
from labsupport.lab.exercises import (
    Choice,
    Exercise,
    Knowledge,
    Module,
    Prediction,
    Wrong,
    compare,
    discovery,
    grading,
    modules,
    same,
    short,
    solved,
)
from labsupport.lab.exercises.content import CALL
from labsupport.pipeline import LabError

# The machinery


class Answers:
    def __init__(self):
        self.kept = {"exercises": {}, "predictions": {}, "knowledge": {}}

    def read(self):
        return self.kept

    def record(self, kind, key, **values):
        self.kept[kind][key] = self.kept[kind].get(key, {}) | values


class Lab:
    mowers = 3

    def __init__(self):
        self.answers = Answers()


def check_double(double, lab):
    return compare([double(n) for n in range(lab.mowers)], [0, 2, 4])


def check_rate(answer, lab):
    if answer == "late":
        raise LabError("The rate table has no row for late.")
    return Wrong(f"${answer}", "the rate of a day", "A week is seven days.") if answer != 45 else None


TOY = Module(
    number="09", title="Tool hire",
    exercises=(
        Exercise(id="9.1", title="Double", prompt="Double it.",
                 stub='def double(n):\n    return ____\n\ncheck("9.1", double)',
                 solution="2 * n", wrong=("n",), hints=("Add it to itself.", "Twice."), explain="Twice n is n and n.",
                 revisit="A worked example", check=check_double),
        Exercise(id="9.2", title="Rate", prompt="The rate?", stub='a, b = ____, ____\ncheck("9.2", a)',
                 solution=("45", "0"), wrong=(("315", "0"),), hints=("Look it up.",),
                 explain="It is in the table.", revisit="Explore", check=check_rate),
    ),
    predictions=(Prediction(id="9.p1", prompt="How many?", stub='predict("9.p1", ____)', solution="3",
                            outcome=lambda lab: lab.mowers, show=lambda n: f"{n} mowers", explain="One is on loan."),),
    knowledge=(Knowledge(id="9.k1", question="Which tool?", choices=(
        Choice("a", "The <b>saw</b>", "It cuts."), Choice("b", "The mower", "It mows.", right=True))),),
)


@pytest.fixture
def toy(monkeypatch):
    """The toy module, and a lab that is open."""
    lab = Lab()
    monkeypatch.setattr(discovery, "modules", lambda: (TOY,))
    monkeypatch.setattr(workspace, "_current", lab)
    monkeypatch.setattr(grading, "_hints_given", {})
    blank.forget()
    return lab


@pytest.fixture
def out(capsys):
    """What was printed; a line broken because it was long is one line again."""
    return lambda: capsys.readouterr().out.rstrip("\n").replace("\n    ", " ")


def test_pass_is_said_and_kept(toy, out):
    assert check("9.1", lambda n: n + n) is None
    assert out() == "9.1 pass: Twice n is n and n."
    assert toy.answers.kept["exercises"]["9.1"] == {
        "passed": True, "answer": 'assert check("9.1", lambda n: n + n) is None', "by": "learner"}


def kept_answer(toy, answer):
    check("9.1", answer)
    return toy.answers.kept["exercises"]["9.1"]["answer"]


def test_of_a_function_its_source_is_kept(toy):
    def double(n):
        """Twice."""
        return n + n

    assert kept_answer(toy, double) == 'def double(n):\n    """Twice."""\n    return n + n'


def test_of_a_function_from_a_cell_its_source_is_kept(toy):
    shell = InteractiveShell.instance()
    try:
        shell.run_cell("def double(n):\n    return n + n + 0\n")
        assert kept_answer(toy, shell.user_ns["double"]) == "def double(n):\n    return n + n + 0"
    finally:
        InteractiveShell.clear_instance()


class Hidden:
    def __call__(self, n):
        return n

    def __getattr__(self, name):
        raise RuntimeError("nothing to see")


def test_what_has_no_source_is_kept_by_its_name_and_nothing_raises(toy, monkeypatch):
    names = {}
    exec("def double(n): return 2 * n", names)
    assert kept_answer(toy, names["double"]) == "the function double"
    assert kept_answer(toy, abs) == "the function abs"
    assert kept_answer(toy, functools.partial(pow, 2)) == "the function partial"
    assert kept_answer(toy, Hidden()) == "an answer of type Hidden"
    monkeypatch.setattr(grading.inspect, "getsource", lambda _: "    " + "x" * 9000)
    assert kept_answer(toy, boom_free) == "x" * 2000 + "…"


def boom_free(n):
    return n


def test_fail_says_what_was_seen_and_expected_and_where_to_look(toy, out):
    check("9.1", lambda n: n)
    assert out() == '9.1 fail: seen [0, 1, 2]; expected [0, 2, 4]. Go back to "A worked example".'
    check("9.2", 315)
    assert out() == '9.2 fail: seen $315; expected the rate of a day. A week is seven days. Go back to "Explore".'


def test_what_was_passed_stays_passed(toy, out):
    check("9.2", 45)
    check("9.2", 46)
    assert toy.answers.kept["exercises"]["9.2"] == {"passed": True, "answer": "46", "by": "learner"}


def boom(n):
    raise ValueError("blade\nbent")


@pytest.mark.parametrize(("item", "answer", "said"), [
    ("9.1", boom, "9.1 error: ValueError: blade bent."),
    ("9.1", lambda n: exit(), "9.1 error: SystemExit: None."),
    ("9.1", lambda n: 1 / 0, "9.1 error: ZeroDivisionError: division by zero."),
    ("9.1", None, "9.1 error: TypeError: 'NoneType' object is not callable."),
    ("9.2", "late", "9.2 error: The rate table has no row for late."),
])
def test_an_error_in_the_answer_is_one_sentence(item, answer, said, toy, out):
    check(item, answer)
    assert out().startswith(said + " Go back to ") and "\n" not in out()
    assert toy.answers.kept["exercises"] == {}


@pytest.mark.parametrize("item", ["9.9", "8.1", "", None, 4, "9.p1", "nine"])
def test_an_unknown_exercise_never_raises(item, toy, out):
    for call in (check, hint, solution):
        call(item)
        assert "There is no exercise" in out()


BLANKS = {
    "alone": lambda: ____,
    "default": lambda: blank.BLANK,
    "in a list": lambda: [1, ____],
    "in a dict": lambda: {"a": (1, [____])},
    "in arithmetic": lambda: 3 * ____ - 1,
    "an attribute": lambda: ____.chunk.text,
    "called": lambda: ____(1, a=2)[3],
    "compared": lambda: ____ > 3,
    "a condition": lambda: [n for n in range(3) if ____],
    "iterated": lambda: [n for n in ____],
    "an index": lambda: [1, 2, 3][____],
    "measured": lambda: len(____),
    "searched": lambda: 1 in ____,
    "negated": lambda: not ____,
    "a number": lambda: int(____) + float(____),
    "a range": lambda: list(range(____)),
}


@pytest.mark.parametrize("use", BLANKS)
def test_a_blank_is_not_attempted_wherever_it_stands(use, toy, out):
    check("9.2", BLANKS[use]())
    assert out() == '9.2 not attempted: put your answer in place of ____; hint("9.2") helps.'
    check("9.1", lambda n: BLANKS[use]())
    assert out() == '9.1 not attempted: put your answer in place of ____; hint("9.1") helps.'
    check("9.2", 45)
    assert out().startswith("9.2 pass") and toy.answers.kept["exercises"].keys() == {"9.2"}


def test_a_blank_shows_itself_and_hides_from_jupyter():
    assert repr(____) == f"{____}" == f"{____:>10.2f}" == str(____) == "____"
    assert not hasattr(____, "_repr_html_") and not hasattr(____, "__array__")


def test_check_without_an_answer_is_not_attempted(toy, out):
    check("9.1")
    assert out().startswith("9.1 not attempted")


def test_without_an_open_module_a_check_says_so(toy, out, monkeypatch):
    monkeypatch.setattr(workspace, "_current", None)
    check("9.1", lambda n: 2 * n)
    assert out().startswith("9.1 error: no module is open; run the first cell of the notebook, then this one.")
    check("9.2", 45)  # needs none
    assert out().startswith("9.2 pass")


def test_a_full_disk_does_not_stop_a_lesson(toy, out, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(toy.answers, "record", full)
    check("9.2", 45)
    assert out().splitlines()[1] == "(This could not be kept in your workspace: No space left on device.)"
    predict("9.p1", 2)
    knowledge("9.k1", "b")


def test_hints_come_one_after_the_other(toy, out):
    for _ in range(3):
        hint("9.1")
    assert out().splitlines() == [
        "9.1, hint 1 of 2: Add it to itself.", "9.1, hint 2 of 2: Twice.",
        '9.1: no more hints; solution("9.1") shows the solution.']
    solution("9.2")
    assert out() == "9.2, solution: 45\n0\nIt is in the table."


def test_a_guess_is_kept_before_the_outcome_and_stays_after_it(toy, out):
    predict("9.p1", ____)
    assert out() == "9.p1 not attempted: put your guess in place of ____, then run on."
    reveal("9.p1")
    assert out() == "9.p1: no guess was made; it is 3 mowers.\nOne is on loan."
    predict("9.p1", 5)
    assert out() == "9.p1: your guess 5 is kept. Run on to see what happens."
    predict("9.p1", 2)
    reveal("9.p1")
    assert "you guessed 2; it is 3 mowers." in out()
    predict("9.p1", 3)
    assert out() == "9.p1: you have seen the outcome, so your guess 2 stays."
    toy.answers.kept["predictions"] = {"9.p1": {"guess": 3, "seen": False}}
    reveal("9.p1")
    assert "you guessed 3, and so it is: 3 mowers." in out()
    for call in (predict, reveal):
        call("9.p7")
        assert "9.p7 error: There is no prediction '9.p7' in module 9; there are: 9.p1." in out()


@pytest.mark.parametrize("guess", [np.int64(3), np.array([1, 2]), {2, 1}, object(), None, [1, (2, 3)]])
def test_any_guess_can_be_kept(guess, toy, out):
    predict("9.p1", guess)
    reveal("9.p1")
    assert "you guessed" in out() and "0x" not in out()


def test_a_knowledge_question_in_words_and_as_buttons(toy, out):
    assert knowledge_text("9.k1") == "9.k1 Which tool?\n  (a) The <b>saw</b>\n  (b) The mower"
    knowledge("9.k1", "a")
    assert out() == "9.k1 (a) not right: It cuts."
    assert toy.answers.kept["knowledge"]["9.k1"] == {"choice": "a", "right": False}
    knowledge("9.k1", " B ")
    assert out() == "9.k1 (b) right: It mows."
    knowledge("9.k1", "z")
    assert out() == "9.k1 error: there is no choice 'z'; choose one of a, b."
    knowledge("9.k7")
    assert "There is no question '9.k7'" in out()


def test_the_buttons_give_feedback_for_each_choice(toy):
    shown = knowledge("9.k1")
    assert isinstance(shown, ipywidgets.VBox) and shown.value is None
    assert repr(shown) == "Knowledge question 9.k1, not answered: Which tool?"
    static = shown._repr_mimebundle_()["text/plain"]
    assert static == repr(shown) + "\n  (a) The <b>saw</b>\n  (b) The mower", "what is read where no kernel runs"
    for choice in TOY.knowledge[0].choices:
        shown.value = choice.key
        assert choice.feedback in shown.feedback.value and 'role="status"' in shown.feedback.value
        assert toy.answers.kept["knowledge"]["9.k1"]["choice"] == choice.key
    again = knowledge("9.k1")  # on another day
    assert again.value == "b" and "It mows." in again.feedback.value
    assert repr(again) == "Knowledge question 9.k1, answered (b): Which tool?"


@pytest.mark.parametrize(("seen", "expected", "alike"), [
    ([1, 2], (1, 2), True), (np.array([1, 2]), [1, 2], True), ([1, 2], [2, 1], False), ("a ", "a", True),
    (True, 1, False), (1, True, False), (np.int64(4), 4, True), (4.0, 4, True), ("4", 4, False), (None, 0, False),
    (0.1 + 0.2, 0.3, True), (0.31, 0.3, False), ({1, 2}, {2, 1}, True), ([1, 2], {1, 2}, False),
    ([[1], "x"], [(1,), "x"], True),
    (float("nan"), 1.0, False), (np.float32(0.5), 0.5, True), ([], "", False), ({"a": 1}, {"a": 1}, True),
])
def test_what_counts_as_the_same(seen, expected, alike):
    assert same(seen, expected) is alike
    assert (compare(seen, expected) is None) is alike


def test_shown_values_are_short_and_repeat_exactly():
    assert "0x" not in short(object()) and len(short(list(range(10_000)))) < 120
    assert short(boom) == "the function boom" and len(short("x" * 10_000)) < 200


def test_blanks_are_filled_in_their_order():
    assert solved("a, b = ____, ____", ("1", "2")) == "a, b = 1, 2"


# The content

EXERCISES = [exercise for module in modules() for exercise in module.exercises]
PREDICTIONS = [prediction for module in modules() for prediction in module.predictions]
QUESTIONS = [question for module in modules() for question in module.knowledge]


def by_id(items):
    return pytest.mark.parametrize("item", items, ids=lambda item: item.id)


def test_every_module_has_enough_to_do():
    for module in modules():
        assert len(module.exercises) >= 4 and module.predictions and len(module.knowledge) >= 2, module.number
        ids = [item.id for item in (*module.exercises, *module.predictions, *module.knowledge)]
        assert len(set(ids)) == len(ids) and all(item.split(".")[0] == str(int(module.number)) for item in ids)


@by_id(EXERCISES)
def test_an_exercise_is_well_formed(item):
    assert re.fullmatch(r"[0-7]\.[1-9]", item.id) and item.hints and item.wrong and item.explain and item.prompt
    assert CALL.findall(item.stub) == [("check", item.id)] and len(item.stub.splitlines()) < 12
    sources = (item.solution,) if isinstance(item.solution, str) else item.solution
    assert item.stub.count("____") == len(sources)
    for text in (item.prompt, item.explain, item.title, *item.hints):
        assert text.strip() == text and "____" not in text.replace("`____`", "")
    ast.parse(solved(item.stub, item.solution))


@by_id(QUESTIONS)
def test_a_question_has_one_right_choice_and_feedback_for_each(item):
    assert re.fullmatch(r"[0-7]\.k[1-9]", item.id) and sum(choice.right for choice in item.choices) == 1
    assert len(item.choices) >= 3 and [choice.key for choice in item.choices] == list("abcdef")[: len(item.choices)]
    assert len({choice.feedback for choice in item.choices}) == len(item.choices)
    assert all(len(choice.feedback) > 20 for choice in item.choices)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Each module opened where a learner would open it, once for all its exercises."""
    labs = {}
    with pytest.MonkeyPatch.context() as patch:

        def lab_of(number):
            if number not in labs:
                patch.setenv("LAB_HOME", str(tmp_path_factory.mktemp(f"module-{number}")))
                labs[number] = open_module(max(int(number), 2))  # 0 and 1 start from the same documents
            return labs[number]

        yield lab_of
    workspace._current = None
    for lab in labs.values():
        lab.close()


@cache
def names_for(setup, lab):
    names = {"lab": lab}
    exec(setup, names)
    return names


def outcome(item, lab, sources):
    """The verdict on the stub with these sources in place of its blanks."""
    given = []
    names = names_for(item.setup, lab) | {"____": ____, "check": lambda _, answer: given.append(answer)}
    try:
        exec(solved(item.stub, sources), names)
    except Exception:
        return "error"  # a learner sees the traceback of the own cell
    return grading.grade(item.id, given[0], lab).outcome


@pytest.mark.model
@by_id(EXERCISES)
def test_right_wrong_and_blank_answers(item, opened):
    lab = opened(item.id[0])
    blank.forget()
    assert outcome(item, lab, ()) == "not attempted"
    assert outcome(item, lab, item.solution) == "pass"
    for sources in item.wrong:
        assert outcome(item, lab, sources) in ("fail", "error"), sources
    for junk in (None, object(), "", "?", [], {}, [None], float("nan"), -1, lambda *_: None):
        assert grading.grade(item.id, junk, lab).outcome in ("fail", "error"), junk


@pytest.mark.model
@by_id(PREDICTIONS)
def test_a_prediction_comes_out_as_its_solution_says(item, opened):
    assert re.fullmatch(r"[0-7]\.p[1-9]", item.id) and CALL.findall(item.stub) == [("predict", item.id)]
    outcome = item.outcome(opened(item.id[0]))
    assert same(eval(item.solution), outcome), outcome
    assert item.show(outcome).strip()
