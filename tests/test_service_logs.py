"""The service's log: no question, no passage, no endpoint's words, no password; and what a stranger is told."""

import json
import logging
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from serving import serving

from labsupport.pipeline import LabError
from labsupport.pipeline.endpoint import EndpointAnswerer
from labsupport.service.logs import configure_logging, without_quotes

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
