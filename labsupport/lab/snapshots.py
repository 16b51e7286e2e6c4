"""Snapshots: what a learner has at the end of a module, put in place in seconds and without a model.

A restored workspace is a new folder beside the old one, which stays as it is: `undo` makes it the current one again.
The files of a snapshot are described in snapshot_files.py, how they are made in snapshot_build.py.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from labsupport.lab.answers import FILE as ANSWERS
from labsupport.lab.answers import Answers, as_text
from labsupport.lab.home import CURRENT, WORKSPACE, Home, course_root, reason
from labsupport.lab.snapshot_files import Snapshot, entries, examine, json_lines, load, names, snapshots_folder
from labsupport.lab.snapshot_manifest import CORPUS_FILE, LAST_MODULE, MANIFEST, REBUILD, Refused, read_manifest
from labsupport.lab.soundness import CORPUS, DISK_FULL, INDEX, course_parts, document_hashes, fault_of
from labsupport.pipeline import LabError
from labsupport.pipeline.index import identity
from labsupport.pipeline.store import Store


def fill(workspace: Path, snapshot: Snapshot) -> None:
    """Write the snapshot's state into an empty folder: documents, index, answers. Needs no model."""
    copy_course_files(workspace / CORPUS)
    for path, data in snapshot.files.items():
        target = workspace / CORPUS / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    with Store(workspace / INDEX, create=True) as store:
        store.replace(add=entries(snapshot), meta=identity(*course_parts()))
    (workspace / ANSWERS).write_text(as_text(snapshot.answers), encoding="utf-8", newline="\n")
    if (fault := fault_of(workspace)) == DISK_FULL:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if fault:
        raise Refused(snapshot.name, f"does not give a sound workspace ({fault.rstrip('.')})")


def copy_course_files(corpus: Path) -> None:
    """All of the course's corpus but the documents: questions, screenshots, recordings, evidence, defaults.

    Those that are part of a learner's state (STATE) are then replaced by the snapshot's, where it has them.
    """
    source = course_root() / CORPUS
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        if path.name.startswith(".") or path.name == "documents":
            continue
        corpus.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, corpus / path.name)
        else:
            shutil.copy2(path, corpus / path.name)


@dataclass(frozen=True)
class Restored:
    """What came of one restore: the workspace now in use, the former one (kept for `undo`), or the fault.

    `already`: it was in use before, so nothing was changed. `note`: what else the instructor should know.
    """

    home: Path
    workspace: str = ""
    former: str = ""
    fault: str = ""
    already: bool = False
    note: str = ""


def restore(name: str, home: Home | None = None, folder: Path | None = None) -> Restored:
    """Put the snapshot in a new workspace and make it the current one. The learner's own answers come along.

    Where the snapshot has a solution, an answer that passed takes its place and an attempt is kept beside it.
    The name of a workspace that was kept ("ws-0002") makes that one current again. Raises LabError, nothing touched.
    """
    home = home or Home()
    return _told(go_back(name, home) if WORKSPACE.fullmatch(name) else place(load(name, folder), home))


def _told(done: Restored, where: str = "") -> Restored:
    """Say the note; not on stdout, which may be read by a program."""
    if done.note:
        print(where + done.note, file=sys.stderr)
    return done


def go_back(name: str, home: Home) -> Restored:
    """A workspace that was kept as the current one again. Raises LabError where there is no such workspace."""
    kept = [path.name for path in home.workspaces()]
    if name not in kept:
        there = f"there are: {', '.join(kept)}" if kept else "there are none yet, so name a snapshot such as end-of-m03"
        raise LabError(f"There is no workspace {name} in {home.folder.as_posix()}; {there}.")
    with home.lock():
        former = home.current()
        left = former.name if former and former.name != name else ""
        already = not left and not home.lost()
        if not already:
            home.switch(name)
            _give_to_owner(_files_of(home), home.folder)
    return Restored(home.folder, name, left, already=already)


def place(snapshot: Snapshot, home: Home) -> Restored:
    """The verified snapshot as the current workspace of this learner."""
    there = next(path for path in (home.folder, *home.folder.absolute().parents) if path.exists())
    with home.lock():
        former = home.current()
        made = place_locked(snapshot, home)
        _give_to_owner([home.folder, *_files_of(home), made, *made.rglob("*")], there)
    return Restored(home.folder, made.name, former.name if former else "", note=answers_left(former))


def answers_left(former: Path | None) -> str:
    """What of the answers in a former workspace could not be taken over; "" where all could."""
    if not (former and (fault := Answers(former).fault())):
        return ""
    return f"Not taken over from {former.name}/{ANSWERS}, which is kept as it is: {fault}."


def place_locked(snapshot: Snapshot, home: Home) -> Path:
    """The snapshot in a new workspace, made current. Call with the lock of `home` held."""
    return add_workspace(home, lambda folder: fill(folder, snapshot))


def add_workspace(home: Home, fill_folder: Callable[[Path], None]) -> Path:
    """A new workspace, made current; the learner's own answers come along. Call with the lock of `home` held."""
    former = home.current()

    def fill_new(folder: Path) -> None:
        fill_folder(folder)
        if former:
            Answers(folder).take_over(Answers(former).read())

    return home.add(fill_new)


def _files_of(home: Home) -> list[Path]:
    return [home.folder / ".lock", home.folder / CURRENT]


