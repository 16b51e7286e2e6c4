"""Making the snapshots: all of them, from the course's corpus, the same bytes each time.

`base` is what the course's documents give. A module that leaves documents changed (EDITS) adds a folder with those
documents only, so that a diff of the repository shows what changed and nothing else.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from labsupport.lab.answers import FILE as ANSWERS
from labsupport.lab.answers import KINDS, as_text
from labsupport.lab.exercises import modules
from labsupport.lab.home import course_root
from labsupport.lab.snapshot_files import STATE, corpus_hash, document_at, json_lines, load, names, snapshots_folder
from labsupport.lab.snapshot_manifest import (
    CHUNKS_FILE,
    CORPUS_FILE,
    FORMAT,
    LAST_MODULE,
    LAYER_FILES,
    MANIFEST,
    VECTORS_FILE,
    sealed,
    sha256,
)
from labsupport.lab.soundness import CORPUS, course_parts
from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import SHARED
from labsupport.pipeline.corpus import document_paths

BASE = "base"
# What a module leaves changed in the learner's documents: file, old text, new text.
EDITS: dict[int, list[tuple[str, str, str]]] = {
    6: [("documents/gift-cards.md", "in your account", "in your Larkfield account")],
}
# What an edit moves, and what a document says of all its chunks: a line each, so that a diff shows what changed.
HEADS = (("chunk_id", "seq", "start", "end", "section_start"), SHARED)
Progress = Callable[[int, int], None]
Vectors = dict[str, np.ndarray]


def build(
    corpus: Path | None = None, folder: Path | None = None, anew: bool = False, progress: Progress | None = None
) -> list[str]:
    """Make all snapshots and return the paths of the files that changed. Other files of theirs are removed.

    Says which edits are left out, as a corpus of other documents has no such page.
    Texts that are embedded in a whole snapshot of the same model already keep their vectors, as another processor would
    round the last bits otherwise and every vector would differ; `anew` works them all out again.
    """
    folder = folder or snapshots_folder()
    corpus = corpus or course_root() / CORPUS
    made = render(corpus, {} if anew else known_vectors(folder), progress)
    there = read_state(corpus)
    for number, edits in EDITS.items():
        for path in dict.fromkeys(path for path, _, _ in edits if path not in there):
            print(f"Left out: the edit of module {number} in {path}, a page that {corpus.as_posix()} has not.")
    before = {path.relative_to(folder).as_posix() for name in (BASE, "end-of-m*") for path in folder.glob(f"{name}/*")}
    changed = sorted(before - made.keys())
    for path in changed:
        (folder / path).unlink()
    for path, data in made.items():
        target = folder / path
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            changed.append(path)
    for place in folder.glob("end-of-m*"):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
    return sorted(changed)


def known_vectors(folder: Path) -> Vectors:
    """The vectors of the texts in the snapshots there are; none of a snapshot that would be refused."""
    known: Vectors = {}
    for name in names(folder):
        with suppress(LabError):
            known |= {chunk.text: vector for rows in load(name, folder).rows.values() for chunk, vector in rows}
    return known


def render(corpus: Path, known: Vectors | None = None, progress: Progress | None = None) -> dict[str, bytes]:
    """Every file of every snapshot, by its path in the snapshots folder. `known`: vectors by text."""
    state = read_state(corpus)
    if not any(path.startswith("documents/") for path in state):
        raise LabError(f"There are no documents in {corpus.as_posix()}/documents; put some there, or name another DIR.")
    known = dict(known or {})
    layers, made = [BASE], layer_files(BASE, state, known, progress)
    counts = {BASE: _chunk_counts(made[f"{BASE}/{CHUNKS_FILE}"])}
    for number in range(1, LAST_MODULE + 1):
        name = f"end-of-m{number:02d}"
        if changed := _edited(state, number):
            state |= changed
            made |= layer_files(name, changed, known)
            layers.append(name)
            counts[name] = _chunk_counts(made[f"{name}/{CHUNKS_FILE}"])
        made[f"{name}/{ANSWERS}"] = as_text(solved_until(number)).encode()
        inside = [f"{layer}/{file}" for layer in layers for file in LAYER_FILES] + [f"{name}/{ANSWERS}"]
        per_document: dict[str, int] = {}
        for layer in layers:
            per_document |= counts[layer]
        made[f"{name}/{MANIFEST}"] = sealed(
            _manifest(name, number, state, layers)
            | {"chunks": sum(per_document.values()), "files": {path: sha256(made[path]) for path in inside}}
        )
    return dict(sorted(made.items()))


def read_state(corpus: Path) -> dict[str, bytes]:
    """The files of a corpus that belong to a learner's state, by path: the documents, the inventory, the defaults."""
    paths = [*document_paths(corpus), *(path for name in STATE if (path := corpus / name).is_file())]
    return {path.relative_to(corpus).as_posix(): path.read_bytes() for path in paths}


