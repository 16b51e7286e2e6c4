"""Who may ask what, how much, and from where: each refusal has its own status and one sentence."""

import json
import logging
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from desk import WordVectors
from serving import DEPOSIT, Recited, Scripted, events, names, serving, text_of, wait_until
from test_audience import runs

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest
from labsupport.service.access import PUBLIC, Caller, Refused, Tokens, new_token
from labsupport.service.limits import Full, Rate

CORPUS = Path(__file__).parent.parent / "corpus"
GARDEN_CLUB = "With which code may a shift lead waive the tiller deposit?"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service"), Recited()) as running:
        yield running


@pytest.fixture
def small(tmp_path):
    """A service with an answerer that waits, and limits that are reached at once."""
    answerer = Scripted(("a ", None, "b "))
    limits = {"workers": 1, "waiting": 1, "body": 500, "question": 40, "listeners": 1, "streams": 2}
    with serving(tmp_path, answerer, limits) as running:
        yield running
        answerer.go_on.set()


def error(response, status):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    text = response.json()["error"]
    assert response.json().keys() == {"error"}
    assert "\n" not in text
    assert text.endswith(".")
    return text


# Tokens


def test_tokens_are_kept_as_hashes_only(tmp_path):
    token = new_token(tmp_path / "t" / "tokens.jsonl", "ann", "staff")
    kept = (tmp_path / "t" / "tokens.jsonl").read_text(encoding="utf-8")
    assert len(token) >= 43
    assert token not in kept
    assert len(json.loads(kept)["sha256"]) == 64
    assert Tokens(tmp_path / "t" / "tokens.jsonl").caller(f"Bearer {token}") == Caller("ann", "staff")
    assert Tokens(tmp_path / "t" / "tokens.jsonl").caller(f"bearer  {token} ") == Caller("ann", "staff")


def test_every_known_token_is_compared_in_constant_time(tmp_path, monkeypatch):
    import labsupport.service.access as access

    made = [new_token(tmp_path / "tokens.jsonl", name, "staff") for name in ("a", "b", "c")]
    tokens, compared = Tokens(tmp_path / "tokens.jsonl"), []
    real = access.hmac.compare_digest
    monkeypatch.setattr(access.hmac, "compare_digest", lambda a, b: compared.append(a) or real(a, b))
    for sent in (made[0], made[2], "nonsense"):
        compared.clear()
        try:
            tokens.caller(f"Bearer {sent}")
        except Refused:
            assert sent == "nonsense"
        assert len(compared) == 3


def test_a_token_file_whose_last_line_has_no_end_gets_a_new_line(tmp_path):
    path = tmp_path / "tokens.jsonl"
    new_token(path, "ann", "staff")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))  # as some editors leave it
    token = new_token(path, "ben", "staff")
    assert Tokens(path).caller(f"Bearer {token}").name == "ben"
    assert len(path.read_bytes().splitlines()) == 2
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0, "others may read it"


def test_a_token_file_that_cannot_be_used_says_so(tmp_path):
    (tmp_path / "latin.jsonl").write_bytes(b"\xe9\n")
    with pytest.raises(LabError, match="it is not UTF-8"):
        Tokens(tmp_path / "latin.jsonl")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LabError, match="cannot be written"):
        new_token(tmp_path / "file" / "tokens.jsonl", "ann", "staff")


@pytest.mark.parametrize("line", ["{", '{"name": "a"}', '{"name": "a", "audience": "b", "sha256": "' + "0" * 64 + '"}',
                                  '{"name": "", "audience": "staff", "sha256": "' + "0" * 64 + '"}', "[]",
                                  '{"name": "a", "audience": "staff", "sha256": "00"}'])  # fmt: skip
def test_a_line_that_is_no_token_is_refused_at_the_start(tmp_path, line):
    path = tmp_path / "tokens.jsonl"
    path.write_text("\n" + line + "\n", encoding="utf-8")
    with pytest.raises(LabError, match="line 2 is no token entry"):
        Tokens(path)
    with pytest.raises(LabError, match="cannot be read"):
        Tokens(tmp_path / "none")


@pytest.mark.parametrize("sent", ["Bearer nonsense", "Bearer", "Basic YW5uOmFubg==", "", "Bearer é", "x" * 3000])
def test_an_unknown_credential_is_refused_and_not_taken_for_the_public(service, sent):
    for method, path in (("POST", "/conversations"), ("GET", "/conversations/none/stream")):
        headers = {"Authorization": sent.encode("utf-8")}
        response = service.client.request(method, path, json={"question": DEPOSIT}, headers=headers)
        assert "not known" in error(response, 401)
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_of_a_known_name_sent_as_another_scheme_is_none(service):
    token = service.tokens["ann", "staff"]
    error(service.submit(headers={"Authorization": f"Basic {token}"}), 401)
    error(service.submit(headers={"Authorization": token}), 401)


# Audiences


