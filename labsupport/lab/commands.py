"""`python -m labsupport snapshot …`: list, build, verify, restore, undo. The work is done in snapshots.py.

The command line adds these with `app.add_typer(snapshot, name="snapshot")`; nothing heavy is imported before it runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labsupport.pipeline import LabError

if TYPE_CHECKING:
    from labsupport.lab.snapshots import Restored

snapshot = typer.Typer(no_args_is_help=True, help="What a learner has at the end of each module: list, restore, undo.")

HomeFolder = Annotated[Path | None, typer.Option(metavar="DIR", help="A learner's workspaces. Default: LAB_HOME.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@snapshot.command("list")
def list_(home: HomeFolder = None, as_json: AsJson = False) -> None:
    """The snapshots there are, and the learner's workspaces."""
    from labsupport.lab.home import Home
    from labsupport.lab.snapshots import names, summary

    there, mine = [summary(name) for name in names()], Home(home)
    current = mine.current()
    kept = [{"name": path.name, "current": path == current} for path in mine.workspaces()]
    if as_json:
        print(json.dumps({"snapshots": there, "workspaces": kept}, ensure_ascii=False, indent=2))
        return
    for one in there:
        holds = f"{one['documents']} documents, {one['chunks']} chunks" if not one["fault"] else one["fault"]
        changed = f" | changed: {', '.join(one['changed'])}" if one["changed"] else ""
        print(f"{one['name']}  {holds}{changed}")
    names_kept = ", ".join(one["name"] + (" (current)" if one["current"] else "") for one in kept)
    print(f"workspaces: {names_kept or 'none yet'}")


@snapshot.command()
def build(
    corpus: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: the course's corpus.")] = None,
    anew: Annotated[bool, typer.Option(help="Embed every text again, also those embedded in a snapshot.")] = False,
) -> None:
    """Make all snapshots again from the corpus and the exercises."""
    from labsupport.lab.snapshot_build import build as run

    changed = run(corpus, anew=anew)
    for path in changed:
        print(f"  written: {path}")
    print(f"{len(changed)} files changed" if changed else "Nothing changed: the snapshots are what the corpus gives.")


@snapshot.command()
def verify(
    corpus: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: the course's corpus.")] = None,
) -> int:
    """Check every byte of every snapshot, and that they belong to the corpus as it is."""
    from labsupport.lab.snapshots import names
    from labsupport.lab.snapshots import verify as run

    faults = run(corpus=corpus)
    print("\n".join(faults) if faults else f"{len(names())} snapshots, each file as it was made.")
    return 1 if faults else 0


@snapshot.command()
def restore(
    name: Annotated[str, typer.Argument(help="A snapshot such as end-of-m03, or a kept workspace such as ws-0002.")],
    more: Annotated[list[Path] | None, typer.Argument(metavar="DIR", help="More folders after --into.")] = None,
    into: Annotated[list[Path] | None, typer.Option(metavar="DIR", help="For these learners: their LAB_HOME.")] = None,
    every: Annotated[Path | None, typer.Option("--all", metavar="DIR", help="All learners below this folder.")] = None,
    as_json: AsJson = False,
) -> int:
    """Start a new workspace from a snapshot and make it the current one. The one before is kept for undo."""
    from labsupport.lab import snapshots

    if more and not into:
        raise LabError("To restore for several learners, name their folders after --into.")
    if into or every:
        homes = [*(into or ()), *(more or ()), *(snapshots.homes_below(every) if every else ())]
        done = snapshots.restore_many(name, dict.fromkeys(homes))
    else:
        done = [snapshots.restore(name)]
    if as_json:
        print(json.dumps([asdict(one) | {"home": one.home.as_posix()} for one in done], ensure_ascii=False, indent=2))
    for one in () if as_json else done:
        where = f"{one.home.as_posix()}: " if into or every else ""
        print(where + (one.fault or said(name, one)))
    return 1 if any(one.fault for one in done) else 0


def said(name: str, done: Restored) -> str:
    if done.already:
        return f"{name} is the current workspace already; nothing was changed"
    now = "is the current workspace again" if name == done.workspace else f"is now the workspace {done.workspace}"
    return f"{name} {now}" + (f"; {done.former} is kept, `snapshot undo` goes back to it" if done.former else "")


@snapshot.command()
def undo(home: HomeFolder = None) -> None:
    """Go back to the workspace before the latest restore."""
    from labsupport.lab.home import Home
    from labsupport.lab.snapshots import undo as run

    done = run(Home(home))
    left = f"; {done.former} is kept, `snapshot restore {done.former}` goes back to it" if done.former else ""
    print(f"{done.workspace} is the current workspace again{left}")
