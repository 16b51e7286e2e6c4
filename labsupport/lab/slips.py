"""What the lab says of a document with one thing changed. The file itself is not touched."""

from __future__ import annotations

from pathlib import Path

from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import CorpusError, read_document

SOUND = "read without a fault"


def slip(corpus: Path, path: str, old: str, new: str) -> str:
    """The faults of "documents/gift-cards.md", say, with `new` in the place of `old`, one a line.

    Raises LabError where `old` is not in the file.
    """
    file = corpus / path
    text = file.read_text(encoding="utf-8")
    if old not in text:
        raise LabError(f"{path} does not hold {old!r}.")
    try:
        read_document(file, corpus, text.replace(old, new, 1).encode())
    except CorpusError as error:
        return "\n".join(error.faults)
    return SOUND
