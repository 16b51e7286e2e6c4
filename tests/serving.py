"""The service on a free port of this machine, for tests: a real server, and models that need no weights."""

import json
import threading
import time
from contextlib import contextmanager

import httpx
from desk import WordReranker, WordVectors, build_desk

from labsupport.pipeline.answering import Answer, Claim, StreamingAnswerer, in_words
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.service.access import Tokens, new_token
from labsupport.service.app import LOOPBACK, create_app
from labsupport.service.assistant import Assistant
from labsupport.service.limits import Limits
from labsupport.service.server import listener
from labsupport.service.web_server import Server

DEPOSIT = "What is the deposit for a hired tiller?"
TODAY = "2026-08-01"
PLENTY = {"per_minute": 100_000}
# Limits under which an answer ends for no reason but the one tested.
ENDLESS = {"events": 10**9, "answering": 10.0**6, "age": 10.0**6}
AT_MOST = 60  # seconds; only a guard against hanging, so far more than a slow machine needs


class Scripted(StreamingAnswerer):
    """Says `pieces`, with `pause` seconds before each; keeps count, and notes when it was stopped."""

    name = model = "scripted"

    def __init__(self, pieces=("The deposit ", "is $95."), pause=0.0):
        self.pieces, self.pause = pieces, pause
        self.said = self.began = self.ended = 0
        self.go_on = threading.Event()  # a piece that is None waits for it
        self.on_stream = None

    def stream(self, question, context, *, prompt=None, intent=None):
        pieces = self.pieces
        self.began += 1
        try:
            if self.on_stream:
                self.on_stream(question)
            for piece in pieces:
                if piece is None:
                    self.go_on.wait(2 * AT_MOST)
                    continue
                time.sleep(self.pause)
                self.said += 1
                yield piece
            text = "".join(piece for piece in pieces if piece)
            claims = (Claim(text, context.ids[:1]),) if context.ids else ()
            yield Answer(bool(claims), text, claims, self.model)
        finally:
            self.ended += 1


class Recited(StreamingAnswerer):
    """Says all it was shown and cites it."""

    name = model = "recited"

    def stream(self, question, context, *, prompt=None, intent=None):
        text = prompt.user
        yield from in_words(text)
        yield Answer(True, text, tuple(Claim(chunk.body, (chunk.chunk_id,)) for chunk in context.kept), self.model)


class Service:
    """A running service and a client of it."""

    def __init__(self, app, corpus, index, tokens):
        self.app, self.corpus, self.index, self.tokens = app, corpus, index, tokens
        self.conversations = app.state.conversations
        self._socket = listener("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.port = self._socket.getsockname()[1]
        self._server = Server(app)
        self.thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self.thread.start()
        wait_until(lambda: self._server.started)
        self.client = httpx.Client(base_url=self.address, timeout=AT_MOST)

    def token(self, name="ann", audience="staff"):
        return {"Authorization": f"Bearer {self.tokens[name, audience]}"}

    def submit(self, question=DEPOSIT, headers=None, **more):
        return self.client.post("/conversations", json={"question": question, "as_of": TODAY, **more}, headers=headers)

    def ask(self, question=DEPOSIT, headers=None, **more):
        """Submit and read the whole stream: the list of (number, name, data)."""
        accepted = self.submit(question, headers, **more)
        assert accepted.status_code == 202, accepted.text
        return events(self.stream(accepted.json()["conversation_id"], headers).content)

    def stream(self, conversation_id, headers=None, last=None):
        headers = dict(headers or {}) | ({"Last-Event-ID": str(last)} if last is not None else {})
        return self.client.get(f"/conversations/{conversation_id}/stream", headers=headers)

    @contextmanager
    def following(self, conversation_id, last=None):
        """The events of an open stream, one by one; leaving closes the connection."""
        headers = {"Last-Event-ID": str(last)} if last is not None else {}
        with self.client.stream("GET", f"/conversations/{conversation_id}/stream", headers=headers) as response:
            yield one_by_one(response.iter_raw())

    def stop(self):
        self.client.close()
        self._server.should_exit = True
        self.thread.join(AT_MOST)
        assert not self.thread.is_alive()


@contextmanager
def serving(folder, answerer=None, limits=None, desk=None, method="bm25", **options):
    """A running service over the small help desk, or over `desk` (corpus, index)."""
    corpus, index = desk or build_desk(folder)
    names = [("ann", "staff"), ("bob", "staff"), ("pat", "public")]
    tokens = {(name, audience): new_token(folder / "tokens.jsonl", name, audience) for name, audience in names}
    with Store(index) as store:
        retriever = Retriever(store, WordVectors(), WordReranker())
        assistant = Assistant(retriever, answerer or Scripted(), method)
        app = create_app(assistant, corpus, Tokens(folder / "tokens.jsonl"), Limits(**{**PLENTY, **(limits or {})}),
                         hosts=LOOPBACK, **options)
        service = Service(app, corpus, index, tokens)
        service.retriever = retriever
        try:
            yield service
        finally:
            service.stop()


def events(body):
    """Server-sent events as a browser reads them (WHATWG HTML, section 9.2.6): the list of (number, name, data)."""
    return list(one_by_one([body]))


def one_by_one(parts):
    rest = b""
    for part in parts:
        rest += part
        while b"\n\n" in rest:
            block, _, rest = rest.partition(b"\n\n")
            fields = {"data": []}
            for line in block.decode("utf-8").split("\n"):
                if line.startswith(":"):
                    continue
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if name == "data":
                    fields["data"].append(value)
                else:
                    fields[name] = value
            if fields["data"]:
                yield int(fields["id"]), fields["event"], json.loads("\n".join(fields["data"]))


def names(found):
    return [name for _, name, _ in found]


def text_of(found):
    return "".join(data["text"] for _, name, data in found if name == "token")


def wait_until(true, seconds=AT_MOST):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)
