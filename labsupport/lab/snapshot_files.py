"""The files of a snapshot: reading and verifying them.

    snapshots/base/              what the course's own documents give: corpus.jsonl, chunks.jsonl, vectors.npy
    snapshots/end-of-m06/        manifest.json, answers.json, and the same three files for documents that differ

A state is made of layers: `base`, then the folders that changed it. The manifest names them, what made the index, and
the SHA-256 of every file; its last entry is the SHA-256 of the manifest itself. A snapshot is verified in memory, in
full, before anything is done with it.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labsupport.lab.answers import FILE as ANSWERS
from labsupport.lab.home import course_root
from labsupport.lab.soundness import CORPUS, course_parts
from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk
from labsupport.pipeline.corpus import Document, read_document
from labsupport.pipeline.index import Entry, Key

FORMAT = 1
MANIFEST = "manifest.json"
CORPUS_FILE, CHUNKS_FILE, VECTORS_FILE = LAYER_FILES = ("corpus.jsonl", "chunks.jsonl", "vectors.npy")
REBUILD = "build them all from the corpus with: python -m labsupport snapshot build"
MEND = f"Get the committed files back with `git checkout -- snapshots`, or {REBUILD}"


class Refused(LabError):
    """A snapshot that cannot be restored. Nothing has been changed."""


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
    if name not in names(folder):
        known = ", ".join(names(folder)) or "none, so " + REBUILD
        raise Refused(f"There is no snapshot {name}; there are: {known}.")
    manifest = read_manifest(name, folder)
    chunker, embedder = course_parts()
    for what, key, now in (
        ("chunker", "chunker", chunker.name),
        ("embedding model", "fingerprint", embedder.fingerprint),
    ):
        if manifest[key] != now:
            raise Refused(
                f"Snapshot {name} was made with another {what} ({manifest[key]}) than the lab uses now ({now}). "
                f"Go back to that one, or {REBUILD}"
            )
    contents = {path: _verified(name, folder, path, digest) for path, digest in manifest["files"].items()}
    try:
        return _assemble(name, manifest, contents)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise Refused(f"Snapshot {name} cannot be read ({error}). {MEND}") from error


def read_manifest(name: str, folder: Path) -> dict:
    """The manifest, its own seal verified and its format known."""
    try:
        data = (folder / name / MANIFEST).read_bytes()
        manifest = json.loads(data)
        given = manifest["format"]
    except OSError as error:
        raise Refused(f"Snapshot {name}: {MANIFEST} cannot be read ({error.strerror}). {MEND}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"Snapshot {name}: {MANIFEST} is not a manifest. {MEND}") from error
    if given != FORMAT:
        raise Refused(
            f"Snapshot {name} has format {given!r} and this program reads {FORMAT}. Update the program, or {REBUILD}"
        )
    bare = {key: value for key, value in manifest.items() if key != "seal"}
    if data != sealed(bare):
        raise Refused(f"Snapshot {name}: {MANIFEST} was changed since it was made. {MEND}")
    return manifest


def sealed(manifest: dict) -> bytes:
    """The manifest's bytes, with the SHA-256 of the rest as its last entry."""
    seal = sha256(json.dumps(manifest, ensure_ascii=False, sort_keys=True).encode())
    return (json.dumps(manifest | {"seal": seal}, ensure_ascii=False, indent=1) + "\n").encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _verified(name: str, folder: Path, path: str, digest: str) -> bytes:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise Refused(f"Snapshot {name} names a file outside its folder ({path}). {MEND}")
    try:
        data = (folder / path).read_bytes()
    except OSError as error:
        raise Refused(f"Snapshot {name}: its file {path} cannot be read ({error.strerror}). {MEND}") from error
    if sha256(data) != digest:
        raise Refused(
            f"Snapshot {name}: {path} is not the file it was made with ({len(data)} bytes, SHA-256 begins "
            f"{sha256(data)[:8]}, expected {digest[:8]}). {MEND}"
        )
    return data


def _assemble(name: str, manifest: dict, contents: dict[str, bytes]) -> Snapshot:
    """Lay the layers on each other: a later one replaces whole files, and all chunks of a document version it holds."""
    snapshot = Snapshot(name, manifest, json.loads(contents[f"{name}/{ANSWERS}"]))
    for layer in manifest["layers"]:
        for entry in json_lines(contents[f"{layer}/{CORPUS_FILE}"]):
            snapshot.files[entry["path"]] = entry["text"].encode()
        chunks = [Chunk.from_dict(values) for values in json_lines(contents[f"{layer}/{CHUNKS_FILE}"])]
        vectors = np.load(io.BytesIO(contents[f"{layer}/{VECTORS_FILE}"]), allow_pickle=False)
        new: dict[Key, list[tuple[Chunk, np.ndarray]]] = {}
        for chunk, vector in zip(chunks, vectors, strict=True):
            new.setdefault((chunk.doc_id, chunk.version), []).append((chunk, vector))
        snapshot.rows |= new
    return snapshot


def json_lines(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.decode("utf-8").split("\n") if line.strip()]


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
