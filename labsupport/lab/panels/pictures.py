"""Links to screenshots become pictures only here, when an answer is shown, and only files of the course's corpus."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

from .base import escape

_LINK = re.compile(r"!\[([^\]]*)\]\(([^)\s]*)\)")
_UNFINISHED = re.compile(r"!(?:\[[^\]]*(?:\](?:\([^)\s]*)?)?)?$")
_FORMATS = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
MOST_BYTES = 500_000


def answer_html(text: str, corpus: Path | None) -> str:
    """The text escaped, each picture of the corpus shown, every other link to a picture left as its description."""
    return "".join(_parts(_UNFINISHED.sub("…", text), corpus))


def _parts(text: str, corpus: Path | None) -> Iterator[str]:
    at = 0
    for link in _LINK.finditer(text):
        yield escape(text[at : link.start()])
        alt, address = link.groups()
        data = read_picture(address, corpus)
        if data is None:
            yield f"<i>[picture: {escape(alt or 'no description')}]</i>"
        else:
            kind = _FORMATS[Path(address).suffix.lower()]
            source = base64.b64encode(data).decode("ascii")
            yield f'<img alt="{escape(alt)}" src="data:{kind};base64,{source}"><i>{escape(alt)}</i>'
        at = link.end()
    yield escape(text[at:])


def answer_words(text: str) -> str:
    """The same in plain words."""
    return _LINK.sub(lambda link: f"[picture: {link[1] or 'no description'}]", text)


def read_picture(address: str, corpus: Path | None) -> bytes | None:
    """The bytes of a picture in the corpus's folder of screens; None for any other address, whatever it looks like."""
    if corpus is None or Path(address).suffix.lower() not in _FORMATS or "\\" in address or ":" in address:
        return None
    screens = (Path(corpus) / "screens").resolve()
    try:
        file = (Path(corpus) / address).resolve()
        fine = file.is_relative_to(screens) and file.is_file() and file.stat().st_size <= MOST_BYTES
        return file.read_bytes() if fine else None
    except (OSError, ValueError):
        return None
