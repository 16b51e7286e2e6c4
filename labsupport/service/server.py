"""Start the service: load the models, listen on loopback, stop in good order."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from labsupport.pipeline import LabError
from labsupport.service.logs import configure_logging

if TYPE_CHECKING:
    from labsupport.pipeline.index import Index

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MISSING = 'The service needs packages that are not installed ({}); install them with: pip install -e ".[server]"'


def serve(
    store: Index, corpus: Path, host: str = "127.0.0.1", port: int = 8000, answerer: str | None = None,
    method: str | None = None, tokens: Path | None = None, names: tuple[str, ...] = (), log_questions: bool = False,
) -> None:  # fmt: skip
    """Serve until stopped. `names` are further host names to answer to, such as that of a proxy.

    Raises LabError for a port that is taken, a token file that cannot be read, and missing packages.
    """
    try:
        from labsupport.service.access import Tokens
        from labsupport.service.app import create_app
        from labsupport.service.assistant import Assistant
        from labsupport.service.remembering import RememberingEmbedder, RememberingReranker
        from labsupport.service.web_server import Server
    except ModuleNotFoundError as error:
        raise LabError(MISSING.format(error.name)) from None
    from labsupport.pipeline.answering import load_answerer
    from labsupport.pipeline.ask import DEFAULT_METHOD
    from labsupport.pipeline.reranking import load_reranker
    from labsupport.pipeline.search import Retriever

    known = Tokens(tokens)
    taken = listener(host, port)
    retriever = Retriever(store, reranker=RememberingReranker(load_reranker()))
    name = answerer or ("endpoint" if os.environ.get("LAB_ENDPOINT_URL") else "extractive")
    print("Loading the models …", flush=True)
    retriever.embedder.embed(["warm-up"], query=True)  # the first caller should not wait for it
    remembering = RememberingEmbedder(retriever.embedder, store)
    assistant = Assistant(retriever, load_answerer(name, reranker=retriever.reranker, embedder=remembering),
                          method or DEFAULT_METHOD)
    shown = f"[{host}]" if ":" in host else host
    hosts = (*LOOPBACK[:2], "[::1]", shown, *names)
    app = create_app(assistant, corpus, known, hosts=hosts, details=only_here(host, names))
    configure_logging(log_questions)
    address = f"http://{shown}:{taken.getsockname()[1]}/"
    print(f"The assistant answers at {address} (stop it with Ctrl-C)", flush=True)
    if host not in LOOPBACK:
        print("note: others on the network can reach it; put a proxy with TLS in front of it.", flush=True)
    Server(app).run(sockets=[taken])


def only_here(host: str, names: tuple[str, ...] = ()) -> bool:
    """Whether all callers sit at this machine. Behind a proxy they do not, though it calls from loopback."""
    return host in LOOPBACK and not names and not os.environ.get("FORWARDED_ALLOW_IPS")


def listener(host: str, port: int) -> socket.socket:
    """A listening socket, so that a port that is taken is one sentence and port 0 has its number before the start."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family)
    try:
        if os.name == "posix":
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
    except (OSError, OverflowError) as error:
        taken.close()
        reason = getattr(error, "strerror", None) or error
        raise LabError(f"Cannot listen on {host}:{port} ({reason}); choose another with --port, or 0 for a free one."
                       ) from None
    return taken
