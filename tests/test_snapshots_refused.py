"""Snapshots that are refused: in one sentence each, whatever is wrong with them, and nothing is touched."""

import io
import json
import random
import re
import shutil

import numpy as np
import pytest
from disk import tree

from labsupport.cli import run
from labsupport.lab import snapshots
from labsupport.lab.home import Home, course_root
from labsupport.lab.snapshot_files import corpus_hash, load, snapshots_folder
from labsupport.lab.snapshot_manifest import sealed, sha256
from labsupport.pipeline import LabError

FOLDER, CORPUS = snapshots_folder(), course_root() / "corpus"
MANIFEST = json.loads((FOLDER / "end-of-m06/manifest.json").read_bytes())
KEYS = [key for key in MANIFEST if key != "seal"]


@pytest.fixture
def folder(tmp_path):
    """The snapshots, to be damaged."""
    return shutil.copytree(FOLDER, tmp_path / "snapshots")


def refused(folder, home, name="end-of-m06"):
    """The one sentence, after making sure that nothing was touched."""
    before = tree(home) if home.exists() else None
    with pytest.raises(LabError) as error:
        snapshots.restore(name, Home(home), folder)
    assert (tree(home) if home.exists() else None) == before
    return one_sentence(str(error.value))


def one_sentence(said):
    """What, where and what to do, in one sentence of one line."""
    assert "\n" not in said and said.endswith(".") and not re.search(r"[.!?;] [A-Z]|\.\.$|\.;", said), said
    assert re.search(r"; (get|go back|update|remove|there are|build)", said), said
    return said


@pytest.mark.parametrize("path", [path for path in tree(FOLDER) if path.split("/")[0] in ("base", "end-of-m06")])
def test_a_changed_byte_anywhere_is_refused(path, folder, lab_home):
    snapshots.restore("end-of-m01", Home(lab_home))
    data = bytearray((folder / path).read_bytes())
    rng = random.Random(path)
    for place in {0, len(data) // 2, len(data) - 1, *(rng.randrange(len(data)) for _ in range(5))}:
        changed = data.copy()
        changed[place] ^= 1 << rng.randrange(8)
        (folder / path).write_bytes(changed)
        said = refused(folder, lab_home)
        assert path.split("/")[1] in said or "format" in said
        assert [one_sentence(fault) for fault in snapshots.verify(folder)]
    for cut in (len(data) - 1, len(data) // 2, 0):
        (folder / path).write_bytes(data[:cut])
        assert path.split("/")[1] in refused(folder, lab_home)
    (folder / path).unlink()
    assert refused(folder, lab_home)


def remake(folder, name, **changes):
    """A manifest that is whole and says something else."""
    path = folder / name / "manifest.json"
    manifest = json.loads(path.read_bytes()) | changes
    path.write_bytes(sealed({key: value for key, value in manifest.items() if key != "seal"}))


@pytest.mark.parametrize(("changes", "said"), [
    ({"format": 1}, "has format 1 and this program reads 2; get the committed files back"),
    ({"format": 3}, "has format 3 and this program reads 2; update the program"),
    ({"format": "2"}, "has format '2' and this program reads 2; update the program"),
    ({"fingerprint": "other-model:0123"}, "was made with another embedding model (other-model:0123)"),
    ({"chunker": "fixed(words=120)"}, "was made with another chunker (fixed(words=120))"),
    ({"files": {"../../secret": "0" * 64}}, "names other files than its layers have (../../secret, "),
    ({"format": True}, "has format True and this program reads 2"),
    ({"layers": ["base", "end-of-m09"]}, "names other files than its layers have (end-of-m06/chunks.jsonl, "),
    ({"layers": ["base", "../../.."]}, "names layers that are none"),
    ({"layers": []}, "names layers that are none"),
    ({"layers": None}, "end-of-m06/manifest.json has no list as 'layers'"),
    ({"documents": 35}, "says documents 35, not 36"),
    ({"chunks": 184}, "says chunks 184, not 185"),
    ({"corpus": "0" * 64}, "says corpus '0000"),
    ({"module": "05"}, "says module '05', not '06'"),
])
def test_what_it_was_not_made_for_is_refused(changes, said, folder, lab_home):
    remake(folder, "end-of-m06", **changes)
    assert said in refused(folder, lab_home)


def test_an_unknown_name_is_refused_naming_those_there_are(folder, lab_home):
    assert "There is no snapshot end-of-m08; there are: end-of-m01, " in refused(folder, lab_home, "end-of-m08")
    assert "There is no snapshot ../x" in refused(folder, lab_home, "../x")


def test_verify_names_strays_and_documents_that_changed_since(folder, tmp_path):
    (folder / "end-of-m02/notes.txt").write_text("mine")
    assert snapshots.verify(folder)[0].startswith("end-of-m02/notes.txt belongs to no snapshot")
    corpus = shutil.copytree(CORPUS, tmp_path / "corpus")
    (corpus / "documents/gift-cards.md").unlink()
    faults = snapshots.verify(FOLDER, corpus)
    assert len(faults) == 1 and "documents/gift-cards.md" in faults[0] and "snapshot build" in faults[0]
    assert "There are no snapshots" in snapshots.verify(tmp_path)[0]


@pytest.mark.parametrize("key", KEYS)
def test_a_sealed_manifest_with_an_entry_missing_or_of_another_kind_is_refused(key, folder, lab_home):
    path = folder / "end-of-m06/manifest.json"
    snapshots.restore("end-of-m01", Home(lab_home))
    bare = {name: value for name, value in MANIFEST.items() if name not in ("seal", key)}
    path.write_bytes(sealed(bare))
    said = refused(folder, lab_home)
    assert said.startswith("Snapshot end-of-m06 cannot be read: end-of-m06/manifest.json ")
    assert snapshots.verify(folder) == [said] and snapshots.summary("end-of-m06", folder)["fault"] == said
    for other in (None, [], ["base"], [None], [[]], [{}], "", "other", 0, -1, 7.5, True, {}, {"a": None}, {"base": {}}):
        path.write_bytes(sealed(bare | {key: other}))
        assert refused(folder, lab_home).startswith("Snapshot end-of-m06 ")


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"3", b"null", b'"end-of-m06"', b"{}", b"[" * 100_000, b"\xff\xfe", b'{"format": 2}',
    b'{"format": 2, "name": "\\ud800"}', b'{"format": NaN}', b'{"format": [1]}'])
