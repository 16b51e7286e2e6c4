"""The endpoint answerer against a small real HTTP server: well-behaved, slow, broken, truncated, refusing."""

import json
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from garden import count_tokens, document

from labsupport.pipeline import LabError
from labsupport.pipeline.answering import Answer, Answerer, load_answerer
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.context import assemble
from labsupport.pipeline.endpoint import FORMATS, EndpointAnswerer
from labsupport.pipeline.prompting import build_prompt

CONTEXT = assemble(StructureChunker(count_tokens).chunk(document("# Hedge trimmers\n\nReturn them in 30 days.\n")))
KEY = "sk-garden-secret-42"
AT_MOST = 60  # seconds; only a guard against hanging, so far more than a slow machine needs
REPLY = {
    "answerable": True,
    "answer": "Reçu 🪴: “30 days” – go to C:\\returns.",
    "claims": [{"text": "30 days", "citations": ["7839ded2d52b"]}],
}


class Server(ThreadingHTTPServer):
    """Answers each request with the next step of `script`; the last step repeats."""

    daemon_threads = True

    def __init__(self, *script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.requests, self.gone = list(script), [], threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        self.gone.set()  # the client closed the connection while we were writing


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        script = self.server.script
        (script.pop(0) if len(script) > 1 else script[0])(self)

    def log_message(self, *args):
        pass

    def start(self, status=200, kind="text/event-stream", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, data):
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def text(self, text):
        self.event(json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": None}]}))


def streamed(text=None, finish="stop", size=3, usage=True, done=True, pause=0.0):
    text = json.dumps(REPLY) if text is None else text

    def step(handler):
        handler.start()
        handler.event(json.dumps({"choices": [{"delta": {"role": "assistant"}, "finish_reason": None}]}))
        for at in range(0, len(text), size):
            handler.text(text[at : at + size])
            time.sleep(pause)
        if finish:
            handler.event(json.dumps({"choices": [{"delta": {}, "finish_reason": finish}]}))
        if usage:
            handler.event(json.dumps({"choices": [], "usage": {"prompt_tokens": 611, "completion_tokens": 57}}))
        if done:
            handler.event("[DONE]")

    return step


def status(code, text="no", kind="application/json", **headers):
    def step(handler):
        handler.start(code, kind, **headers)
        handler.wfile.write(text.encode())

    return step


@pytest.fixture
def serve():
    servers = []

    def start(*script):
        server = Server(*script)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def answerer(server, **options):
    return EndpointAnswerer(server.url, "garden-1", KEY, **{"timeout": AT_MOST, "backoff": 0.01, **options})


def ask(who):
    return who.answer("How long?", CONTEXT, prompt=build_prompt("How long?", CONTEXT))


def test_the_answer_streams_and_its_pieces_are_the_answer(serve):
    server = serve(streamed())
    pieces = list(answerer(server).stream("How long?", CONTEXT))
    answer = pieces.pop()
    assert isinstance(answer, Answer)
    assert sum(map(bool, pieces)) > 5
    assert "".join(pieces) == answer.answer == REPLY["answer"]
    assert answer.as_dict() == REPLY
    assert (answer.model, answer.tokens_in, answer.tokens_out, answer.notes) == ("garden-1", 611, 57, ())
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["response_format"] == FORMATS[0]
    assert body["messages"][0]["role"] == "system"


def test_text_arrives_before_the_reply_is_finished(serve):
    def never_finished(handler):
        handler.start()
        handler.text(json.dumps(REPLY)[:60])
        while True:  # until the client is gone
            handler.wfile.write(b": still here\n\n")
            time.sleep(0.02)

    server = serve(never_finished)
    with closing(answerer(server).stream("How long?", CONTEXT)) as pieces:
        first = next(piece for piece in pieces if piece)
        assert REPLY["answer"].startswith(first)
        assert not server.gone.is_set()
    assert server.gone.wait(AT_MOST), "closing the stream must close the connection"


def test_waiting_can_be_broken_off(serve):
    hold, answered = threading.Event(), threading.Event()

    def slow(handler):
        hold.wait(AT_MOST)
        answered.set()
        streamed()(handler)

    server = serve(slow)
    before = threading.active_count()
    with closing(answerer(server, timeout=10 * AT_MOST).stream("How long?", CONTEXT)) as pieces:
        assert next(pieces) == ""
    assert not answered.is_set(), "who breaks off does not wait for the answer"
    assert not [thread for thread in threading.enumerate() if thread.name == "chat endpoint"]
    assert threading.active_count() <= before + 1  # the server's own thread still waits
    hold.set()


def test_without_passages_the_model_is_not_asked(serve):
    server = serve(streamed())
    *pieces, answer = answerer(server).stream("Combien de jours ?", assemble([]))
    assert (answer.answerable, answer.claims, "".join(pieces)) == (False, (), answer.answer)
    assert answer.answer.startswith("Les passages")
    assert server.requests == []


def test_a_server_that_does_not_stream(serve):
    message = {"choices": [{"message": {"content": json.dumps(REPLY)}, "finish_reason": "stop"}]}
    answer = ask(answerer(serve(status(200, json.dumps(message)))))
    assert answer.as_dict() == REPLY
    assert "tokens are estimates" in answer.notes[0]


def test_stricter_forms_are_tried_first_and_a_refusal_is_remembered(serve):
    server = serve(status(400, "unknown response_format"), status(422), streamed())
    who = answerer(server)
    assert ask(who).answerable
    assert ask(who).answerable
    asked = [body.get("response_format") for _, _, body in server.requests]
    assert asked == [FORMATS[0], FORMATS[1], FORMATS[2], FORMATS[2]]


def test_the_plain_form_reads_what_is_nearly_json(serve):
    server = serve(status(400), status(400), status(400), streamed(f"Here you are:\n```json\n{json.dumps(REPLY)}\n```"))
    answer = ask(answerer(server))
    assert "response_format" not in server.requests[-1][2]
    assert answer.answer == REPLY["answer"]
    assert "repaired" in answer.notes[0]


@pytest.mark.parametrize("fault", [429, 500, 502, 503])
def test_retries_then_succeeds(serve, fault):
    server = serve(status(fault, "busy", Retry_After="0"), status(fault, "busy"), streamed())
    assert ask(answerer(server)).answerable
    assert len(server.requests) == 3


def test_gives_up_after_the_retries(serve):
    server = serve(status(503))
    with pytest.raises(LabError, match="status 503, 3 time"):
        ask(answerer(server, retries=2))
    assert len(server.requests) == 3


def test_nobody_there(serve):
    server = serve(streamed())
    server.shutdown()
    server.server_close()
    with pytest.raises(LabError, match=r"cannot be reached \(ConnectError\), 2 time"):
        ask(answerer(server, retries=1))


def test_a_refused_key_is_not_retried_and_never_shown(serve):
    server = serve(status(401, f"bad key {KEY}"))
    with pytest.raises(LabError, match="status 401") as caught:
        ask(answerer(server))
    assert len(server.requests) == 1
    assert "bad key ***" in str(caught.value)
    assert KEY not in str(caught.value) + repr(answerer(server)) + repr(caught.getrepr(style="short"))


def test_password_in_the_url_is_not_shown():
    who = EndpointAnswerer("http://ann:pa55@127.0.0.1:9/v1?token=pa55", "m", "", retries=0)
    with pytest.raises(LabError) as caught:
        ask(who)
    assert "pa55" not in str(caught.value) + repr(who)


def test_a_silent_server_is_given_up(serve):
    hold = threading.Event()

    def hang(handler):
        handler.start()
        handler.text('{"answerable": true, "answer": "Thir')
        hold.wait(AT_MOST)

    with pytest.raises(LabError, match="silent for 0.3 seconds"):
        ask(answerer(serve(hang), timeout=0.3))
    hold.set()


def test_a_reply_without_end_is_given_up(serve):
    def drip(handler):
        handler.start()
        while True:
            handler.text("x")
            time.sleep(0.05)

    with pytest.raises(LabError, match="goes on and on"):
        ask(answerer(serve(drip), deadline=0.3))


def test_a_connection_that_breaks_off_is_told_from_an_answer(serve):
    server = serve(streamed(json.dumps(REPLY)[:60], finish=None, usage=False, done=False))
    pieces = answerer(server).stream("How long?", CONTEXT)
    with pytest.raises(LabError, match="broke off after 60 characters"):
        list(pieces)


def test_a_reply_cut_at_the_token_limit_keeps_its_text_and_says_so(serve):
    answer = ask(answerer(serve(streamed(json.dumps(REPLY, ensure_ascii=False)[:50], finish="length"))))
    assert REPLY["answer"].startswith(answer.answer)
    assert answer.answer
    assert "the reply was cut off at 220 tokens" in answer.notes
    assert answer.claims == ()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (streamed("You have thirty days."), "not with the answer JSON"),
        (streamed(""), "was empty"),
        (status(200, "<html>welcome</html>", "text/html"), "no chat reply"),
        (status(200, '{"error": {"message": "out of memory"}}'), "no chat reply"),
        (lambda h: (h.start(), h.event('{"broken')), "no chat reply"),
        (lambda h: (h.start(), h.event('{"error": {"message": "context too long"}}')), "context too long"),
        (status(302, Location="http://127.0.0.1:1/"), "status 302"),
    ],
)
def test_what_is_no_answer_is_an_error_of_one_sentence(serve, step, said):
    with pytest.raises(LabError, match=said) as caught:
        ask(answerer(serve(step), retries=0))
    assert "\n" not in str(caught.value)


