"""The README is true: its commands print what it shows, its links and Python lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the corpus in it, as a reader has after cloning."""
    here = tmp_path_factory.mktemp("readme")
    try:
        (here / "corpus").symlink_to(ROOT / "corpus", target_is_directory=True)
    except OSError:  # Windows without the right to make links
        import shutil

        shutil.copytree(ROOT / "corpus", here / "corpus")
    return here


def run(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=environment)
    return done.stdout + done.stderr


@pytest.mark.model
def test_every_console_line_prints_what_the_readme_shows(folder: Path) -> None:
    lines = "".join(CONSOLE).split("$ ")[1:]
    assert len(lines) >= 7
    for block in lines:
        command, _, shown = block.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "python"
        assert run(folder, *arguments) == shown


@pytest.mark.model
def test_the_python_example_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    run(folder, "-m", "labsupport", "ingest")
    assert re.fullmatch(r"\[('[0-9a-f]{12}'(, )?)+\] [0-9]+ \(.*\)\n", run(folder, "-c", code))


def test_every_link_leads_to_a_file() -> None:
    targets = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert targets
    assert [link for link in targets if not (ROOT / link).exists()] == []


def test_every_command_is_in_the_readme() -> None:
    from labsupport.cli import app

    groups = [group.name for group in app.registered_groups if group.name]
    named = {command.name or command.callback.__name__ for command in app.registered_commands}
    merged = {
        command.name or command.callback.__name__
        for group in app.registered_groups if not group.name
        for command in group.typer_instance.registered_commands
    }  # fmt: skip
    for name in [*groups, *named, *merged]:
        assert re.search(rf"`{name}\b|, `{name}\b", README), name


def test_the_environment_file_and_pyproject_agree() -> None:
    import tomllib

    import yaml

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert conda["name"] == project["name"]
    plain = [entry for entry in conda["dependencies"] if isinstance(entry, str)]
    assert [entry for entry in plain if not entry.startswith("python=")] == ["pip"]
    (pip,) = [entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict)]
    assert pip == ["-e .[dev]"], "pyproject.toml is the one list of dependencies"
    python = next(entry.split("=")[1] for entry in conda["dependencies"] if str(entry).startswith("python="))
    assert project["requires-python"] == f">={python}"