def test_what_is_no_manifest_is_refused(data, folder, lab_home):
    (folder / "end-of-m06/manifest.json").write_bytes(data)
    assert refused(folder, lab_home) and snapshots.summary("end-of-m06", folder)["fault"]


def reseal(folder, path, data):
    """Another content of one file, with all hashes as they should be."""
    (folder / path).write_bytes(data)
    remake(folder, "end-of-m06", files=MANIFEST["files"] | {path: sha256(data)})


def saved(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


VECTORS = np.load(FOLDER / "end-of-m06/vectors.npy")
OUTSIDE = ["../x", "../../secret", "/etc/secret", "documents/../../secret", "documents\\..\\secret", "C:secret", "",
           "documents/", "documents//x.md", "documents/x:y.md", "questions.csv"]


@pytest.mark.parametrize(("file", "data"), [
    *[("answers.json", data) for data in (b"", b"[]", b"{}", b'{"exercises": {"1.1": 3}}', b"null", b"\xff")],
    *[("chunks.jsonl", data) for data in (b"", b"{}", b"[]\n", b"null\n", b"3\n", b"{", b"\xff", b'"no head"\n')],
    *[("corpus.jsonl", data) for data in (b"", b"{}", b"[]\n", b'{"path": 3}\n"x"\n', b"\xff", b'"no head"\n',
                                          b'{"path": "documents/x.md"}\n"x"\n')],
    *[("vectors.npy", data) for data in (b"", b"PK\3\4", b"\x93NUMPY", b"\x80\4N.")],
    *[("vectors.npy", saved(array)) for array in (VECTORS[:1], VECTORS[0], VECTORS[:, :99], VECTORS.astype(float))],
])
def test_sealed_files_that_hold_something_else_are_refused(file, data, folder, lab_home):
    reseal(folder, f"end-of-m06/{file}", data)
    assert refused(folder, lab_home).startswith("Snapshot end-of-m06 cannot be read")


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leaves_the_learners_corpus_is_refused_though_all_hashes_are_right(path, folder, lab_home):
    """Only the path is wrong: no other check may be what refuses it."""
    data = (FOLDER / "end-of-m06/corpus.jsonl").read_bytes() + f'{json.dumps({"path": path})}\n"x"\n'.encode()
    files = load("end-of-m06").files | {path: b"x"}
    reseal(folder, "end-of-m06/corpus.jsonl", data)
    remake(folder, "end-of-m06", corpus=corpus_hash(files))
    said = refused(folder, lab_home)
    assert f"cannot be read ({path!r} is no file of a learner's corpus)" in said
    assert not (lab_home.parent / "x").exists()


@pytest.mark.parametrize("name", ["end-of-m05", "end-of-m06"])
def test_a_snapshot_without_its_manifest_is_named(name, folder, lab_home):
    (folder / name / "manifest.json").unlink()
    said = refused(folder, lab_home, name)
    assert said.startswith(f"Snapshot {name} has no manifest.json; ") and snapshots.verify(folder) == [said]
    shutil.rmtree(folder / name)
    assert snapshots.verify(folder)[0] == said


def test_verify_says_once_what_concerns_them_all(folder, monkeypatch, capsys):
    data = (folder / "base/chunks.jsonl").read_bytes()
    (folder / "base/chunks.jsonl").write_bytes(data[:-1])
    (folder / "base/vectors.npy").unlink()
    (folder / "end-of-m02/answers.json").write_bytes(b"{}")
    said = [one_sentence(fault) for fault in snapshots.verify(folder)]
    assert [fault.partition(" (")[0] for fault in said] == [
        "Each of the 7 snapshots depends on base/chunks.jsonl, which is not the file it was made with",
        "Each of the 7 snapshots depends on base/vectors.npy, which cannot be read",
        "Snapshot end-of-m02 depends on end-of-m02/answers.json, which is not the file it was made with"]
    monkeypatch.setattr(snapshots, "snapshots_folder", lambda: folder)
    assert run(["snapshot", "verify"]) == 1 and capsys.readouterr().out.splitlines() == said


def test_verify_names_those_that_share_a_layer_of_their_own(folder):
    (folder / "end-of-m06/chunks.jsonl").write_bytes(b"")
    (said,) = snapshots.verify(folder)
    assert said.startswith("Each of end-of-m06, end-of-m07 depends on end-of-m06/chunks.jsonl, which is not the file ")


def test_another_model_is_said_once(folder):
    for name in snapshots.names(folder):
        remake(folder, name, fingerprint="other-model:0123")
    (said,) = snapshots.verify(folder)
    assert said.startswith("Each of the 7 snapshots was made with another embedding model (other-model:0123) than ")
