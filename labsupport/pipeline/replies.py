"""Reading a chat model's reply: JSON, or what a model that was asked for JSON writes instead.

`ReplyReader` is fed the reply as it arrives and gives back the text of its "answer" field as it grows, so a reader sees
words while the model still writes. What it gave is the answer's text, whatever is repaired later: nothing shown is ever
swallowed or changed. Fields other than the answer are repaired with the json_repair library where they are not JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

import json_repair

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer, Claim

_KEY = re.compile(r"""(?:(?:^|[\s\w"'])(["'])answer\1|^\s*answer)\s*:\s*$""")
_NEXT_FIELD = re.compile(r"""\s*,?\s*(?:["'][^"']{1,40}["']|answerable|claims)\s*:""")
_MAYBE_NEXT_FIELD = re.compile(r"""\s*,?\s*(?:["'][^"']{0,40}(?:["']\s*)?|[a-z]{0,10}\s*)$""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class ReplyReader:
    """Decodes the "answer" string of a JSON object while it is still arriving, escapes and all.

    A quotation mark inside the text that the model forgot to escape is told from the closing one by what follows it.
    """

    def __init__(self) -> None:
        self.raw = ""  # everything fed so far
        self.text = ""  # the answer's text so far
        self.closed = False  # the answer's closing quotation mark was seen
        self._at = 0
        self._depth = 0
        self._quote = ""  # set inside a string that is not the answer
        self._key = ""  # what stands at the top level since the last comma
        self._end = ""  # the quotation mark that ends the answer; set inside the answer

    def feed(self, piece: str) -> str:
        """Take in `piece`; give back what became known of the answer's text."""
        self.raw += piece
        return self._read(last=False)

    def finish(self) -> str:
        """No more will come: give back what had been held back."""
        return self._read(last=True)

    def _read(self, last: bool) -> str:
        before = len(self.text)
        while self._at < len(self.raw) and not self.closed:
            step = self._answer_step(last) if self._end else self._outside_step(last)
            if step == 0:
                break
            self._at += step
        return self.text[before:]

    def _outside_step(self, last: bool) -> int:
        char = self.raw[self._at]
        if self._quote:
            if char == "\\":
                return 2 if last or self._at + 1 < len(self.raw) else 0
            if char == self._quote:
                self._quote = ""
            if self._depth == 1:
                self._key += char
            return 1
        if char in "{[":
            self._depth += 1
            self._key = ""
        elif char in "}]":
            self._depth -= 1
        elif char == "," and self._depth == 1:
            self._key = ""
        elif char in "\"'" and self._depth == 1 and _KEY.search(self._key):
            self._end = char
        elif self._depth >= 1:
            if char == '"' or (char == "'" and self._raw_key_starts()):
                self._quote = char
            if self._depth == 1:
                self._key += char
        return 1

    def _raw_key_starts(self) -> bool:
        return self._key.strip() == "" or self._key.rstrip().endswith(":")

    def _answer_step(self, last: bool) -> int:
        char = self.raw[self._at]
        if char == "\\":
            return self._escape_step(last)
        if char == self._end:
            rest = self.raw[self._at + 1 :]
            if rest.lstrip()[:1] == "}" or _NEXT_FIELD.match(rest) or (last and not rest.strip("` \n\t}]")):
                self.closed = True
                return 1
            if not last and _MAYBE_NEXT_FIELD.match(rest):
                return 0
        self.text += "\ufffd" if _LONE_SURROGATE.match(char) else char
        return 1

    def _escape_step(self, last: bool) -> int:
        rest = self.raw[self._at + 1 : self._at + 12]
        if rest[:1] != "u":
            if not rest:
                return 1 if last else 0
            self.text += _ESCAPES.get(rest[0], rest[0])
            return 2
        match = re.match(r"u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?", rest)
        if not match:
            if len(rest) < 5:
                return 1 + len(rest) if last else 0
            return 1  # no escape after all: the u stays text
        code = int(match[1], 16)
        if 0xD800 <= code < 0xDC00:
            if match[2]:
                self.text += chr(0x10000 + ((code - 0xD800) << 10) + (int(match[2], 16) - 0xDC00))
                return 12
            if not last and len(rest) < 11 and re.fullmatch(r"\\?u?[dD]?[c-fC-F]?[0-9a-fA-F]{0,2}", rest[5:]):
                return 0
        self.text += "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
        return 6


def read_reply(reader: ReplyReader) -> Answer:
    """The Answer in a reply that has arrived in full, after `finish`. Its text begins with `reader.text`.

    Raises LabError when the reply is not the answer object, nor near enough to it to be repaired.
    """
    notes: list[str] = []
    data = _load(reader.raw, notes)
    if not isinstance(data, dict) or not ({"answer", "answerable", "claims"} & data.keys()):
        shown = " ".join(reader.raw.split())[:80]
        raise LabError(f"The model replied with {shown!r}, not with the answer JSON; ask again or use another model.")
    claims = tuple(_claim(item) for item in _as_list(data.get("claims")))
    answerable = data.get("answerable", bool(claims))
    if isinstance(answerable, str):
        answerable = answerable.strip().lower() in ("true", "yes", "1")
    text = reader.text
    if not text and claims:
        text = " ".join(claim.text for claim in claims)
        notes.append("the reply had no answer text: its claims stand for it")
    return Answer(bool(answerable), text, claims, notes=tuple(notes))


def _load(raw: str, notes: list[str]) -> Any:
    try:
        # A doubled key: the first one is what the reader streamed.
        return json.loads(raw, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    except (ValueError, RecursionError):
        pass
    if "{" not in raw:
        return None
    notes.append("the reply was almost JSON and was repaired")
    try:
        return json_repair.loads(raw[raw.index("{") :], skip_json_loads=True)
    except (ValueError, RecursionError):
        return None


def _claim(item: Any) -> Claim:
    if not isinstance(item, dict):
        return Claim(_text(item))
    cited = next((item[key] for key in ("citations", "citation", "ids", "id") if key in item), None)
    return Claim(_text(item.get("text", "")), tuple(_ids(cited)))


def _ids(value: Any) -> list[str]:
    """Citations as written, one string each; nested lists and {"id": ...} are opened, numbers become text."""
    if isinstance(value, dict):
        return _ids(next(iter(value.get(key) for key in ("id", "chunk_id") if key in value), list(value.values())))
    if isinstance(value, list):
        return [one for item in value for one in _ids(item)]
    return [text] if value is not None and (text := _text(value).strip()) else []


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def _text(value: Any) -> str:
    return _LONE_SURROGATE.sub("\ufffd", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
