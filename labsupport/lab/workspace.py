"""The learner's workspace: documents of their own, the index made from them, and their answers.

A module opens from the learner's own workspace if that is sound (its documents and index agree, and the index was made
by today's chunker and model), or else from the snapshot of the module before. What is not sound stays where it is.
"""

from __future__ import annotations

import atexit
import re
import shutil
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from labsupport.lab import snapshots
from labsupport.lab.answers import Answers
from labsupport.lab.home import Home, course_root
from labsupport.lab.soundness import (
    CORPUS,
    DISK_FULL,
    INDEX,
    course_parts,
    document_hashes,
    fault_of,
    missing_files,
)
from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import course_defaults, read_questions
from labsupport.pipeline.index import Filters
from labsupport.pipeline.sqlite_file import connect, sql_errors
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

if TYPE_CHECKING:
    from labsupport.pipeline.answering import Answerer
    from labsupport.pipeline.ask import Asked
    from labsupport.pipeline.corpus import Question
    from labsupport.pipeline.report import Report
    from labsupport.pipeline.search import Results, Retriever

FROM_SNAPSHOT = 2  # modules 0 and 1 start from the course's own documents; in 0 the learner makes the index
LAST = 7
_current: Lab | None = None


class Lab:
    """One open workspace: `corpus` and `index` (paths), `store`, `retriever`, `filters` of the course, `answers`.

    `say` is what was printed when it opened. Closes as a context manager; opening a module closes the one before.
    """

    def __init__(self, module: str, folder: Path, say: str = "", start: str | None = None):
        self.module, self.folder, self.say, self._start = module, folder, say, start
        self.corpus, self.index = folder / CORPUS, folder / INDEX
        self.answers = Answers(folder)

    def __repr__(self) -> str:
        return f"Lab(module {self.module}, {self.folder.name})"

    @cached_property
    def store(self) -> Store:
        store = Store(self.index)
        atexit.register(store.close)
        return store

    @cached_property
    def embedder(self):
        return course_parts()[1]

    @cached_property
    def retriever(self) -> Retriever:
        from labsupport.pipeline.search import Retriever

        return Retriever(self.store, self.embedder)

    @cached_property
    def filters(self) -> Filters:
        """The course's own date and audience."""
        as_of, audience = course_defaults(self.corpus)
        return Filters(as_of=as_of, audience=audience)

    def question(self, qid: str) -> Question:
        """A question of questions.csv, such as Q30."""
        for question in read_questions(self.corpus):
            if question.qid == qid:
                return question
        raise LabError(f"There is no question {qid} in questions.csv.")

    def search(self, question: str, method: str = "rerank", k: int = 5, **filters: str | None) -> Results:
        """Search with the course's filters, or those given (as_of, audience, language, doc_type).

        The id of a question ("Q30") stands for its text, its date, its audience and the turns before it.
        """
        _, text, chosen, history = self._asked(question, filters)
        return self.retriever.search(text, method=method, k=k, filters=chosen, history=history)

    def ask(self, question: str, answerer: str | Answerer = "extractive", method: str = "rerank", k: int = 5,
            **filters: str | None) -> Asked:
        """From the question to the checked answer in one step; question and filters as in `search`."""
        from labsupport.pipeline.answering import load_answerer
        from labsupport.pipeline.ask import ask

        qid, text, chosen, history = self._asked(question, filters)
        if isinstance(answerer, str):
            answerer = load_answerer(answerer, reranker=self.retriever.reranker, embedder=self.embedder)
        return ask(text, self.retriever, answerer, method=method, k=k, filters=chosen, history=history, qid=qid)

    def _asked(self, question: str, filters: dict[str, str | None]) -> tuple[str, str, Filters, tuple[str, ...]]:
        """The id of the question if it is one of the course's, its text, its filters, and the turns before it."""
        if not re.fullmatch(r"Q[0-9]+", question):
            return "", question, replace(self.filters, **filters), ()
        known = self.question(question)
        own = {"as_of": known.as_of, "audience": known.audience}
        return known.qid, known.text, replace(self.filters, **own | filters), known.history

    def ingest(self, **options) -> Report:
        """Make this workspace's index equal to its documents."""
        return ingest(self.corpus, self.index, self.embedder, **options)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands once in a file of the corpus, such as "documents/gift-cards.md"."""
        edit(self.corpus, path, old, new)

    def copy(self, own: bool = False) -> Lab:
        """A practice copy, made anew each time: of the state this module starts from, or of the learner's `own`."""
        copies = self.folder / "copies"
        for old in copies.glob("copy-*") if copies.is_dir() else ():
            shutil.rmtree(old, ignore_errors=True)  # one that is still open stays (Windows)
        number = 1
        while (folder := copies / f"copy-{number}").exists():
            number += 1
        folder.mkdir(parents=True)
        if own:
            shutil.copytree(self.corpus, folder / CORPUS)
            _copy_index(self.index, folder / INDEX)
        elif self._start:
            snapshots.fill(folder, snapshots.load(self._start))
        else:
            fill_from_course(folder)
        return Lab(self.module, folder, start=self._start)

    def close(self) -> None:
        if store := self.__dict__.pop("store", None):
            atexit.unregister(store.close)
            store.close()
        self.__dict__.pop("retriever", None)

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _copy_index(source: Path, target: Path) -> None:
    with sql_errors(source), closing(connect(source)) as old, closing(connect(target, create=True)) as new:
        old.backup(new)


