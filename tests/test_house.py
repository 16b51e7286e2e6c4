"""The house: imports run one way, modules are short enough to read, texts are opened as UTF-8."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "labsupport"
MODULES = {path: path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in PACKAGE.rglob("*.py")}
NAMES = {path: name.removesuffix(".__init__") for path, name in MODULES.items()}


def imports(path: Path, at_top: bool = False) -> set[str]:
    """The modules of the package that a file imports, those inside functions too unless `at_top`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = NAMES[path] if path.name == "__init__.py" else NAMES[path].rpartition(".")[0]
    known, found = set(NAMES.values()), set()
    for node in tree.body if at_top else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            submodules = {f"{base}.{alias.name}" for alias in node.names}
            found |= (submodules & known) | ({base} if not submodules <= known else set())
    return (found & known) - {NAMES[path]}


@pytest.mark.parametrize("path", sorted(MODULES), ids=lambda path: NAMES[path])
def test_the_pipeline_imports_nothing_of_its_users(path: Path) -> None:
    part = NAMES[path].split(".")[1:2]
    if part == ["pipeline"]:
        above = {name for name in imports(path) if not name.startswith("labsupport.pipeline")}
        assert above <= {"labsupport"}, "the pipeline is used by lab, service, engines and cli, never the reverse"


def test_no_circles() -> None:
    # A part may name the package it stands in; what matters is that no two parts need each other.
    graph = {
        name: {other for other in imports(path, at_top=True) if not name.startswith(f"{other}.")}
        for path, name in NAMES.items()
    }
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"circle: {' -> '.join([*trail, name])}"
        if name not in done:
            for other in graph[name]:
                walk(other, (*trail, name))
            done.add(name)

    for name in graph:
        walk(name, ())


def test_the_reading_order_holds_every_module_after_what_it_needs() -> None:
    from labsupport import pipeline

    order = pipeline.READING_ORDER.split()
    modules = {path.stem: path for path in (PACKAGE / "pipeline").glob("*.py") if path.stem != "__init__"}
    assert sorted(order) == sorted(modules)
    for place, name in enumerate(order):
        needs = {other.removeprefix("labsupport.pipeline.") for other in imports(modules[name], at_top=True)}
        later = needs & set(order[place + 1 :])
        assert not later, f"{name} imports {later}, which comes after it"


@pytest.mark.parametrize("path", sorted(MODULES), ids=lambda path: NAMES[path])
def test_a_module_is_read_in_one_sitting(path: Path) -> None:
    # The content of a module's exercises is text to read beside the notebook; everything else is code.
    limit = 300 if path.match("lab/exercises/m0?.py") else 280
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit
    assert "utils" not in path.stem


@pytest.mark.parametrize("path", sorted(MODULES), ids=lambda path: NAMES[path])
def test_text_is_opened_as_utf8(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"read_text", "write_text"}:
            assert any(k.arg == "encoding" for k in node.keywords), f"{path.name}:{node.lineno} names no encoding"


def test_the_public_names_are_there() -> None:
    import labsupport

    for name in labsupport.__all__:
        assert getattr(labsupport, name) is not None
    with pytest.raises(AttributeError):
        labsupport.no_such_name  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    heavy = ["torch", "numpy", "pandas", "yaml", "markdown_it"]
    code = f"import sys, labsupport; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