def layer_files(
    name: str, files: dict[str, bytes], known: Vectors, progress: Progress | None = None
) -> dict[str, bytes]:
    """The three files of a layer: these corpus files, their chunks, one vector for each chunk."""
    chunker, embedder = course_parts()
    documents = [document_at(path, data) for path, data in sorted(files.items()) if path.startswith("documents/")]
    chunks = [chunk for document in documents for chunk in chunker.chunk(document)]
    new = list(dict.fromkeys(chunk.text for chunk in chunks if chunk.text not in known))
    known.update(zip(new, embedder.embed(new, progress=progress), strict=True))
    vectors = io.BytesIO()
    np.save(vectors, np.vstack([known[chunk.text] for chunk in chunks]), allow_pickle=False)
    texts = [{"path": path, "body": data.decode("utf-8")} for path, data in sorted(files.items())]
    return {
        f"{name}/{CORPUS_FILE}": _lines(texts),
        f"{name}/{CHUNKS_FILE}": _lines([chunk.as_dict() for chunk in chunks]),
        f"{name}/{VECTORS_FILE}": vectors.getvalue(),
    }


def solved_until(number: int) -> dict[str, dict]:
    """The exercises of the modules up to this one, answered with their solutions."""
    solved = {
        exercise.id: {"answer": exercise.solution_text, "by": "snapshot", "passed": True}
        for module in modules()
        if int(module.number) <= number
        for exercise in module.exercises
    }
    return {kind: solved if kind == "exercises" else {} for kind in KINDS}


def _manifest(name: str, number: int, state: dict[str, bytes], layers: list[str]) -> dict:
    chunker, embedder = course_parts()
    return {
        "format": FORMAT,
        "name": name,
        "module": f"{number:02d}",
        "corpus": corpus_hash(state),
        "documents": sum(path.startswith("documents/") for path in state),
        "chunks": 0,
        "chunker": chunker.name,
        "embedding_model": embedder.name,
        "fingerprint": embedder.fingerprint,
        "dimensions": embedder.dimensions,
        "layers": list(layers),
        "files": {},
    }


def _edited(state: dict[str, bytes], number: int) -> dict[str, bytes]:
    """The documents that this module changes, as far as there are such pages."""
    changed: dict[str, bytes] = {}
    for path, old, new in EDITS.get(number, []):
        if path not in state:
            continue
        text = changed.get(path, state[path]).decode("utf-8")
        if text.count(old) != 1:
            raise LabError(
                f"Module {number} changes {old!r} in {path}, which must hold it exactly once, not {text.count(old)} "
                "times; mend the page, or EDITS in labsupport/lab/snapshot_build.py."
            )
        changed[path] = text.replace(old, new).encode()
    return changed


def _chunk_counts(lines: bytes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for chunk in json_lines(lines):
        label = f"{chunk['doc_id']} v{chunk['version']}"
        counts[label] = counts.get(label, 0) + 1
    return counts


def _lines(rows: list[dict]) -> bytes:
    """What `json_lines` reads: objects, then the lines of the text."""
    lines: list[object] = []
    for row in rows:
        rest = sorted(row.keys() - {"body", *(key for head in HEADS for key in head)})
        heads = [{key: row[key] for key in keys if key in row} for keys in (*HEADS, rest)]
        lines += [head for head in heads if head] + row["body"].split("\n")
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
