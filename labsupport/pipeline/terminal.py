"""What all commands share, also those that start without the rest of the command line."""

import argparse
import sys
from typing import NoReturn

ADDRESSES = ("postgresql://", "postgres://")  # how --index begins where it names a server, not a file


def use_utf8() -> None:
    """Print UTF-8 whatever the terminal's own encoding is: a Windows console or pipe may not be UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not so where a test or a notebook has put its own
            stream.reconfigure(encoding="utf-8", errors="replace")


class Parser(argparse.ArgumentParser):
    """argparse with bad usage told in one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message}; `{self.prog} --help` shows how to call it.\n")
