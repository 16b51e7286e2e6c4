"""The sync most people write first: add and update, never remove. It reports success, and the deleted stays findable.

For the lesson only, so it works on a copy of corpus and index and on nothing else.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import LabError
from .index import Notify
from .report import Report
from .sqlite_file import connect, sql_errors
from .store import Store
from .updates import synchronise

if TYPE_CHECKING:
    from .chunking import Chunker
    from .embedding import Embedder


@dataclass(frozen=True)
class CourseCopy:
    """A copy of a corpus and its index, to be changed without a thought."""

    corpus: Path
    index: Path


def copy_course(corpus: Path | str, index: Path | str, into: Path | str) -> CourseCopy:
    """Copy a corpus and its index to the new or empty folder `into`. The index may be in use meanwhile."""
    copy = CourseCopy(Path(into) / "corpus", Path(into) / "index.sqlite")
    if copy.corpus.exists() or copy.index.exists():
        raise LabError(f"{Path(into).as_posix()} holds a corpus or an index already; name an empty folder for the "
                       "copy.")
    with Store(index):  # refuses what is no index
        pass
    shutil.copytree(corpus, copy.corpus)
    with sql_errors(copy.index), closing(connect(Path(index))) as source, closing(connect(copy.index, True)) as target:
        source.backup(target)
    return copy


def naive_sync(copy: CourseCopy, embedder: Embedder | None = None, chunker: Chunker | None = None,
               progress: Notify | None = None) -> Report:
    """Take in new and changed files of the copy, leave the rest of its index alone. Its report never says removed."""
    return synchronise(copy.corpus, copy.index, embedder, chunker, keep_gone=True, progress=progress)
