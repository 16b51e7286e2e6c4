"""The address of a PostgreSQL server: how it is opened, shown without its password, and what its errors mean to a user.

A password belongs into the environment variable PGPASSWORD or the file ~/.pgpass, both read by PostgreSQL's own client
library; one that is written into the address is never printed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from labsupport.pipeline import LabError
from labsupport.pipeline.sqlite_file import BUILD, Replaceable

try:
    import psycopg
    from psycopg import errors
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:
    raise LabError("An index in PostgreSQL needs psycopg, which is not installed. Install it with: "
                   "python -m pip install 'psycopg[binary]'") from missing

CONNECT_SECONDS = 10
BUSY_SECONDS = 30
EXAMPLE = "postgresql://user@host:5432/database"
NO_ADDRESS = (f"The address given with --index cannot be read. Write it as {EXAMPLE}; inside a name or a password "
              "write %40 for @, %3A for :, %2F for / and %25 for %.")
# What the client library says at connecting has no code, only a text, which may be in the server's language.
NOT_LET_IN = ("password authentication failed", "no password supplied", "role ", "pg_hba.conf", "authentication failed")
NO_SERVER = ("connection refused", "could not translate", "no such file", "timeout", "timed out", "unreachable",
             "no route", "failed to resolve", "name or service not known", "starting up", "shutting down")
NO_ROOM = ("too many clients", "connection slots", "too many connections")


class Address:
    """An address as given with --index. `shown` may be printed: it names user, host, port and database only."""

    def __init__(self, url: str):
        try:
            self.parameters = conninfo_to_dict(url)
        except psycopg.Error:
            raise LabError(NO_ADDRESS) from None  # what psycopg says repeats the address, password and all
        host, port = str(self.parameters.get("host", "")), str(self.parameters.get("port", ""))
        self.database = str(self.parameters.get("dbname", ""))
        if "@" in host + self.database or not port.replace(",", "").isdecimal() and port:
            raise LabError(NO_ADDRESS)  # a password with such a sign in it, cut in the wrong place
        self.user = str(self.parameters.get("user", ""))
        user, port = f"{self.user}@" if self.user else "", f":{port}" if port else ""
        folder = "/" in host  # of the server's socket
        self.shown = f"postgresql://{user}{'' if folder else host}{port}/{self.database}" + f"?host={host}" * folder

    def connect(self, task: str = "labsupport") -> psycopg.Connection:
        """A connection that commits each statement of its own. `task` is how others see it in pg_stat_activity."""
        given = {"connect_timeout": str(CONNECT_SECONDS)} | self.parameters
        with self.errors():
            # Nothing is prepared on the server, so that poolers which share connections do no harm.
            return psycopg.connect(**given | {"application_name": task, "client_encoding": "utf8"}, autocommit=True,
                                   prepare_threshold=None)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What PostgreSQL reports, as one sentence that says what to do."""
        try:
            yield
        except psycopg.Error as error:
            raise self.explain(error) from None

    def explain(self, error: psycopg.Error) -> LabError:
        text, at = self.hide(error.diag.message_primary or str(error)), self.shown
        if isinstance(error, errors.IntegrityError):
            detail = f"; {self.hide(error.diag.message_detail)[:200]}" if error.diag.message_detail else ""
            return LabError(f"Two documents or passages claim the same id ({text}{detail}). Nothing was stored; give "
                            "one of the documents another version.")
        if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled | errors.DeadlockDetected):
            return LabError(f"The index {at} stayed busy ({text}). Try again when the other programs that use it have "
                            "finished.")
        if isinstance(error, errors.InsufficientPrivilege):
            return LabError(f"The user {self.user or 'of this connection'} may not do this in {at} ({text}). Have the "
                            "right granted, or name another user in --index.")
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return LabError(f"The server of {at} takes no writes; it may be a replica. Ingest into the primary server.")
        if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidSchemaName):
            return Replaceable(f"The index {at} is damaged ({text}). Build it anew with: {self.build} --rebuild")
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            return self._no_connection(str(error).lower(), text)
        return LabError(f"The index {at} cannot be used ({text}). Check the server's log and disk space, then run the "
                        "command again; what was stored is unchanged.")

    def _no_connection(self, low: str, text: str) -> LabError:
        if "database" in low and "does not exist" in low:
            name = self.database or "of that name"
            return LabError(f"The server has no database {name} ({self.shown}). Create it, for example with: createdb "
                            f"{name}; or name another in --index.")
        if any(sign in low for sign in NOT_LET_IN):
            return LabError(f"The server does not let the user in ({self.shown}): {text}. Check the user in --index "
                            "and the password in PGPASSWORD or ~/.pgpass.")
        if any(sign in low for sign in NO_ROOM):
            return LabError(f"The server has no connection left ({self.shown}): {text}. End programs that hold some, "
                            "or put a pooler before it.")
        if any(sign in low for sign in NO_SERVER):
            return LabError(f"No PostgreSQL server answers at {self.shown}: {text}. Start it, or check host and port "
                            "in --index.")
        return LabError(f"The connection to {self.shown} failed: {text}. What was stored is unchanged; check the "
                        "server, then run the command again.")

    def hide(self, text: str) -> str:
        """`text` on one line, without the password, wherever that may have come from."""
        given = self.parameters.get("password"), self.parameters.get("sslpassword"), os.environ.get("PGPASSWORD")
        for secret in filter(None, given):
            text = text.replace(str(secret), "***")
        return " ".join(text.split()).removesuffix(".")

    @property
    def build(self) -> str:
        return f"{BUILD} --index {self.shown}"


def shown(url: str) -> str:
    """The address without its password, for printing."""
    return Address(url).shown


def here() -> str:
    """Which process this is, for people on other machines."""
    name = "this host"
    with suppress(OSError):
        name = socket.gethostname().split(".")[0]
    return f"process {os.getpid()} on {name}"
