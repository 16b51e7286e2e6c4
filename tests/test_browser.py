"""Notebooks and panels as a learner meets them: JupyterLab in headless Chromium, by keyboard, in light and dark."""

import json
import os
from pathlib import Path

import nbformat
import pytest
from browser import Notebook, chromium_path, start_browser, start_jupyterlab

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[1]

Q30 = '''from pathlib import Path
from garden import count_tokens
from labsupport.lab.panels import BudgetPanel
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.corpus import read_documents, read_questions
corpus = Path({corpus!r})
question = next(question for question in read_questions(corpus) if question.qid == "Q30")
chunker = StructureChunker(count_tokens)
chunks = {{chunk.chunk_id: chunk for document in read_documents(corpus) for chunk in chunker.chunk(document)}}
BudgetPanel([chunks[one] for one in {ids!r}], question)'''


@pytest.fixture(scope="module")
def browser():
    if chromium_path() is None:
        reason = "no Chromium found (install chromium, or name it in CHROMIUM)"
        if os.environ.get("LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(f"LAB_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(reason)
    with start_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    """Opens notebooks, given as a list of cells, in one JupyterLab."""
    folder, scratch = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyterlab")
    env = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "LAB_HOME": str(scratch / "home")}
    with start_jupyterlab(folder, scratch, env) as (address, token):

        def open_notebook(name: str, cells: list[str]) -> Notebook:
            kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
                                                metadata={"kernelspec": kernel})
            nbformat.write(notebook, folder / name)
            return Notebook(browser, address, token, name)

        yield open_notebook


@pytest.fixture
def pictures(tmp_path):
    """Where pictures go: LAB_PICTURES, for whoever wants to look at them, or a temporary folder."""
    return Path(os.environ.get("LAB_PICTURES") or tmp_path)


def test_the_budget_slider_moves_by_key_and_by_number(lab, pictures):
    figures = json.loads((ROOT / "tests" / "figures.json").read_text(encoding="utf-8"))
    ids = [passage["chunk_id"] for passage in figures["q30"]["passages"]]
    notebook = lab("budget.ipynb", [Q30.format(corpus=str(ROOT / "corpus"), ids=ids)])
    notebook.run_all()
    panel = notebook.panel()
    notebook.says(panel, "Budget 1,500: 4 of 5 passages, 617 tokens")

    slider = panel.get_by_role("slider")
    slider.press("Home")
    notebook.says(panel, "Budget 100: 1 of 5 passages, 92 tokens, 0 of 2 with the answer")
    for _ in range(4):
        slider.press("ArrowRight")
    notebook.says(panel, "Budget 300: 2 of 5 passages, 196 tokens, 1 of 2 with the answer")
    number = panel.locator("input[type=number]")
    assert number.input_value() == "300"

    number.fill("560")  # no stop of the slider: the nearest one
    number.press("Enter")
    notebook.says(panel, "Budget 550: 3 of 5 passages, 510 tokens")
    number.fill("300")
    number.press("Enter")
    notebook.says(panel, "Budget 300: 2 of 5 passages, 196 tokens")
    assert slider.get_attribute("aria-valuenow") == "4.0"

    panel.get_by_text("Show as text").press("Enter")
    panel.locator("pre").filter(has_text="2. [d9a5bd8ea531] warranty-policy v5").wait_for()
    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.picture(pictures / f"budget-{theme}.png", of=panel).stat().st_size > 10_000
    assert notebook.errors() == []
    notebook.close()
