"""Notebooks and panels as a learner meets them: JupyterLab in headless Chromium, by keyboard, in light and dark."""

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest
from browser import Notebook, start_jupyterlab

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

DESK = '''import tempfile
from pathlib import Path
from desk import WordReranker, WordVectors, build_desk
from garden import document
from test_panels import BLADES, DEPOSIT, MOWER, TODAY, TRIMMER, Scripted, hire
from labsupport.lab.charts import cost_chart, life_chart
from labsupport.lab.panels import *
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
corpus, index = build_desk(Path(tempfile.mkdtemp()))
retriever = Retriever(Store(index), WordVectors(), WordReranker())
guides = [document(MOWER, doc_id="mower"), document(TRIMMER, doc_id="trimmer")]
copy = type("Copy", (), dict(zip(("corpus", "index"), build_desk(Path(tempfile.mkdtemp())))))
answer, context = hire(retriever)'''
PANELS = [
    "CostPanel(480, 12_000, 40)",
    "ChunksPanel(guides, WordVectors(), cut='overlap')",
    "FiltersPanel(retriever, 'H1', questions=[DEPOSIT])",
    "SearchPanel(retriever, 'H1', [DEPOSIT], TODAY, k=3)",
    "CitationsPanel(answer, context, retriever.store, TODAY, {'one digit missing': context.ids[0][1:]})",
    "EvidencePanel(question='train')",
    "LifePanel(retriever.store.documents(), '2026-08-01')",
    "DeletionPanel(deletion_steps(copy, 'till', WordVectors()))",
    "AssistantPanel(retriever, corpus, TODAY, 'H1', [DEPOSIT], Scripted(['The deposit ', 'is $95.']))",
]


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    """Opens notebooks, given as a file or as a list of cells, in one JupyterLab with an empty LAB_HOME."""
    folder, scratch = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("jupyterlab")
    env = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "LAB_HOME": str(scratch / "home")}
    with start_jupyterlab(folder, scratch, env) as (address, token):

        def open_notebook(source: Path | list[str]) -> Notebook:
            if isinstance(source, Path):
                shutil.copy(source, folder)
                return Notebook(browser, address, token, source.name)
            kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in source],
                                                metadata={"kernelspec": kernel})
            nbformat.write(notebook, folder / "cells.ipynb")
            return Notebook(browser, address, token, "cells.ipynb")

        yield open_notebook


@pytest.fixture
def pictures(tmp_path):
    """Where pictures go: LAB_PICTURES, for whoever wants to look at them, or a temporary folder."""
    return Path(os.environ.get("LAB_PICTURES") or tmp_path)


def test_the_budget_slider_moves_by_key_and_by_number(lab, pictures):
    figures = json.loads((ROOT / "tests" / "figures.json").read_text(encoding="utf-8"))
    ids = [passage["chunk_id"] for passage in figures["q30"]["passages"]]
    notebook = lab([Q30.format(corpus=str(ROOT / "corpus"), ids=ids)])
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

    notebook.picture(pictures / "panel.png", of=panel)  # docs/panel.png is this one
    panel.get_by_text("Show as text").press("Enter")
    panel.locator("pre").filter(has_text="2. [d9a5bd8ea531] warranty-policy v5").wait_for()
    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.picture(pictures / f"budget-{theme}.png", of=panel).stat().st_size > 10_000
    assert notebook.errors() == []
    notebook.close()


def test_an_error_in_a_notebook_is_seen(lab):
    notebook = lab(["print('before')", "import sys; print('a warning', file=sys.stderr)", "1 / 0", "print('after')"])
    notebook.run_all()
    warning, error = notebook.errors()
    assert "a warning" in warning and "ZeroDivisionError" in error
    notebook.close()


def test_every_panel_answers_to_each_of_its_controls(lab, pictures):
    charts = ["cost_chart(480, 12_000, 40)", "life_chart(retriever.store.documents(), '2026-08-01')"]
    notebook = lab([DESK, *PANELS, *charts])
    notebook.run_all()
    notebook.page.wait_for_function(f"document.querySelectorAll('.widget-vbox .said').length >= {len(PANELS)}")
    for theme in ("light", "dark"):
        notebook.theme(theme)
        notebook.picture(pictures / f"panels-{theme}.png")
    for at, source in enumerate(PANELS):
        panel = notebook.panel(at)
        assert notebook.cut_off(panel) == [], source
        assert len(set(notebook.move_controls(panel))) > 1, source
    assert notebook.page.locator(".lab-chart img").count() == len(charts)
    notebook.picture(pictures / "panels-moved.png")
    assert notebook.errors() == []
    notebook.close()


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_and_its_panels_move(lab, pictures, path):
    notebook = lab(path)
    assert notebook.problems == []
    notebook.run_all(300)
    for at in range(notebook.panels().count()):
        panel = notebook.panel(at)
        assert notebook.cut_off(panel) == []
        assert len(set(notebook.move_controls(panel))) > 1, f"panel {at + 1}"
    for theme in ("light", "dark"):
        notebook.theme(theme)
        assert notebook.picture(pictures / f"{path.stem}-{theme}.png").stat().st_size > 50_000
    assert notebook.errors() == []
    notebook.close()