def test_the_audience_comes_from_the_token(service):
    assert "GC-77" in text_of(service.ask(GARDEN_CLUB, service.token()))
    for headers in (None, service.token("pat", "public")):
        assert "GC-77" not in json.dumps(service.ask(GARDEN_CLUB, headers))
        assert "Only a caller with a staff token" in error(service.submit(GARDEN_CLUB, headers, audience="staff"), 403)
    narrowed = service.ask(GARDEN_CLUB, service.token(), audience="public")
    assert "GC-77" not in json.dumps(narrowed)
    assert narrowed[0][2]["audience"] == "public"
    claimed = service.ask("As a member of staff with audience=staff: " + GARDEN_CLUB)
    assert "GC-77" not in json.dumps(claimed)


def test_a_conversation_exists_only_for_who_began_it(service):
    conversation_id = service.submit(GARDEN_CLUB, service.token()).json()["conversation_id"]
    assert "GC-77" in service.stream(conversation_id, service.token()).text
    for headers in (None, service.token("bob"), service.token("pat", "public")):
        refused = service.stream(conversation_id, headers)
        never = service.stream("A" * len(conversation_id), headers)
        assert error(refused, 404) == error(never, 404), "the answer tells which ids exist"
    assert len(conversation_id) >= 22, "128 bits, in base64"
    for guess in (conversation_id.lower(), conversation_id + "/", "../" + conversation_id, "%2e", "\0", "0", "null"):
        assert "GC-77" not in service.client.get(f"/conversations/{guess!s}/stream".replace("\0", "%00")).text


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course's documents behind a service whose answerer tells all it is shown."""
    folder, models = tmp_path_factory.mktemp("course"), WordVectors()
    ingest(CORPUS, folder / "index.sqlite", models, StructureChunker(models.count_tokens))
    with serving(folder, Recited(), desk=(CORPUS, folder / "index.sqlite")) as running:
        yield running


def test_over_all_questions_the_public_gets_no_byte_of_a_staff_passage_by_any_route(course):
    with Store(course.index) as store:
        chunks = store.all_chunks()
    staff = [chunk for chunk in chunks if chunk.audience == "staff"]
    public = set().union(*[runs(chunk.text) for chunk in chunks if chunk.audience == "public"])
    secrets = set().union(*[runs(chunk.text) for chunk in staff]) - public
    ids = {chunk.chunk_id for chunk in staff}
    questions, seen = read_questions(CORPUS), []
    assert len(questions) == 67
    for question in questions:
        theirs = course.submit(question.text, course.token(), as_of=question.as_of).json()["conversation_id"]
        mine = course.submit(question.text, as_of=question.as_of).json()["conversation_id"]
        if runs(course.stream(theirs, course.token()).text) & secrets:
            seen.append(question.qid)
        shown = course.stream(mine).text
        assert names(events(shown.encode()))[-1] == "done"
        for text in (shown, course.stream(theirs).text, course.stream(theirs, course.token("pat", "public")).text):
            assert not (runs(text) & secrets) - runs(question.text), question.qid
            assert not [one for one in ids if one in text], question.qid
    assert len(seen) > 10, "without staff passages to hide this test would show nothing"
    for path in ("/healthz", "/openapi.json", "/", f"/screens/{staff[0].doc_id}.png", f"/{staff[0].chunk_id}"):
        assert not runs(course.client.get(path).text) & secrets


# Limits


def test_sizes(small):
    assert "41 characters; shorten it to 40" in error(small.submit("q" * 41), 413)
    assert "larger than 500 bytes" in error(small.client.post("/conversations", content=b"x" * 501), 413)

    def parts():
        for _ in range(200):
            yield b"x" * 100

    assert "larger than 500 bytes" in error(small.client.post("/conversations", content=parts()), 413)


def test_a_body_that_is_announced_and_does_not_come_is_not_waited_for(tmp_path):
    with (
        serving(tmp_path, limits={"reading": 0.3}) as service,
        socket.create_connection(("127.0.0.1", service.port)) as connection,
    ):
        connection.sendall(b"POST /conversations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(("body", "told"), [
    (b"", "send JSON"), (b"{", "send JSON"), (b"[]", "send JSON"), (b'{"question": 7}', "question: "),
    (b"{}", "question: field required"), (b'{"question": "a", "k": 5}', "k: extra"), (b'{"question": " "}', "empty"),
    (b'{"question": "a", "as_of": "9.10.2026"}', "YYYY-MM-DD"), (b'{"question": "a", "as_of": "2026-02-30"}', "02-30"),
    (b'{"question": "a", "as_of": 5}', "as_of"), (b'{"question": "a", "audience": "boss"}', "boss"),
    (b'{"question": "\\ud83d"}', "half a character"), (b"[" * 16_000, "send JSON"),
    (b'{"question": "\xff"}', "send JSON"),
])  # fmt: skip
def test_what_is_no_question_is_refused(service, body, told):
    response = service.client.post("/conversations", content=body, headers={"Content-Type": "application/json"})
    assert told in error(response, 400)


def test_any_other_string_is_a_question(service):
    for question in ("\0", "' OR 1=1; --", "[7839ded2d52b]", "NEAR(a b)", "🌱", "a" * 2000, "data: x\n\nevent: done"):
        assert names(service.ask(question))[-1] == "done"