def _give_to_owner(paths: Iterable[Path], there: Path) -> None:
    """An instructor who restores as root leaves the files to the learner whose folder it was."""
    if hasattr(os, "chown") and os.geteuid() == 0:
        owner = there.stat()
        for path in paths:
            with suppress(OSError):
                os.chown(path, owner.st_uid, owner.st_gid)


def restore_many(name: str, homes: Iterable[Path], folder: Path | None = None) -> list[Restored]:
    """The snapshot for many learners; one whose folder makes trouble does not stop the others.

    `homes`: each learner's LAB_HOME. The snapshot is verified once, before the first folder is touched. The name of a
    workspace goes back to the one that each learner has of that name. A folder without workspaces is named: it may be
    mistyped.
    """
    snapshot, done = None if WORKSPACE.fullmatch(name) else load(name, folder), []
    for path in homes:
        try:
            one = place(snapshot, Home(path)) if snapshot else go_back(name, Home(path))
            if not one.former and not one.already and snapshot:
                one = replace(one, note=f"new: {path.as_posix()} had no workspaces")
            done.append(_told(one, "" if one.note.startswith("new: ") else f"{path.as_posix()}: "))
        except (LabError, OSError) as error:
            done.append(Restored(path, fault=reason(error)))
    return done


def homes_below(folder: Path) -> list[Path]:
    """Every learner's home below a folder: DIR/learner or DIR/learner/…/workspaces, up to four levels down."""
    patterns = ["/".join(["*"] * depth) + "/ws-*" for depth in range(1, 5)]
    found = {path.parent for pattern in patterns for path in folder.glob(pattern)}
    found = sorted(path for path in found if Home(path).workspaces())
    if not found:
        raise LabError(
            f"No learner's workspaces (folders named ws-0001 and so on) were found below {folder.as_posix()}; "
            "name the learners' folders with --into to make new ones."
        )
    return found


def summary(name: str, folder: Path | None = None) -> dict:
    """What a snapshot holds, from its manifest: documents, chunks, the documents it changed; or its fault."""
    folder = folder or snapshots_folder()
    try:
        manifest = read_manifest(name, folder)
        own = [layer for layer in manifest["layers"] if layer.startswith("end-of")]
        lines = [line for layer in own for line in json_lines((folder / layer / CORPUS_FILE).read_bytes())]
        return {
            "name": name,
            "module": manifest["module"],
            "documents": manifest["documents"],
            "chunks": manifest["chunks"],
            "changed": sorted({line["path"] for line in lines}),
            "fault": "",
        }
    except (LabError, OSError, ValueError, KeyError, TypeError) as error:
        return {"name": name, "module": "", "documents": 0, "chunks": 0, "changed": [], "fault": str(error)}


def undo(home: Home | None = None) -> Restored:
    """Make the workspace before the latest switch the current one again. Raises LabError where there is none."""
    home = home or Home()
    left, back = home.current(), home.former()
    if back:
        with home.lock():
            left, back = home.current(), home.undo()
            _give_to_owner(_files_of(home), home.folder)
    if back is None:
        before = f"before {left.name} " if left else ""
        raise LabError(
            f"There is nothing to undo: no workspace {before}was in use in {home.folder.as_posix()}; "
            "`python -m labsupport snapshot list` names what there is."
        )
    return Restored(home.folder, back.name, left.name if left and left != back else "")


def verify(folder: Path | None = None, corpus: Path | None = None) -> list[str]:
    """Every fault, each once: changed, missing or stray files, and documents that have changed since."""
    folder = folder or snapshots_folder()
    there = names(folder)
    if not there:
        return [f"There are no snapshots in {folder.name}; {REBUILD}"]
    missing = [name for number in range(1, LAST_MODULE + 1) if (name := f"end-of-m{number:02d}") not in there]
    faults = [str(Refused(name, f"has no {MANIFEST}")) for name in missing]
    named, concerned = set(), {}
    for name in there:
        found = examine(name, folder)
        if isinstance(found, Snapshot):
            named |= {folder / name / MANIFEST, *(folder / path for path in found.manifest["files"])}
            if name == there[0]:
                faults += outdated(found, corpus or course_root() / CORPUS)
            continue
        for fault in found:
            concerned.setdefault((fault.what, fault.mend), []).append(name)
    for (what, mend), those in concerned.items():
        which = f"the {len(there)} snapshots" if those == there else ", ".join(those)
        faults.append(str(Refused(those[0], what, mend)) if len(those) == 1 else f"Each of {which} {what}; {mend}")
    if not faults:
        stray = sorted(
            path for path in folder.rglob("*")
            if path.is_file() and path not in named and path.parent != folder and not _of_the_system(path.name)
        )
        faults += [
            f"{path.relative_to(folder).as_posix()} belongs to no snapshot; remove it, or {REBUILD}" for path in stray
        ]
    return faults


def outdated(snapshot: Snapshot, corpus: Path) -> list[str]:
    """The course's documents that are not those the snapshots were made from (the first snapshot holds them all)."""
    now, then = document_hashes(corpus), snapshot.documents
    changed = sorted(path for path in now.keys() | then.keys() if now.get(path) != then.get(path))
    return (
        [f"The snapshots were made from other documents than {corpus.name} holds now: {', '.join(changed)}; {REBUILD}"]
        if changed
        else []
    )


def _of_the_system(name: str) -> bool:
    """What file managers leave in folders: .DS_Store, desktop.ini."""
    return name.startswith(".") or name.lower() in ("desktop.ini", "thumbs.db")
