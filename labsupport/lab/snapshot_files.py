"""The files of a snapshot: reading and verifying them.

    snapshots/base/              what the course's own documents give: corpus.jsonl, chunks.jsonl, vectors.npy
    snapshots/end-of-m06/        manifest.json, answers.json, and the same three files for documents that differ

Both .jsonl files have one JSON value a line. An object says what comes (a file, a chunk), the strings below it are the
lines of its text: a word that changes is one short line in a diff.

A state is made of layers: `base`, then the folders that changed it. The manifest (snapshot_manifest.py) names them,
what made the index, and the SHA-256 of every file. A snapshot is verified in memory, in full, before anything is done
with it.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labsupport.lab.answers import FILE as ANSWERS
from labsupport.lab.answers import KINDS
from labsupport.lab.home import course_root
from labsupport.lab.snapshot_manifest import (
    CHUNKS_FILE,
    CORPUS_FILE,
    MANIFEST,
    REBUILD,
    VECTORS_FILE,
    Refused,
    read_manifest,
    sha256,
)
from labsupport.lab.soundness import CORPUS, course_parts
from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.corpus import Document, read_document
from labsupport.pipeline.index import Entry, Key

# Files of the corpus folder that belong to a learner's state, beside the documents.
STATE = ("course.yaml", "inventory.csv")


@dataclass
class Snapshot:
    """A verified snapshot, in memory. `files`: corpus files by path; `rows`: chunks and their vectors by document."""

    name: str
    manifest: dict
    answers: dict = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    rows: dict[Key, list[tuple[Chunk, np.ndarray]]] = field(default_factory=dict)

    @property
    def documents(self) -> dict[str, str]:
        """SHA-256 of each document by path."""
        return {path: sha256(data) for path, data in sorted(self.files.items()) if path.startswith("documents/")}


def snapshots_folder() -> Path:
    return course_root() / "snapshots"


def names(folder: Path | None = None) -> list[str]:
    """The snapshots there are, in the order of the modules."""
    folder = folder or snapshots_folder()
    return sorted(path.parent.name for path in folder.glob(f"end-of-m*/{MANIFEST}"))


def load(name: str, folder: Path | None = None) -> Snapshot:
    """Read and verify one snapshot. Raises Refused with one sentence: what is wrong, and how to mend it."""
    folder = folder or snapshots_folder()
    known = names(folder)
    if name not in known:
        if re.fullmatch(r"end-of-m[0-9]+", name) and (folder / name).is_dir():
            raise Refused(name, f"has no {MANIFEST}")
        there = f"there are: {', '.join(known)}." if known else f"there are none, so {REBUILD}"
        raise LabError(f"There is no snapshot {name}; {there}")
    manifest = read_manifest(name, folder)
    contents = {path: _verified(name, folder, path, digest) for path, digest in manifest["files"].items()}
    try:
        snapshot = _assemble(name, manifest, contents)
        found = _found(snapshot)
    except Exception as error:  # whatever files hold that another program made, it is no snapshot of ours
        reason, *_ = re.split(r"[.;] |\.$", " ".join(str(error).split()))
        raise Refused(name, f"cannot be read ({reason})") from error
    for key, value in found.items():
        if manifest[key] != value:
            raise Refused(name, f"cannot be read: {MANIFEST} says {key} {manifest[key]!r}, not {value!r}")
    return snapshot


def examine(name: str, folder: Path) -> Snapshot | list[Refused]:
    """The snapshot, or every file of it that is not as it was made, or what is wrong with the whole."""
    faults = []
    try:
        for path, digest in read_manifest(name, folder)["files"].items():
            try:
                _verified(name, folder, path, digest)
            except Refused as fault:
                faults.append(fault)
        return faults or load(name, folder)
    except Refused as fault:
        return [fault]


def _verified(name: str, folder: Path, path: str, digest: object) -> bytes:
    try:
        data = (folder / path).read_bytes()
    except OSError as error:
        raise Refused(name, f"depends on {path}, which cannot be read ({error.strerror})") from error
    if sha256(data) != digest:
        raise Refused(
            name,
            f"depends on {path}, which is not the file it was made with ({len(data)} bytes, SHA-256 begins "
            f"{sha256(data)[:8]}, expected {str(digest)[:8]})",
        )
    return data


def _assemble(name: str, manifest: dict, contents: dict[str, bytes]) -> Snapshot:
    """Lay the layers on each other: a later one replaces whole files, and all chunks of a document version it holds."""
    answers = json.loads(contents[f"{name}/{ANSWERS}"])
    if not all(isinstance(value, dict) for kind in KINDS for value in answers[kind].values()):
        raise ValueError(f"{ANSWERS} holds no answers")
    snapshot = Snapshot(name, manifest, answers)
    for layer in manifest["layers"]:
        for entry in json_lines(contents[f"{layer}/{CORPUS_FILE}"]):
            snapshot.files[_inside(entry["path"])] = entry["body"].encode()
        chunks = [Chunk.from_dict(values) for values in json_lines(contents[f"{layer}/{CHUNKS_FILE}"])]
        vectors = np.load(io.BytesIO(contents[f"{layer}/{VECTORS_FILE}"]), allow_pickle=False)
        if vectors.shape != (len(chunks), manifest["dimensions"]) or vectors.dtype != np.float32:
            raise ValueError(f"{layer}/{VECTORS_FILE} holds other vectors than one for each chunk")
        new: dict[Key, list[tuple[Chunk, np.ndarray]]] = {}
        for chunk, vector in zip(chunks, vectors, strict=True):
            new.setdefault((chunk.doc_id, chunk.version), []).append((chunk, vector))
        snapshot.rows |= new
    return snapshot


def _inside(path: str) -> str:
    """A path that stays in the learner's corpus folder, on every system."""
    parts = path.split("/")
    if path not in STATE and (parts[0] != "documents" or re.search(r"[\\:\0]|(^|/)\.{0,2}(/|$)", path)):
        raise ValueError(f"{path!r} is no file of a learner's corpus")
    return path


