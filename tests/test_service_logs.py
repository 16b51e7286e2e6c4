"""The service's log: no question, no passage, no endpoint's words, no password; and what a stranger is told."""

import json
import logging
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from desk import WordReranker, WordVectors, build_desk
from serving import serving

from labsupport.pipeline import LabError
from labsupport.pipeline.endpoint import EndpointAnswerer
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store
from labsupport.service.logs import configure_logging, without_quotes
from labsupport.service.server import only_here
from labsupport.service.server import serve as start

QUESTION = "My name is Zebulon  Quux,\nI am ill; what is the deposit for a hired tiller?"


@pytest.fixture
def logged(caplog):
    """The log as `serve` sets it up, all levels of other loggers at their most talkative."""
    names = ("", "httpx", "httpcore", "labsupport.service")
    levels = {name: logging.getLogger(name).level for name in names}
    logging.getLogger().setLevel(logging.INFO)
    configure_logging()
    yield caplog
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@contextmanager
def echoing(code, cut):
    """An endpoint that answers with the prompt, whitespace collapsed, from its first `cut` word on."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = " ".join(body["messages"][-1]["content"].split())
            self.send_response(code)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(said[said.index(cut) :].encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://ann:pa55@127.0.0.1:{server.server_address[1]}/v1?api-key=hush-hush"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("code", [200, 404, 503])
@pytest.mark.parametrize("cut", ["Zebulon", "deposit", "tiller"])
def test_an_endpoint_that_echoes_puts_nothing_into_the_log(tmp_path, logged, code, cut):
    with echoing(code, cut) as url, serving(tmp_path, EndpointAnswerer(url, "m", "", retries=0)) as service:
        told = service.ask(QUESTION)[-1][2]["error"]
    assert "The endpoint http://127.0.0.1:" in told
    assert code == 503 or cut in told, "the caller on this machine sees the endpoint's reason"
    assert "no answer: The endpoint http://127.0.0.1:" in logged.text
    assert code == 200 or f"status {code}" in logged.text
    for secret in ("Zebulon", "Quux", "tiller", "deposit", "pa55", "hush"):
        assert secret not in logged.text
    assert "HTTP Request" not in logged.text


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("The endpoint's reply was 'it\\'s \"so\"', not the model's; mend it.", "The endpoint's reply was '…'"),
        ("Cannot read My name is Zebulon Quux, I am ill; go on.", "Cannot read (the question); go on."),
        ("The model's reply broke off; ask again.", "The model's reply broke off; ask again."),
        ('Said "My name is Zebu\nlon" (or \'Quux\'); ask again.', "Said '…'); ask again."),
    ],
)
def test_a_fault_is_logged_without_what_it_quotes(told, kept):
    assert without_quotes(LabError(told), "My name is Zebulon  Quux,\nI am ill").startswith(kept)


def test_behind_a_proxy_nobody_counts_as_sitting_here(monkeypatch):
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    assert only_here("127.0.0.1")
    assert only_here("::1")
    assert not only_here("0.0.0.0")
    assert not only_here("127.0.0.1", ("lab.example.org",))
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")
    assert not only_here("127.0.0.1")


@pytest.mark.parametrize("names", [(), ("lab.example.org",)], ids=["alone", "proxied"])
def test_serve_tells_a_stranger_nothing_of_the_inside(tmp_path, monkeypatch, names):
    """`serve` itself, up to the app it makes: without details where a proxy's name is given."""
    made = {}

    class Stop(Exception):
        pass

    def create(*args, **options):
        made.update(options)
        raise Stop

    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    monkeypatch.setattr("labsupport.service.app.create_app", create)
    monkeypatch.setattr("labsupport.pipeline.reranking.load_reranker", lambda: WordReranker())
    monkeypatch.setattr("labsupport.pipeline.search.Retriever", lambda store, reranker: Retriever(
        store, WordVectors(), reranker))
    monkeypatch.setattr("labsupport.pipeline.answering.load_answerer", lambda *_, **__: None)
    corpus, index = build_desk(tmp_path)
    with Store(index) as store, pytest.raises(Stop):
        start(store, corpus, port=0, names=names)
    assert made["details"] is not bool(names)


def test_without_details_no_inside_is_told(tmp_path):
    inside = 'role "lab" of /var/run/postgresql/.s.PGSQL.5432'
    with (echoing(404, "Zebulon") as url,
          serving(tmp_path, EndpointAnswerer(url, "m", "", retries=0), details=False) as service):
        told = service.ask(QUESTION)[-1][2]["error"]
        assert told == "The answer failed here; the log of the service says why."

        def fail(*_):
            raise LabError(f"Cannot connect as {inside}.")

        service.retriever.store.documents = fail
        health = service.client.get("/healthz")
        assert (health.status_code, health.json()["error"]) == (503, "The index cannot be read.")
        (service.corpus / "course.yaml").write_text("nothing", encoding="utf-8")
        submitted = service.client.post("/conversations", json={"question": "How long?"})
        assert submitted.status_code == 503
        assert submitted.json()["error"] == "The course's settings cannot be read."
