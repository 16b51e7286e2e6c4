"""Runs notebooks and cleans them for committing. One tool for everybody who changes a notebook:

    python notebooks/execute.py            run and clean all notebooks
    python notebooks/execute.py 04 05      these
    python notebooks/execute.py --check    run nothing, only say what is not fit to be committed

Each notebook runs in a kernel and with a folder of workspaces of its own, so it opens as on a fresh clone and its
output does not depend on who ran it. Cleaning keeps what a reader needs and drops what differs from run to run.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent
TIMEOUT = 300  # seconds for one cell
MOST_BYTES = 500_000
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET = "application/vnd.jupyter.widget-view+json"
TAGS = {"nbval-ignore-output", "nbval-skip", "hide-input"}
FORBIDDEN = {
    "an absolute path": re.compile(r"(?<![\w.:/-])/(home|root|tmp|Users|work|var|opt|mnt|private)/|\b[A-Z]:\\\\?\w"),
    "an address in memory": re.compile(r" at 0x[0-9a-fA-F]{6,}"),
}


def notebooks(chosen: list[str] = ()) -> list[Path]:
    """The notebooks whose names begin with one of `chosen`; all where none is chosen."""
    found = sorted(HERE.glob("[0-9][0-9]_*.ipynb"))
    named = [Path(name).name.removesuffix(".ipynb") for name in chosen]
    if missing := [name for name in named if not any(path.stem.startswith(name) for path in found)]:
        raise SystemExit(
            f"There is no notebook {missing[0]}; there are: {', '.join(path.stem for path in found) or 'none'}."
        )
    return [path for path in found if not named or any(path.stem.startswith(name) for name in named)]


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def execute(notebook: nbformat.NotebookNode, home: Path) -> nbformat.NotebookNode:
    """Run all cells in a new kernel with LAB_HOME at `home`."""
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(HERE)}},
    )
    client.execute(env=os.environ | {"LAB_HOME": str(home)}, stderr=subprocess.DEVNULL)
    return notebook


def clean(notebook: nbformat.NotebookNode, stem: str) -> nbformat.NotebookNode:
    """Without widget state, timing and changing ids; outputs joined where the kernel happened to send them in parts."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        cell.source = cell.source.rstrip("\n")
        digest = hashlib.sha256(f"{stem}|{cell.cell_type}|{cell.source}".encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = f"{digest}-{seen[digest]}" if seen[digest] > 1 else digest
        kept = {key: cell.metadata[key] for key in ("tags", "reason") if cell.metadata.get(key)}
        cell.metadata = nbformat.from_dict(kept)
        cell.pop("attachments", None)
        if cell.cell_type == "code":
            cell.outputs = [_clean_output(output) for output in _joined(cell.outputs)]
    return notebook


def _clean_output(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if "data" in output:
        output.data.pop(WIDGET, None)  # its model is gone; the text beside it says what was shown
    if "metadata" in output:
        output.metadata = nbformat.from_dict({})
    return output


def _joined(outputs: list) -> list:
    joined: list = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def as_text(notebook: nbformat.NotebookNode) -> str:
    nbformat.validate(notebook)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def write(notebook: nbformat.NotebookNode, path: Path) -> bool:
    """Write the notebook; False: it was the same already."""
    text = as_text(notebook)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8", newline="\n")
    return True


def faults(path: Path) -> list[str]:
    """Why a notebook is not fit to be committed: not run in order, not clean, errors, paths of somebody's machine."""
    text = path.read_text(encoding="utf-8")
    notebook, found = nbformat.reads(text, as_version=4), []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        found.append("the cells were not run once each, from the first to the last")
    cleaned = clean(nbformat.reads(text, as_version=4), path.stem)
    if as_text(cleaned) != text:
        found.append("it holds what execute.py cleans away: metadata, widget state, other cell ids")
    if len(text.encode()) > MOST_BYTES:
        found.append(f"it has {len(text.encode()):,} bytes; at most {MOST_BYTES:,}")
    for number, cell in enumerate(code, start=1):
        found += [f"cell {number}: {fault}" for fault in _cell_faults(cell)]
    for what, pattern in FORBIDDEN.items():
        for cell in notebook.cells:
            if match := pattern.search(cell.source) or pattern.search(output_text(cell)):
                found.append(f"{what}: {match.group()!r}")
    return found


def _cell_faults(cell: nbformat.NotebookNode) -> list[str]:
    found = [f"the tag {tag} is not in use here" for tag in cell.metadata.get("tags", []) if tag not in TAGS]
    if any(tag.startswith("nbval") for tag in cell.metadata.get("tags", [])) and not cell.metadata.get("reason"):
        found.append("a tag for nbval needs its reason in the cell's metadata")
    for output in cell.outputs:
        if output.output_type == "error":
            found.append(f"it ended with {output.ename}")
        if output.get("name") == "stderr":
            found.append(f"it wrote to stderr: {output.text.strip()[:80]!r}")
    return found


def output_text(cell: nbformat.NotebookNode) -> str:
    """All text of a cell's outputs."""
    parts = []
    for output in cell.get("outputs", []):
        values = [output.get("text", ""), *output.get("data", {}).values()]
        parts += [re.sub(r"base64,[A-Za-z0-9+/=\s]+", "", value) for value in values if isinstance(value, str)]
    return "\n".join(parts)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", metavar="NN", help="such as 04; default: all")
    parser.add_argument("--check", action="store_true", help="run nothing, only report")
    options = parser.parse_args(argv)
    bad = 0
    for path in notebooks(options.notebooks):
        if not options.check:
            notebook = read(path)
            try:
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
                    execute(notebook, Path(home) / "workspaces")
            except CellExecutionError as error:
                print(f"{path.name}: not written, a cell failed.\n{error}", file=sys.stderr)
                bad += 1
                continue
            changed = write(clean(notebook, path.stem), path)
            print(f"{path.name}: {'written' if changed else 'unchanged'}")
        for fault in faults(path):
            print(f"{path.name}: {fault}", file=sys.stderr)
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
