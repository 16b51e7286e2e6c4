"""The notebooks as a reader finds them: clean, complete in their parts, and solvable. nbval compares their outputs."""

import ast
import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat import v4

from labsupport.lab.exercises import modules, solved
from labsupport.lab.exercises.content import CALL
from labsupport.lab.exercises.discovery import find
from labsupport.lab.exercises.grading import Exercise
from labsupport.lab.exercises.questions import Prediction

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = ["00_start_here", "01_chunking", "02_metadata", "03_search", "04_context_budget", "05_answer_and_cite",
         "06_updates_and_deletions", "07_grounded_assistant"]
SECTIONS = ["What you will be able to do", "What you need", "An everyday comparison", "A problem at Larkfield",
            "A worked example", "Predict first", "Explore", "Exercises", "A common error", "Check what you know",
            "Recap"]
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)

spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
execute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(execute)

every = pytest.mark.parametrize("path", execute.notebooks(), ids=lambda path: path.stem)


def cells(path, kind):
    return [cell for cell in execute.read(path).cells if cell.cell_type == kind]


def content(path):
    return next(module for module in modules() if module.number == path.stem[:2])


def markdown(path):
    return "\n\n".join(cell.source for cell in cells(path, "markdown"))


def test_the_eight_notebooks_are_there():
    assert [path.stem for path in execute.notebooks()] == NAMES


@every
def test_fit_to_be_committed(path):
    assert execute.faults(path) == []


@every
def test_cells_are_few_and_short(path):
    code = cells(path, "code")
    assert 15 <= len(code) <= 25
    assert {number: len(cell.source.splitlines()) for number, cell in enumerate(code, 1)
            if len(cell.source.splitlines()) >= 12} == {}
    for cell in code:
        ast.parse(cell.source)  # no shell, no magic: the same in JupyterLab, VS Code and a script


@every
def test_opens_its_own_module_first(path):
    assert f'open_module("{path.stem[:2]}")' in cells(path, "code")[0].source


@every
def test_every_part_of_a_lesson_in_its_order(path):
    text = markdown(path)
    assert text.startswith(f"# {int(path.stem[:2])}. ")
    pieces = re.split(HEADING, text)
    bodies = {part: body for heading, body in zip(pieces[1::2], pieces[2::2], strict=True)
              for part in SECTIONS if heading.startswith(part)}
    assert list(bodies) == SECTIONS
    assert re.search(r"[0-9]+ minutes", bodies["What you need"])
    assert all(word in bodies["A common error"] for word in ("Symptom", "Cause", "Mend"))


@every
def test_holds_the_exercises_of_its_module_to_the_letter(path):
    module, text, code = content(path), markdown(path), [cell.source for cell in cells(path, "code")]
    for item in (*module.exercises, *module.predictions):
        assert item.prompt in text, f"{item.id}: its prompt"
        assert item.stub in code, f"{item.id}: its code cell"
    for prediction in module.predictions:
        shows = [n for n, source in enumerate(code) if f'reveal("{prediction.id}")' in source]
        assert shows and code.index(prediction.stub) < shows[0], f"{prediction.id}: guess first, then the outcome"
    for question in module.knowledge:
        assert any(f'knowledge("{question.id}")' in source for source in code), question.id
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    for exercise in module.exercises:
        assert any(heading.startswith(exercise.revisit) for heading in headings), f"{exercise.id}: {exercise.revisit}"
    assert any("progress()" in source for source in code)


@every
def test_as_given_nothing_is_attempted(path):
    shown = "\n".join(execute.output_text(cell) for cell in cells(path, "code"))
    for item in (*content(path).exercises, *content(path).predictions):
        assert f"{item.id} not attempted" in shown
    assert " pass: " not in shown


@every
def test_pictures_have_words(path):
    for cell in execute.read(path).cells:
        shown = cell.source if cell.cell_type == "markdown" else execute.output_text(cell)
        assert all(re.search(r'alt="[^"]{20,}"', tag) for tag in re.findall(r"<img[^>]*>", shown))
        if cell.cell_type == "markdown":
            assert all(len(words) >= 20 for words in re.findall(r"!\[([^\]]*)\]\(", shown))
        for output in cell.get("outputs", []):
            assert not {"image/png", "image/svg+xml"} & set(output.get("data", {})), "a picture without a description"


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    """One kernel and one learner's workspaces for all notebooks: models load once, and modules follow on each other."""
    client = NotebookClient(v4.new_notebook(), timeout=300, kernel_name="python3", record_timing=False,
                            resources={"metadata": {"path": str(FOLDER)}})
    home = tmp_path_factory.mktemp("learner") / "workspaces"
    with client.setup_kernel(env=os.environ | {"LAB_HOME": str(home)}, stderr=subprocess.DEVNULL):
        yield client