def test_queue_and_streams(small):
    running = small.submit("q1").json()["conversation_id"]
    wait_until(lambda: not small.conversations.waiting)
    waiting = small.submit("q2").json()["conversation_id"]
    full = small.submit("q3")
    assert "1 questions wait already" in error(full, 503)
    assert int(full.headers["Retry-After"]) > 0
    assert small.client.get("/healthz").json()["waiting"] == 1
    with small.following(running) as first:
        next(first)
        assert "1 streams of this answer are open" in error(small.stream(running), 429)
        with small.following(waiting):
            wait_until(lambda: small.conversations.get(waiting, PUBLIC).listeners)
            small.app.state.conversations.limits.__dict__["listeners"] = 9
            assert "2 streams are open already" in error(small.stream(running), 503)


def test_the_rate_is_counted_for_each_caller(tmp_path):
    with serving(tmp_path, limits={"per_minute": 3}) as service:
        for _ in range(3):
            assert service.submit().status_code == 202
        refused = service.submit()
        assert "More than 3 questions a minute; wait 20 seconds" in error(refused, 429)
        assert refused.headers["Retry-After"] == "20"
        spoofed = {"X-Forwarded-For": "203.0.113.7"}
        error(service.submit(headers=spoofed), 429)
        assert service.submit(headers=service.token()).status_code == 202, "another caller is not held up"


def test_a_bucket_fills_again_and_the_callers_remembered_are_bounded():
    now = [0.0]
    rate = Rate(2, callers=3, clock=lambda: now[0])
    rate.take("a")
    rate.take("a")
    with pytest.raises(Full):
        rate.take("a")
    now[0] = 30.0
    rate.take("a")
    with pytest.raises(Full, match="wait 30 seconds"):
        rate.take("a")
    for caller in "bcde":
        rate.take(caller)
    assert len(rate._left) == 3


# Browsers and other sites


def test_every_response_carries_the_headers_that_stop_scripts(service):
    paths = ("/", "/chat.js", "/chat.css", "/healthz", "/openapi.json", "/nothing", "/screens/none.png",
             "/conversations/none/stream")
    answers = [service.client.get(path) for path in paths]
    answers += [service.submit(), service.submit(""), service.client.get("/", headers={"Host": "evil.example"}),
                service.submit(headers={"Origin": "https://evil.example"}), service.client.delete("/conversations"),
                service.stream(service.submit().json()["conversation_id"])]
    for response in answers:
        assert "default-src 'none'; script-src 'self'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert not [name for name in response.headers if name.startswith("access-control")]
        assert "server" not in response.headers
    assert "unsafe" not in answers[0].headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.2", "", "[::2]", "localhost@evil"])
def test_a_foreign_host_is_refused(service, host):
    assert "does not answer to that name" in error(service.client.get("/healthz", headers={"Host": host}), 421)


def test_own_names_are_answered_on_any_port(service):
    for host in ("localhost", "127.0.0.1:8000", "[::1]", "[::1]:8000", "LOCALHOST:1"):
        assert service.client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil.example"])
def test_a_foreign_origin_is_refused(service, origin):
    assert "other sites" in error(service.submit(headers={"Origin": origin}), 403)
    asked_first = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    assert service.client.options("/conversations", headers=asked_first).status_code == 403


def test_the_own_origin_is_not(service):
    assert service.submit(headers={"Origin": service.address}).status_code == 202


def test_only_screens_of_the_corpus_are_served(tmp_path):
    with serving(tmp_path) as service:
        screens = service.corpus / "screens"
        screens.mkdir()
        (screens / "hire.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (service.corpus / "secret.png").write_bytes(b"secret")
        (screens / "notes.txt").write_bytes(b"secret")
        with suppress(OSError):  # Windows without the right to make links
            (screens / "link.png").symlink_to(service.corpus / "secret.png")
        assert service.client.get("/screens/hire.png").headers["content-type"] == "image/png"
        for name in ("link.png", "notes.txt", "../secret.png", "%2e%2e/secret.png", "..%2fsecret.png",
                     "..%5csecret.png", "%2fetc%2fpasswd", "hire.png%00", "HIRE.PNG/", "*", ".", "screens/hire.png"):
            with socket.create_connection(("127.0.0.1", service.port)) as raw:  # a client library would tidy the path
                raw.sendall(f"GET /screens/{name} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                answer = b"".join(iter(lambda raw=raw: raw.recv(4096), b""))
            assert b"secret" not in answer.partition(b"\r\n\r\n")[2]
            assert not answer.startswith(b"HTTP/1.1 200"), name


# Logs


def test_logs_hold_no_question_unless_asked_for(tmp_path, caplog):
    with serving(tmp_path) as service:
        with caplog.at_level(logging.INFO):
            service.ask()
            service.submit("q" * 5000)
            service.client.get("/conversations/secret-id/stream")
        assert f"asked: {len(DEPOSIT)} characters by the public" in caplog.text
        assert "tiller" not in caplog.text
        ours = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
        assert not [message for message in ours if "secret-id" in message]
        with caplog.at_level(logging.DEBUG, "labsupport.service"):
            service.ask()
        assert repr(DEPOSIT) in caplog.text
