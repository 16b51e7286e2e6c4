"""The table of progress: what each of its columns counts."""

import pytest

from labsupport.lab import open_module, progress
from labsupport.lab.exercises import modules
from labsupport.lab.exercises.questions import answer, predict

pytestmark = pytest.mark.usefixtures("closed_at_the_end")


def choice_of(question, right):
    return next(one.key for one in question.choices if one.right is right)


def test_only_right_choices_count_as_questions_right():
    open_module("04")
    module = next(one for one in modules() if one.number == "04")
    first, second, third = module.knowledge
    assert row("04")[3] == "0 of 3"
    answer(first, choice_of(first, False))
    answer(second, choice_of(second, False))
    assert row("04")[3] == "0 of 3"
    answer(third, choice_of(third, True))
    assert row("04")[3] == "1 of 3"
    answer(first, choice_of(first, True))
    assert row("04")[3] == "2 of 3"
    answer(first, choice_of(first, False))  # the last choice counts
    assert row("04")[3] == "1 of 3" and row("05")[3].startswith("0 of")


def test_the_table_says_the_same_in_both_forms():
    open_module("04")
    module = next(one for one in modules() if one.number == "04")
    answer(module.knowledge[0], choice_of(module.knowledge[0], True))
    predict(module.predictions[0].id, 1)
    table = progress()
    assert row("04")[2:] == ("1 of 3", "1 of 3")
    html = table._repr_html_()
    for cells in table.rows:
        line = next(line for line in repr(table).splitlines() if line.startswith(cells[0]))
        assert all(cell in line and cell in html for cell in cells)


def row(number):
    return next(row for row in progress().rows if row[0].startswith(number))