def _found(snapshot: Snapshot) -> dict[str, object]:
    """What the manifest should say of the snapshot, worked out from its content. Raises where the content has gaps."""
    made = entries(snapshot)
    return {
        "name": snapshot.name,
        "module": snapshot.name[-2:],
        "corpus": corpus_hash(snapshot.files),
        "documents": len(made),
        "chunks": sum(len(rows) for rows in snapshot.rows.values()),
        "embedding_model": course_parts()[1].name,
        "dimensions": course_parts()[1].dimensions,
    }


def corpus_hash(files: dict[str, bytes]) -> str:
    """One SHA-256 for a state: that of the lines `sha256sum` would print for its files."""
    return sha256("".join(f"{sha256(data)}  {path}\n" for path, data in sorted(files.items())).encode())


def json_lines(data: bytes) -> list[dict]:
    """The entries of a .jsonl file: what its objects say, and as `body` the text that stands below them."""
    found: list[tuple[dict, list[str]]] = []
    for line in data.decode("utf-8").split("\n"):
        value = json.loads(line) if line else None
        if isinstance(value, str) and found:
            found[-1][1].append(value)
        elif isinstance(value, dict):
            if not found or found[-1][1]:
                found.append(({}, []))
            found[-1][0].update(value)
        elif line:
            raise ValueError(f"{line[:20]!r} is neither an entry nor a line of one")
    return [head | {"body": "\n".join(lines)} for head, lines in found]


def document_at(path: str, data: bytes) -> Document:
    return read_document(Path(CORPUS, path), Path(CORPUS), data)


def entries(snapshot: Snapshot) -> list[Entry]:
    """The index content, ready to be stored."""
    made = []
    for path in snapshot.documents:
        document = document_at(path, snapshot.files[path])
        rows = snapshot.rows[document.doc_id, document.version]
        made.append(Entry(document, [chunk for chunk, _ in rows], np.vstack([vector for _, vector in rows])))
    return made