def edit(corpus: Path, path: str, old: str, new: str) -> None:
    """Replace a text that stands exactly once in a file. Where the new text stands already, nothing happens."""
    file = corpus / path
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise LabError(f"{path} cannot be read ({error.strerror}).") from error
    if new in text and text.count(old) - text.count(new) * new.count(old) == 0:
        return
    if text.count(old) != 1:
        raise LabError(f"{path} holds {old!r} {text.count(old)} times; name a text that stands there once.")
    file.write_bytes(text.replace(old, new).encode("utf-8"))


def current() -> Lab | None:
    """The workspace of the module that was opened last in this process."""
    return _current


def module_number(module: str | int) -> int:
    """4 for "04", "4" or 4. Raises LabError for what is no module of the course."""
    text = str(module).strip().lower().removeprefix("m")
    if not re.fullmatch(r"[0-9]{1,2}", text) or int(text) > LAST:
        raise LabError(f"There is no module {module!r}; the course has 00 to {LAST:02d}.")
    return int(text)


def open_module(module: str | int, fresh: bool = False) -> Lab:
    """Open a module in the learner's own workspace if that is sound, else in a new one; say which.

    `fresh`: in a new one in any case. The one before is kept: `python -m labsupport snapshot undo` goes back to it.
    """
    global _current
    number = module_number(module)
    start = f"end-of-m{number - 1:02d}"
    if number < FROM_SNAPSHOT or start not in snapshots.names():
        start = None
    home = Home()
    with home.lock():
        own = home.current()
        fault = fault_of(own) if own and not (number == 0 and _to_be_indexed(own)) else None
        if fault == DISK_FULL and not fresh:
            raise LabError(
                f"Your workspace {own.name} cannot be opened, as the disk of {home.folder.as_posix()} is full; delete "
                "files that nobody needs, such as old `ws-` folders, then run this cell again."
            )
        if own and not fault and not fresh:
            folder, lines = own, [f"Module {number} opens from your own workspace ({own.name})."]
            if home.lost():
                home.switch(own.name)
                lines.append("It is the latest one there is; current.txt did not say which was in use.")
            lines += _differences(folder, number, start)
        elif start:
            folder = snapshots.place_locked(snapshots.load(start), home)
            lines = [f"Module {number} opens from the snapshot {start} (workspace {folder.name})."]
        else:
            if number:
                print("Indexing the course's documents; the first time this takes some 15 seconds.")
            folder = snapshots.add_workspace(home, fill_from_course if number else copy_course)
            lines = [f"Module {number} opens from the course's own documents (workspace {folder.name})."]
    if own and folder != own and (left := snapshots.answers_left(own)):
        lines.append(left)
    if fault:
        lines.append(f"Your workspace {own.name} is kept as it is, but no module can open from it: {_here(fault)}")
    if _current:
        _current.close()
    _current = Lab(f"{number:02d}", folder, "\n".join(lines), start)
    print(_current.say)
    return _current


def copy_course(folder: Path) -> None:
    """The course's own corpus, not indexed yet: module 0 does that before the learner's eyes."""
    shutil.copytree(course_root() / CORPUS, folder / CORPUS, ignore=shutil.ignore_patterns(".*"),
                    copy_function=shutil.copyfile)  # a course that may only be read gives documents to write


def fill_from_course(folder: Path) -> None:
    """The course's own corpus and an index of it."""
    copy_course(folder)
    ingest(folder / CORPUS, folder / INDEX)


def _to_be_indexed(folder: Path) -> bool:
    return not (folder / INDEX).exists() and (folder / CORPUS).is_dir() and not missing_files(folder / CORPUS)


def _here(fault: str) -> str:
    """A fault of an index without what it advises for the command line: here, the module has opened all the same."""
    said = [part for part in re.split(r"(?<=[.;]) ", fault) if not re.search(r" --[a-z]|python -m", part)]
    return " ".join(said).rstrip(".;") + "." if said else "its index cannot be used."


def _differences(folder: Path, number: int, start: str | None) -> list[str]:
    """Where the learner's documents are not those the module was written for, a line says so."""
    with suppress(LabError):  # a snapshot that cannot be read is no reason to stop here
        expected = snapshots.load(start).documents if start else document_hashes(course_root() / CORPUS)
        mine = document_hashes(folder / CORPUS)
        other = sorted(path for path in mine.keys() | expected.keys() if mine.get(path) != expected.get(path))
        if other:
            shown = ", ".join(other[:3]) + (f" and {len(other) - 3} more" if len(other) > 3 else "")
            return [
                f"Your documents are not those it starts with ({shown}), so results may differ. To start with those: "
                f'open_module("{number:02d}", fresh=True). Your workspace is kept.'
            ]
    return []
