"""What an ingest has to do: the folder compared with the rows of the index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import LabError
from .corpus import CorpusError, Document, clashes, read_document
from .folder import FileHashes, document_files
from .index import DocumentRow, Key

UNCHANGED = "Nothing changed in the index. "


class Refused(CorpusError):
    """Files that cannot be taken in, all of them in `faults`. The index is as it was."""

    def __init__(self, faults: Iterable[str]):
        super().__init__(faults)
        several = f"{len(self.faults)} faults:\n" if len(self.faults) > 1 else ""
        self.args = (UNCHANGED + several + "\n".join(self.faults),)


@dataclass
class Folder:
    """The documents of a corpus folder: the version each file holds, and those parsed because the index lacks them."""

    files: dict[str, Key] = field(default_factory=dict)
    parsed: dict[str, Document] = field(default_factory=dict)


@dataclass(frozen=True)
class Changes:
    """What makes the index equal to the folder: rows that stay, `paths` where some of these now lie, what goes."""

    kept: list[DocumentRow]
    remove: list[Key]
    paths: dict[Key, str]


def listed(corpus: Path, allow_empty: bool) -> dict[str, str]:
    """The document files; an empty or missing folder is refused, as it would empty the index."""
    folder = corpus / "documents"
    try:
        found = document_files(corpus)
    except LabError as error:
        if folder.exists() or not allow_empty:
            raise LabError(f"{UNCHANGED}{error} Name the corpus folder with --corpus; it keeps its documents in a "
                           "folder named documents.") from error
        found = {}
    if not found and not allow_empty:
        raise LabError(f"{UNCHANGED}{folder.as_posix()} has no Markdown files. Name the corpus folder with --corpus, "
                       "or say --allow-empty if the index is to become empty.")
    return found


def is_current(rows: list[DocumentRow], files: Mapping[str, str], hashes: FileHashes) -> bool:
    """Does the index hold these files, at these paths, and nothing else? Parses nothing."""
    held = {row.path: row.sha256 for row in rows}
    if len(rows) != len(files) or held.keys() != files.keys():
        return False
    try:
        return all(hashes.read(name, path)[0] == held[name] for name, path in files.items())
    except OSError:
        return False  # the full reading names the fault


def read_folder(corpus: Path, files: Mapping[str, str], rows: list[DocumentRow], hashes: FileHashes) -> Folder:
    """Parse what the index does not hold yet. Raises Refused with every fault of every file."""
    known = {row.sha256: row.key for row in rows}
    folder, faults = Folder(), []
    for name, path in files.items():
        try:
            digest, data = hashes.read(name, path)
            if digest in known:
                folder.files[name] = known[digest]
                continue
            document = read_document(Path(path), corpus, data)
            folder.parsed[name], folder.files[name] = document, (document.doc_id, document.version)
        except FileNotFoundError:
            if Path(path).is_symlink():
                faults.append(f"{name}: is a link to a file that is not there; mend or remove the link.")
            continue  # or gone since the folder was listed
        except OSError as error:
            faults.append(f"{name}: cannot be read ({error.strerror}); mend or remove the file.")
        except CorpusError as error:
            faults += error.faults
    faults += clashes((name, *key) for name, key in folder.files.items())
    if faults:
        raise Refused(faults)
    return folder


def compare(rows: list[DocumentRow], folder: Folder, failed: Iterable[str] = (), keep_gone: bool = False) -> Changes:
    """What has to change. A document version is the same wherever its file lies.

    `failed`: files whose text could not be embedded; what the index held for them stays. `keep_gone`: what has left the
    folder stays as well (the naive sync).
    """
    failed = set(failed)
    same = {key: path for path, key in folder.files.items() if path not in folder.parsed}
    failed_keys = {folder.files[path] for path in failed}
    renewed = {folder.files[path] for path in folder.parsed if path not in failed}

    def stays(row: DocumentRow) -> bool:
        if row.key in renewed:
            return False
        return row.key in same or row.key in failed_keys or row.path in failed or keep_gone

    kept = [row for row in rows if stays(row)]
    return Changes(
        kept=kept, remove=[row.key for row in rows if not stays(row)],
        paths={row.key: same[row.key] for row in kept if same.get(row.key, row.path) != row.path})
