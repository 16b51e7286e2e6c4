"""The manifest of a snapshot, and what is said when a snapshot is refused.

A manifest has the SHA-256 of everything else as its last entry. That finds a changed byte, but not a manifest that was
made by another program, so each entry is looked at before it is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from labsupport.lab.answers import FILE as ANSWERS
from labsupport.lab.soundness import course_parts
from labsupport.pipeline import LabError

FORMAT = 2  # 1 had each text in one line, so that no diff could be read
LAST_MODULE = 7
MANIFEST = "manifest.json"
CORPUS_FILE, CHUNKS_FILE, VECTORS_FILE = LAYER_FILES = ("corpus.jsonl", "chunks.jsonl", "vectors.npy")
FIELDS = {
    **dict.fromkeys(("name", "module", "corpus", "chunker", "embedding_model", "fingerprint"), str),
    **dict.fromkeys(("documents", "chunks", "dimensions"), int),
    **{"layers": list, "files": dict},
}
KIND_OF_VALUE = {str: "text", int: "whole number", list: "list", dict: "object"}
LAYER = re.compile(r"base|end-of-m[0-9]{2}")
REBUILD = "build them all from the corpus with `python -m labsupport snapshot build`."
MEND = f"get the committed files back with `git checkout -- snapshots`, or {REBUILD}"


class Refused(LabError):
    """A snapshot that cannot be restored. Nothing has been changed. `what`: the fault, without the snapshot's name."""

    def __init__(self, name: str, what: str, mend: str = MEND):
        super().__init__(f"Snapshot {name} {what}; {mend}")
        self.what, self.mend = what, mend


def read_manifest(name: str, folder: Path) -> dict:
    """The manifest: its format known, its own seal verified, all entries there and usable, made by today's parts."""
    try:
        data = (folder / name / MANIFEST).read_bytes()
        manifest = json.loads(data)
        given = manifest["format"]
        whole = data == sealed({key: value for key, value in manifest.items() if key != "seal"})
    except OSError as error:
        raise Refused(name, f"cannot be read: {name}/{MANIFEST} ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(name, f"cannot be read: {name}/{MANIFEST} is not a manifest") from error
    if type(given) is not int or given != FORMAT:
        what = f"has format {given!r} and this program reads {FORMAT}"
        older = type(given) is int and given < FORMAT
        raise Refused(name, what, MEND if older else f"update the program, or {REBUILD}")
    if not whole:
        raise Refused(name, f"cannot be read: {name}/{MANIFEST} was changed since it was made")
    if fault := _unusable(name, manifest):
        raise Refused(name, f"cannot be read: {name}/{MANIFEST} {fault}")
    chunker, embedder = course_parts()
    for what, key, now in (
        ("chunker", "chunker", chunker.name),
        ("embedding model", "fingerprint", embedder.fingerprint),
    ):
        if manifest[key] != now:
            raise Refused(
                name,
                f"was made with another {what} ({manifest[key]}) than the lab uses now ({now})",
                f"go back to that one, or {REBUILD}",
            )
    return manifest


def _unusable(name: str, manifest: dict) -> str | None:
    """What an entry of the manifest lacks, so that nothing further on has to ask."""
    for key, kind in FIELDS.items():
        if key not in manifest:
            return f"has no {key!r}"
        if type(manifest[key]) is not kind:
            return f"has no {KIND_OF_VALUE[kind]} as {key!r}"
    layers = manifest["layers"]
    if not layers or not all(isinstance(layer, str) and LAYER.fullmatch(layer) for layer in layers):
        return "names layers that are none"
    inside = {f"{layer}/{file}" for layer in layers for file in LAYER_FILES} | {f"{name}/{ANSWERS}"}
    if other := sorted(inside ^ manifest["files"].keys()):
        return f"names other files than its layers have ({', '.join(other[:3])}{' and more' if len(other) > 3 else ''})"
    return None


def sealed(manifest: dict) -> bytes:
    """The manifest's bytes, with the SHA-256 of the rest as its last entry."""
    seal = sha256(json.dumps(manifest, ensure_ascii=False, sort_keys=True).encode())
    return (json.dumps(manifest | {"seal": seal}, ensure_ascii=False, indent=1) + "\n").encode()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
