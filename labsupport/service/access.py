"""Who may read what: the audience comes from the caller's credential, never from the question.

Tokens are long random strings, so one SHA-256 is enough to keep them hashed at rest; a list of common passwords is no
help against 256 bits. Without a token a caller is public.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import AUDIENCES


@dataclass(frozen=True)
class Caller:
    """`name` tells callers with a token apart; public callers share the empty one."""

    name: str = ""
    audience: str = "public"


PUBLIC = Caller()


class Refused(Exception):
    """A credential that is none. Its text says so and nothing more."""


class Tokens:
    """The tokens of a file: one JSON object a line with `name`, `audience` and `sha256` of the token."""

    def __init__(self, path: Path | None = None):
        self._entries: list[tuple[str, Caller]] = []
        if path is not None:
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise LabError(f"The token file {path} cannot be read ({why}); make one with: "
                           f"python -m labsupport token NAME --file {path}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                caller, digest = Caller(entry["name"], entry["audience"]), entry["sha256"]
                fine = caller.audience in AUDIENCES and len(bytes.fromhex(digest)) == 32 and caller.name
            except (ValueError, TypeError, KeyError):
                fine = False
            if not fine:
                raise LabError(f"{path}, line {number} is no token entry; make a new one with: "
                               f"python -m labsupport token NAME --file {path}")
            self._entries.append((digest, caller))

    def caller(self, authorization: str | None) -> Caller:
        """The caller behind an `Authorization` header. Raises Refused unless it is `Bearer` and a known token."""
        if authorization is None:
            return PUBLIC
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.strip().encode("utf-8", "replace")).hexdigest()
        found = None
        for known, caller in self._entries:  # all of them, so that time does not tell which one it was
            if hmac.compare_digest(known, digest):
                found = caller
        if scheme.lower() != "bearer" or found is None:
            raise Refused("This credential is not known; send a valid token, or none to ask as the public.")
        return found


def new_token(path: Path, name: str, audience: str) -> str:
    """Add a token for `name` to the file and return it: this is the only time it can be seen."""
    if audience not in AUDIENCES:
        raise LabError(f"No audience {audience!r}; use one of: {', '.join(AUDIENCES)}.")
    if not name.strip():
        raise LabError("A token needs a name, so that it can be told apart and taken back.")
    token = secrets.token_urlsafe(32)
    entry = {"name": name, "audience": audience, "sha256": hashlib.sha256(token.encode()).hexdigest()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:  # for its owner alone
            before = file.read()
            # An editor may have left the last line without its end.
            gap = b"" if before.endswith(b"\n") or not before else b"\n"
            file.write(gap + json.dumps(entry, ensure_ascii=False).encode("utf-8") + b"\n")
    except OSError as error:
        raise LabError(f"The token file {path} cannot be written ({error.strerror}); name another one with "
                       "--file.") from None
    return token