@pytest.mark.model
@every
def test_solved_copy_passes_every_check(path, learner):
    notebook = execute.read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = solve(cell.source)
    notebook.cells.insert(0, v4.new_code_cell("%reset -f"))
    learner.nb = notebook
    learner.reset_execution_trackers()
    for number, cell in enumerate(notebook.cells):
        learner.execute_cell(cell, number)
    shown = "\n".join(execute.output_text(cell) for cell in notebook.cells if cell.cell_type == "code")
    assert [item.id for item in content(path).exercises if f"{item.id} pass: " not in shown] == []
    assert [item.id for item in content(path).predictions if f"{item.id}: you guessed" not in shown] == []
    assert not re.search(r"^\S+ (fail|error|not attempted)", shown, re.MULTILINE), shown


def solve(source):
    """Every blank of a cell filled with the solution of the exercise or prediction that the cell names."""
    for call, item_id in CALL.findall(source):
        if "____" in source and "import" not in source.split("____")[0].splitlines()[-1]:
            source = solved(source, find(item_id, Exercise if call == "check" else Prediction).solution)
    return source


# The tool itself


@pytest.fixture
def rough():
    """A notebook as an editor may leave it."""
    notebook = v4.new_notebook()
    notebook.metadata.update(widgets={"state": {}}, language_info={"name": "python", "version": "3.13.1"})
    cell = v4.new_code_cell("mowers = 3\nmowers\n", metadata={"execution": {"iopub.status.busy": "12:00"}, "tags": []})
    cell.execution_count = 1
    cell.outputs = [
        v4.new_output("stream", name="stdout", text="a"), v4.new_output("stream", name="stdout", text="b"),
        v4.new_output("execute_result", {"text/plain": "3", execute.WIDGET: {"model_id": "x"}}, execution_count=1),
    ]
    notebook.cells = [v4.new_markdown_cell("# Tools"), cell]
    return notebook


@pytest.fixture
def faults(tmp_path, rough):
    """What is said of the rough notebook, cleaned and then changed."""

    def of(change=lambda cell: None):
        notebook = execute.clean(rough, "99_tools")
        change(notebook.cells[1])
        path = tmp_path / "99_tools.ipynb"
        execute.write(execute.clean(notebook, "99_tools"), path)
        return execute.faults(path)

    return of


def test_cleaning_keeps_what_a_reader_needs(rough, tmp_path):
    clean = execute.clean(rough, "99_tools")
    cell = clean.cells[1]
    assert clean.metadata == {"kernelspec": execute.KERNEL, "language_info": {"name": "python"}}
    assert cell.metadata == {} and cell.source == "mowers = 3\nmowers" and cell.execution_count == 1
    assert [output.get("text") for output in cell.outputs] == ["ab", None]
    assert cell.outputs[1].data == {"text/plain": "3"}
    ids = [one.id for one in clean.cells]
    assert ids == [one.id for one in execute.clean(clean, "99_tools").cells] and len(set(ids)) == 2
    path = tmp_path / "99_tools.ipynb"
    assert execute.write(clean, path) and not execute.write(clean, path) and path.read_bytes().endswith(b"}\n")


def test_a_clean_notebook_has_no_faults(faults):
    assert faults() == []


def set_text(text):
    return lambda cell: cell.outputs[0].update(text=text)


@pytest.mark.parametrize(("change", "said"), [
    (lambda cell: cell.update(execution_count=2), "not run once each"),
    (lambda cell: cell.update(execution_count=None), "not run once each"),
    (lambda cell: cell.outputs[0].update(name="stderr"), "wrote to stderr"),
    (lambda cell: cell.update(outputs=[v4.new_output("error", ename="KeyError", evalue="")]), "ended with KeyError"),
    (lambda cell: cell.metadata.update(tags=["nbval-ignore-output"]), "needs its reason"),
    (lambda cell: cell.metadata.update(tags=["raises-exception"]), "raises-exception is not in use"),
    (set_text("/home/ada/course/corpus"), "an absolute path: '/home/"),
    (set_text("in C:\\Users\\Ada"), "an absolute path"),
    (set_text("open('/tmp/x')"), "an absolute path"),
    (set_text("<function f at 0x7f8c2c0b1d30>"), "an address in memory"),
    (set_text("x" * 600_000), "bytes; at most"),
])
def test_what_must_not_be_committed_is_named(change, said, faults):
    assert [fault for fault in faults(change) if said in fault]


@pytest.mark.parametrize("text", ["documents/gift-cards.md", "https://larkfield.example/home/page", "1/2", "and/or"])
def test_what_only_looks_like_a_path_is_no_fault(text, faults):
    assert faults(set_text(text)) == []


def test_a_notebook_cleaned_by_nobody_is_named(rough, tmp_path):
    path = tmp_path / "99_tools.ipynb"
    path.write_text(execute.nbformat.writes(rough), encoding="utf-8")
    assert any("execute.py cleans away" in fault for fault in execute.faults(path))


def test_an_unknown_notebook_is_one_sentence():
    with pytest.raises(SystemExit, match="There is no notebook 42; there are: "):
        execute.main(["42", "--check"])
