"""What the doctor looks at in the course: documents, inventory, versions, index, workspace, snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from labsupport.lab.doctor_machine import MEND, OK, OPTIONAL, Check

INGEST = "python -m labsupport ingest"
UNREAD = "not checked, as not all documents can be read"


def documents(corpus: Path) -> Iterator[Check]:
    from labsupport.pipeline.corpus import CorpusError, read_documents

    try:
        yield Check("corpus", OK, f"{len(read_documents(corpus))} documents can be read")
    except CorpusError as error:
        for fault in error.faults:
            yield Check("corpus", MEND, fault)


def inventory(corpus: Path) -> Iterator[Check]:
    """The hand-kept list against the documents: nothing but a person keeps it true."""
    from labsupport.pipeline.corpus import KEYS, CorpusError, read_documents, read_inventory

    try:
        there = {(one.doc_id, one.version): one for one in read_documents(corpus)}
    except CorpusError:
        yield Check("inventory", OPTIONAL, UNREAD)
        return
    if not (corpus / "inventory.csv").exists() and not (corpus / "questions.csv").exists():  # a folder of one's own
        yield Check("inventory", OPTIONAL, "no inventory.csv; it is optional: a list of the documents kept by hand, "
                    f"with the columns {', '.join(KEYS)}")
        return
    rows = {(row.doc_id, row.version): asdict(row) for row in read_inventory(corpus)}
    found = []
    for doc_id, version in sorted(rows.keys() - there.keys()):
        found.append((f"lists {doc_id} version {version}, which has no document", "take the row out"))
    for doc_id, version in sorted(there.keys() - rows.keys()):
        found.append((f"does not list {doc_id} version {version}", "add a row for it"))
    for key in sorted(there.keys() & rows.keys()):
        now = {name: getattr(there[key], name) for name in rows[key]}
        other = [
            f"{name} {rows[key][name] or '-'}, not {now[name] or '-'}" for name in now if rows[key][name] != now[name]
        ]
        if other:
            found.append((f"says of {key[0]} version {key[1]}: {'; '.join(other)}", "correct the row"))
    for fault, mend in found:
        yield Check("inventory", MEND, f"inventory.csv {fault}.", f"{mend}; nothing but a person keeps this list")
    if not found:
        yield Check("inventory", OK, f"inventory.csv lists the {len(rows)} documents as they are")


def versions(corpus: Path) -> Iterator[Check]:
    """Two versions of one document must not be in force on the same day."""
    from labsupport.pipeline.corpus import CorpusError, read_documents
    from labsupport.pipeline.report import overlaps

    try:
        notes = overlaps(read_documents(corpus))
    except CorpusError:
        yield Check("versions", OPTIONAL, UNREAD)
        return
    for note in notes:
        yield Check("versions", MEND, f"{note}.")
    if not notes:
        yield Check("versions", OK, "no two versions of one document are in force on the same day")


def index_file(corpus: Path, index: Path | str) -> Iterator[Check]:
    from labsupport.lab.soundness import index_fault
    from labsupport.pipeline.sqlite_file import mend_for
    from labsupport.pipeline.store import Store
    from labsupport.pipeline.terminal import ADDRESSES

    if str(index).startswith(ADDRESSES):
        yield Check("index", OPTIONAL, "a database server; `info` says what it holds")
        return
    if "://" in str(index):
        yield Check("index", MEND, "--index is no address this program knows.", "give a file, or postgresql://…")
        return
    path = Path(index)
    if fault := index_fault(corpus, path):
        mend = INGEST + (" --rebuild" if "another setting" in fault or "damaged" in fault else "")
        mend = "" if "python -m" in fault else mend_for(mend, corpus, path)
        yield Check("index", MEND, mend_for(fault, corpus, path), mend)
        return
    with Store(path) as store:
        rows = store.documents()
    shown = "/".join(path.parts[-2:]) if path.is_absolute() else path.as_posix()  # ws-0001/index.sqlite says enough
    yield Check("index", OK, f"{shown} holds the {len(rows)} documents as they are")


def workspace() -> Iterator[Check]:
    from labsupport.lab.home import Home
    from labsupport.lab.soundness import fault_of

    current = Home().current()
    if current is None:
        yield Check("workspace", OK, "none yet; the first notebook makes one")
    elif fault := fault_of(current):
        yield Check(
            "workspace",
            MEND,
            f"{current.name}: {fault}",
            "open a notebook, which starts a new one beside it, or: python -m labsupport snapshot restore NAME",
        )
    else:
        yield Check("workspace", OK, f"{current.name} is sound")


def snapshots() -> Iterator[Check]:
    from labsupport.lab.snapshots import names, verify

    faults = verify()
    for fault in faults:
        yield Check("snapshots", MEND, fault)
    if not faults:
        yield Check("snapshots", OK, f"{len(names())} snapshots, each file as it was made")
