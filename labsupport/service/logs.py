"""What the service writes to its log: what happened and to whom, never what was asked, found or answered."""

from __future__ import annotations

import logging
import re

# From the first quotation mark to the last, for the words in between may hold some too; apostrophes are none.
_QUOTED = re.compile(r"""(?<!\w)['"].*['"](?!\w)""", re.DOTALL)


def configure_logging(log_questions: bool = False) -> None:
    """Log to the standard error, with the questions if that was asked for."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("httpx", "httpcore"):  # their lines hold the whole URL of an endpoint, password and key included
        logging.getLogger(name).setLevel(logging.WARNING)
    if log_questions:
        logging.getLogger("labsupport.service").setLevel(logging.DEBUG)


def without_quotes(fault: Exception, question: str) -> str:
    """A fault's own sentence. What it quotes is left out: servers and models echo questions and passages."""
    sentence = " ".join(_QUOTED.sub("'…'", str(fault)).split())
    return sentence.replace(" ".join(question.split()), "(the question)")