def test_a_done_mark_is_enough_for_an_end(serve):
    assert ask(answerer(serve(streamed(finish=None)))).as_dict() == REPLY


def test_it_works_where_an_event_loop_already_runs(serve):
    import asyncio

    async def cell():
        return ask(answerer(serve(streamed())))

    assert asyncio.run(cell()).answerable


def test_the_environment_says_which(monkeypatch, serve):
    server = serve(streamed())
    for name in ("LAB_ENDPOINT_URL", "LAB_ENDPOINT_MODEL", "LAB_ENDPOINT_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LabError, match="LAB_ENDPOINT_URL and LAB_ENDPOINT_MODEL"):
        load_answerer("endpoint")
    monkeypatch.setenv("LAB_ENDPOINT_URL", server.url + "/")
    monkeypatch.setenv("LAB_ENDPOINT_MODEL", "garden-1")
    who = load_answerer("endpoint")
    assert isinstance(who, Answerer)
    assert ask(who).answerable
    assert "Authorization" not in server.requests[0][1]
    assert server.requests[0][0] == "/v1/chat/completions"


@pytest.mark.parametrize("url", ["garden", "ftp://x/v1", "http://", "http://[::1"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(LabError, match="must look like"):
        EndpointAnswerer(url, "m", "")


def test_a_key_of_two_lines_is_refused_unseen():
    with pytest.raises(LabError, match="printable ASCII") as caught:
        EndpointAnswerer("http://127.0.0.1:9/v1", "m", "two\nlines")
    assert "two" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_only_line_ends_of_the_protocol_end_a_line(serve, end):
    reply = {**REPLY, "answer": "one\x85two\u2028three\u2029four\x0b\x0c\x1c 🪴"}
    inner = json.dumps(reply, ensure_ascii=False)

    def raw(handler):
        handler.start()
        event = json.dumps({"choices": [{"delta": {"content": inner}, "finish_reason": "stop"}]}, ensure_ascii=False)
        sent = "".join(f"data: {data}{end}{end}" for data in (event, "[DONE]")).encode()
        for at in range(len(sent)):  # byte by byte: characters and line ends arrive in parts
            handler.wfile.write(sent[at : at + 1])
            handler.wfile.flush()

    assert ask(answerer(serve(raw))).answer == reply["answer"]


def test_secrets_in_the_url_are_sent_and_never_told(serve):
    server = serve(status(404, "no /v1/chat/completions?api-key=hush-hush for ann:pa55"))
    who = EndpointAnswerer(server.url.replace("//", "//ann:pa55@") + "/?api-key=hush-hush#top", "m", "")
    with pytest.raises(LabError, match="status 404") as caught:
        ask(who)
    assert server.requests[0][0] == "/v1/chat/completions?api-key=hush-hush"
    told = str(caught.value) + repr(who)
    assert "pa55" not in told
    assert "hush" not in told
    assert "#top" not in told


@pytest.mark.parametrize("echo", ["ann:p%40ss-55", "ann:p@ss-55", "no page ?hush-hush here", "?hush-hush"])
def test_secrets_are_hidden_in_either_spelling(serve, echo):
    server = serve(status(404, echo))
    with pytest.raises(LabError, match="status 404") as caught:
        ask(EndpointAnswerer(server.url.replace("//", "//ann:p%40ss-55@") + "?hush-hush", "m", ""))
    assert "ss-55" not in str(caught.value)
    assert "hush" not in str(caught.value)
