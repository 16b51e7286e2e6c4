"""The service's streams: what is sent is what is stored, every stream ends, and who leaves stops the work."""

import asyncio
import gc
import os
import socket
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import repeat

import psutil
import pytest
from desk import update_desk
from fastapi.routing import APIRoute
from serving import (
    AT_MOST,
    DEPOSIT,
    ENDLESS,
    TODAY,
    Recited,
    Scripted,
    events,
    names,
    one_by_one,
    serving,
    text_of,
    wait_until,
)

from labsupport.lab.panels import AssistantPanel
from labsupport.pipeline import LabError
from labsupport.pipeline.index import Filters
from labsupport.service.access import PUBLIC
from labsupport.service.conversations import Conversation, Conversations
from labsupport.service.limits import Limits
from labsupport.service.stream import RETRY, sse

LONG = tuple(f"word{number} " for number in range(200))


@pytest.fixture
def serve(tmp_path):
    """Starts services; all are stopped at the end."""
    open_ones = []

    def start(answerer=None, limits=None, **options):
        context = serving(tmp_path / str(len(open_ones)), answerer, limits, **options)
        open_ones.append(context)
        return context.__enter__()

    yield start
    for context in open_ones:
        context.__exit__(None, None, None)


class Clock:
    """The clock of the conversations, which a test puts forward instead of waiting."""

    ahead = 0.0

    def monotonic(self):
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("labsupport.service.conversations.time", clock)
    return clock


@pytest.fixture
def three_looks(monkeypatch):
    """Waits until a worker whose listener has left has looked three times whether it may go on."""
    looks, pause = [], Conversation.pause
    monkeypatch.setattr(Conversation, "pause", lambda self, seconds: (looks.append(1), pause(self, seconds)))

    def wait():
        before = len(looks)
        wait_until(lambda: len(looks) >= before + 3)

    return wait


# What arrives


TEXTS = {
    "accents": ("Où est ", "l’étiquette ", "de la tondeuse ? ", "À côté."),
    "emoji": ("🌱", "👩‍🌾 ", "🇫🇷", "é"),
    "protocol": ("data: no\n\n", "event: done\n", "id: 7\r\n\r\n", ": comment\n", "data:", "\n\n"),
    "line breaks": ("one\n", "\r", "\u2028", "\x85two\n\n\n", "\x0c", "\0"),
    "pieces of nothing": ("", "a", "", "", "b", ""),
    "half a character": ("\ud83d", "\ude00 ", "\udcff"),
    "markup": ("<script>alert(1)</script>", "</textarea>", "&amp;"),
}


@pytest.mark.parametrize("pieces", TEXTS.values(), ids=TEXTS)
def test_the_text_streamed_is_the_answer_stored(serve, pieces):
    found = serve(Scripted(pieces)).ask()
    assert [name for name in names(found) if name != "token"] == ["passages", "answer", "done"]
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    whole = "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert text_of(found) == found[-2][2]["answer"] == whole
    tokens = [data["text"] for _, name, data in found if name == "token"]
    assert all(tokens)
    if "\ud83d" not in pieces:
        assert tokens == [piece for piece in pieces if piece]


@pytest.mark.parametrize("kind", ["emoji", "accents", "protocol"])
def test_read_byte_by_byte_it_is_the_same(serve, kind):
    service = serve(Scripted(TEXTS[kind], pause=0.01))
    conversation_id = service.submit().json()["conversation_id"]
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"GET /conversations/{conversation_id}/stream HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        raw = b"".join(iter(lambda: connection.recv(1), b""))
    body = raw.partition(b"\r\n\r\n")[2]
    found = list(one_by_one(bytes([byte]) for byte in body))
    assert text_of(found) == "".join(TEXTS[kind])
    assert found[-1][1] == "done"


def test_words_arrive_while_the_answer_is_written(serve):
    answerer = Scripted(("The deposit ", None, "is $95."))
    service = serve(answerer)
    with service.following(service.submit().json()["conversation_id"]) as coming:
        assert next(coming)[1] == "passages"
        assert next(coming)[2] == {"text": "The deposit "}
        assert not answerer.ended
        answerer.go_on.set()
        assert names(list(coming)) == ["token", "answer", "done"]


def test_the_notebook_panel_shows_the_same_stream(serve):
    service = serve(Recited(), method="rerank")
    assistant = AssistantPanel(service.retriever, service.corpus, Filters(TODAY, "public"), answerer=Recited())
    assistant.answer(DEPOSIT)
    turn, found = assistant.turns[-1], service.ask()
    assert text_of(found) == turn.text
    in_panel = {chunk.chunk_id: chunk.body for chunk in turn.found.context.kept}
    in_stream = {passage["id"]: passage["text"] for passage in found[0][2]["passages"]}
    assert in_panel == in_stream
    assert turn.asked.as_dict()["checks"] == found[-2][2]["checks"]


def test_passages_bring_what_a_citation_opens(serve):
    _, _, passages = (found := serve(Recited()).ask())[0]
    by_id = {passage["id"]: passage for passage in passages["passages"]}
    asked = found[-2][2]
    assert {check["id"] for check in asked["checks"]} == set(by_id)
    assert asked["grounded"]
    assert all(claim["text"] == by_id[claim["citations"][0]]["text"] for claim in asked["claims"])
    assert (passages["intent"], passages["audience"], passages["as_of"]) == ("concept", "public", "2026-08-01")


def test_who_reconnects_goes_on_where_it_broke_off(serve):
    service = serve(Scripted(LONG))
    conversation_id = service.submit().json()["conversation_id"]
    whole = events(service.stream(conversation_id).content)
    for last in (0, 1, 57, 202):
        assert events(service.stream(conversation_id, last=last).content) == whole[last:]
    # Whoever has everything, or claims more than there is, is still told that it is over.
    for last in (203, 204, 10**8):
        assert names(events(service.stream(conversation_id, last=last).content)) == ["done"]
    for nonsense in ("abc", "-1", "1" * 5000, "²"):
        headers = {"Last-Event-ID": nonsense.encode()}
        response = service.client.get(f"/conversations/{conversation_id}/stream", headers=headers)
        assert events(response.content) == whole


def test_an_answer_pauses_for_a_client_that_comes_back(serve, three_looks):
    answerer = Scripted((*LONG[:2], None, *LONG[2:]))
    service = serve(answerer, {"alone": 6000.0})
    conversation_id = service.submit().json()["conversation_id"]
    with service.following(conversation_id) as coming:
        first = [next(coming) for _ in range(3)]
    wait_until(lambda: service.conversations.get(conversation_id, PUBLIC).left)
    answerer.go_on.set()
    three_looks()
    assert answerer.said == 3, "the piece it was at, and no more while nobody listens"
    three_looks()
    assert answerer.said == 3
    rest = events(service.stream(conversation_id, last=3).content)
    assert [number for number, _, _ in first + rest] == list(range(1, 204))
    assert text_of(first + rest) == "".join(LONG)


def test_every_stream_says_how_soon_to_come_back_and_the_answer_waits_that_long(serve):
    service = serve()
    conversation_id = service.submit().json()["conversation_id"]
    for last in (None, 1, 10**8):
        assert service.stream(conversation_id, last=last).content.startswith(b"retry: %d\n\nid: " % RETRY)
    assert Limits().alone > 2 * RETRY / 1000


def test_two_clients_of_one_answer_get_the_same_and_one_may_leave(serve):
    answerer = Scripted(("one ", None, "two ", "three"))
    service = serve(answerer)
    conversation_id = service.submit().json()["conversation_id"]
    with service.following(conversation_id) as stays:
        head = [next(stays), next(stays)]
        with service.following(conversation_id) as leaves:
            assert [next(leaves), next(leaves)] == head
        wait_until(lambda: len(service.conversations.get(conversation_id, PUBLIC).listeners) == 1)
        answerer.go_on.set()
        assert text_of(head + list(stays)) == "one two three"


# How it ends


def crash(error):
    def on_stream(question):
        raise error

    return on_stream


@pytest.mark.parametrize("error", [RuntimeError(DEPOSIT), SystemExit(3), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_an_answerer_that_crashes_ends_the_stream_and_not_the_worker(serve, error, caplog):
    answerer = Scripted()
    service = serve(answerer, {"workers": 1})
    answerer.on_stream = crash(error)
    found = service.ask()
    assert names(found) == ["passages", "error"]
    assert found[-1][2] == {"error": "The answer failed here; the log of the service says why."}
    answerer.on_stream = None
    assert names(service.ask())[-1] == "done"
    assert type(error).__name__ in caplog.text
    assert "tiller" not in caplog.text, "an error's message may hold the question"


def test_what_the_pipeline_reports_is_told_where_details_may_be(serve):
    for details, told in ((True, "The server at 10.0.0.7 is silent."), (False, "The answer failed here; the log")):
        answerer = Scripted()
        answerer.on_stream = crash(LabError("The server at 10.0.0.7 is silent."))
        assert serve(answerer, details=details).ask()[-1][2]["error"].startswith(told)


def test_what_a_model_says_back_about_the_question_is_not_logged(serve, caplog):
    answerer = Scripted()
    answerer.on_stream = crash(LabError(f"The server answered: cannot read {DEPOSIT!r}."))
    serve(answerer).ask()
    assert "no answer: The server answered: cannot read '…'." in caplog.text
    assert "tiller" not in caplog.text


def test_an_answerer_that_stops_half_way_is_an_error(serve):
    class Half(Scripted):
        def stream(self, question, context, **more):
            yield "half "

    assert names(serve(Half()).ask()) == ["passages", "token", "error"]


def test_a_worker_that_hangs_does_not_leave_its_listeners_waiting(serve, clock, monkeypatch):
    monkeypatch.setattr("labsupport.service.stream.HEARTBEAT", 0.05)  # so that listeners look at the clock put forward
    answerer = Scripted(("a", None, "b"))
    service = serve(answerer, {"answering": 6000.0, "queued": 6000.0, "workers": 1})
    first, second = (service.submit().json()["conversation_id"] for _ in range(2))
    wait_until(lambda: answerer.said == 1)
    with service.following(first) as answered, service.following(second) as waiting:
        assert names([next(answered), next(answered)]) == ["passages", "token"]
        clock.ahead = 6001.0
        assert "longer than 6000 seconds; ask a shorter" in list(answered)[-1][2]["error"]
        assert "waited longer than 6000 seconds" in list(waiting)[-1][2]["error"]
    assert not answerer.ended, "the worker hangs still"
    clock.ahead = 0.0
    answerer.go_on.set()
    wait_until(lambda: answerer.ended == 1)
    assert names(service.ask())[-1] == "done"


def test_an_answer_without_end_is_cut(serve):
    found = serve(Scripted(LONG), {"events": 50}).ask()
    assert len(found) == 51
    assert "longer than 50 events" in found[-1][2]["error"]


def test_an_index_that_is_deleted_is_told(serve):
    service = serve()
    assert service.client.get("/healthz").json()["documents"] == 7
    try:
        service.index.unlink()
    except PermissionError:
        pytest.skip("an open file cannot be deleted here")
    found = service.ask()
    assert names(found) == ["error"]
    assert "start the service again" in found[0][2]["error"]
    health = service.client.get("/healthz")
    assert health.status_code == 503
    assert "deleted" in health.json()["error"]


def test_a_change_of_the_index_is_seen_by_the_next_question(serve):
    service = serve(Recited(), method="hybrid")
    assert "$95" in text_of(service.ask())
    path = service.corpus / "documents" / "hire-v2.md"
    path.write_text(path.read_text(encoding="utf-8").replace("$95", "$110"), encoding="utf-8", newline="\n")
    update_desk(service.corpus.parent)
    text = text_of(service.ask())
    assert "$110" in text
    assert "$95" not in text


def test_stopping_ends_every_stream_with_an_event(serve):
    answerer = Scripted(("a ", None, "b "))
    service = serve(answerer, {"workers": 1})
    running, waiting = (service.submit().json()["conversation_id"] for _ in range(2))
    heard = {}

    def listen(conversation_id):
        with service.following(conversation_id) as coming:
            heard[conversation_id] = list(coming)

    listeners = [threading.Thread(target=listen, args=(one,)) for one in (running, waiting)]
    for listener in listeners:
        listener.start()
    wait_until(lambda: all(service.conversations.get(one, PUBLIC).listeners for one in (running, waiting)))
    wait_until(lambda: len(service.conversations.get(running, PUBLIC).events) == 2)
    service.conversations.close = partial(service.conversations.close, wait=2 * AT_MOST)
    service._server.should_exit = True
    for listener in listeners:
        listener.join(AT_MOST)
    assert not any(listener.is_alive() for listener in listeners), "the listeners need not wait for the worker"
    assert service.thread.is_alive(), "the service does wait for it"
    assert not answerer.ended
    answerer.go_on.set()
    assert names(heard[running]) == ["passages", "token", "error"]
    assert heard[waiting][-1][2] == {"error": "The service is stopping; ask again in a moment."}


def test_closing_with_a_full_queue_does_not_block():
    hold = threading.Event()

    def work(conversation):
        yield "token", {"text": "a"}
        hold.wait(2 * AT_MOST)

    conversations = Conversations(work, Limits(workers=2, waiting=1))
    for _ in range(2):
        conversations.submit("q", PUBLIC)
        wait_until(lambda: not conversations.waiting)
    last = conversations.submit("q", PUBLIC)
    closing = threading.Thread(target=conversations.close, kwargs={"wait": 0.1})
    closing.start()
    closing.join(AT_MOST)
    try:
        assert not closing.is_alive(), "it waits for a place in the queue"
        assert all(worker.is_alive() for worker in conversations._workers), "the workers are held all the time"
        assert last.over
    finally:
        hold.set()
    wait_until(lambda: not any(worker.is_alive() for worker in conversations._workers))


# Who leaves


def leave_after_three(service):
    """The conversation of a client that has read three events and left."""
    conversation_id = service.submit().json()["conversation_id"]
    with service.following(conversation_id) as coming:
        assert [next(coming)[0] for _ in range(3)] == [1, 2, 3]
    return service.conversations.get(conversation_id, PUBLIC)


def running_tasks():
    return sum(isinstance(one, asyncio.Task) and not one.done() for one in gc.get_objects())


def test_a_client_that_leaves_stops_the_producer_fifty_times(serve):
    answerer = Scripted(repeat("word "), pause=0.005)  # it stops for no other reason
    service = serve(answerer, ENDLESS)
    process = psutil.Process()
    for _ in range(3):
        leave_after_three(service)
    wait_until(lambda: answerer.ended == answerer.began)
    gc.collect()
    threads, memory = threading.active_count(), process.memory_info().rss
    files = process.num_fds() if os.name == "posix" else 0
    tasks = running_tasks()
    for _ in range(50):
        leave_after_three(service)
    answerer.pieces = ("short",)
    assert names(service.ask())[-1] == "done"
    wait_until(lambda: answerer.ended == answerer.began == 54)
    wait_until(lambda: threading.active_count() <= threads + 1)
    wait_until(lambda: running_tasks() <= tasks)
    gc.collect()
    if os.name == "posix":
        wait_until(lambda: process.num_fds() <= files + 1)
    assert process.memory_info().rss < memory * 1.05 + 2**22
    assert not any(one.listeners for one in service.conversations._known.values())


def test_the_next_question_waits_for_nobody_who_left(serve):
    answerer = Scripted(repeat("word "), pause=0.005)
    service = serve(answerer, ENDLESS | {"workers": 1, "alone": 6000.0, "queued": AT_MOST / 2})
    conversation = leave_after_three(service)
    wait_until(lambda: conversation.left)
    assert not answerer.ended, "the worker is kept for a client that may come back"
    answerer.pieces = ("short",)
    assert names(service.ask())[-1] == "done"
    assert answerer.ended == 2


def test_the_producer_stops_when_nobody_came_back_in_time(serve, clock, three_looks):
    answerer = Scripted(repeat("a "), pause=0.002)
    service = serve(answerer, ENDLESS | {"alone": 6000.0})
    conversation = leave_after_three(service)
    wait_until(lambda: conversation.left)
    three_looks()
    said, clock.ahead = answerer.said, 3000.0
    three_looks()
    assert not answerer.ended
    clock.ahead = 6001.0
    wait_until(lambda: answerer.ended == 1)
    assert answerer.said == said
    assert Limits().alone < 1, "in service that is within a second"


def test_an_answer_nobody_comes_for_is_stopped_and_forgotten(serve, clock):
    answerer = Scripted(repeat("word "), pause=0.01)
    service = serve(answerer, ENDLESS | {"unheard": 3000.0, "age": 6000.0})
    conversation_id = service.submit().json()["conversation_id"]
    wait_until(lambda: answerer.said)
    assert not answerer.ended
    clock.ahead = 3001.0
    wait_until(lambda: answerer.ended == 1)
    assert "nobody came" in events(service.stream(conversation_id).content)[-1][2]["error"]
    clock.ahead = 6001.0
    assert service.stream(conversation_id).status_code == 404
    assert len(service.conversations) == 0


def test_the_number_kept_is_bounded(serve):
    service = serve(limits={"kept": 5})
    asked = []
    for _ in range(12):
        asked.append(service.submit().json()["conversation_id"])
        service.stream(asked[-1])
    assert len(service.conversations) == 5
    assert [service.stream(one).status_code for one in asked] == [404] * 7 + [200] * 5


def test_a_question_that_waits_is_not_forgotten_for_newer_ones(serve):
    answerer = Scripted(("a", None, "b"))
    service = serve(answerer, {"kept": 1, "workers": 1})
    asked = [service.submit().json()["conversation_id"] for _ in range(4)]  # the same question: answered once
    assert all(service.conversations.get(one, PUBLIC) for one in asked)
    answerer.go_on.set()
    wait_until(lambda: service.stream("none").status_code == 404 and len(service.conversations) == 1)


@contextmanager
def slow_reader(service, conversation_id):
    """A client that asks for the events and takes none of them."""
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", service.port))
        slow.sendall(f"GET /conversations/{conversation_id}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield


MUCH = tuple("x" * 4_000 for _ in range(1_000))  # more than the buffers on the way hold


def test_a_slow_reader_blocks_nobody(serve):
    answerer = Scripted(MUCH)
    service = serve(answerer, {"stalled": 6000.0})
    conversation_id = service.submit().json()["conversation_id"]
    conversation = service.conversations.get(conversation_id, PUBLIC)
    with slow_reader(service, conversation_id):
        wait_until(lambda: conversation.listeners and conversation.over)
        answerer.pieces = ("short",)
        assert service.client.get("/healthz").status_code == 200
        assert names(service.ask())[-1] == "done"
        assert conversation.listeners, "all that while it was reading"
    assert names(events(service.stream(conversation_id, last=990).content))[-1] == "done"


def test_a_reader_that_takes_nothing_is_given_up(serve, caplog):
    caplog.set_level("INFO", "labsupport.service")
    service = serve(Scripted(MUCH), {"stalled": 0.5})
    conversation_id = service.submit().json()["conversation_id"]
    conversation = service.conversations.get(conversation_id, PUBLIC)
    with slow_reader(service, conversation_id):
        wait_until(lambda: conversation.left)
        wait_until(lambda: "a client took nothing for 0.5 seconds" in caplog.text)


# How it is described


def test_openapi_tells_every_route_its_errors_and_the_stream(serve):
    service = serve()
    described = service.client.get("/openapi.json").json()
    routes = {route.path for route in service.app.routes if isinstance(route, APIRoute) and route.include_in_schema}
    assert set(described["paths"]) == routes
    assert routes >= {"/conversations", "/conversations/{conversation_id}/stream", "/healthz", "/screens/{name}"}
    stream = described["paths"]["/conversations/{conversation_id}/stream"]["get"]
    assert set(stream["responses"]["200"]["content"]) == {"text/event-stream"}
    assert "last-event-id" in {parameter["name"].lower() for parameter in stream["parameters"]}
    assert all(word in stream["responses"]["200"]["description"] for word in ("passages", "token", "answer", "done"))
    for path in described["paths"].values():
        for operation in path.values():
            assert operation["responses"].keys() >= {"421", "default"}
            for status, response in operation["responses"].items():
                if not status.startswith("2"):
                    assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Fault"}
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_openapi_says_what_may_be_asked_and_that_a_token_is_optional(serve):
    described = serve(limits={"question": 77, "alone": 2.5}).client.get("/openapi.json").json()
    submit = described["paths"]["/conversations"]["post"]
    stream = described["paths"]["/conversations/{conversation_id}/stream"]["get"]
    assert submit["security"] == stream["security"] == [{}, {"HTTPBearer": []}]
    assert "security" not in described["paths"]["/healthz"]["get"]
    asked = described["components"]["schemas"]["Asked"]["properties"]
    assert asked["question"]["maxLength"] == 77
    assert asked["as_of"]["anyOf"] == [{"type": "string", "format": "date"}, {"type": "null"}]
    assert asked["audience"]["anyOf"][0]["enum"] == ["public", "staff"]
    assert "after 2.5 seconds" in stream["responses"]["200"]["description"]


def fits(value, schema, where):
    """Whether a value is what its schema says, with no field more or less."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
    if "anyOf" in schema:
        assert any(isinstance(value, kinds[one["type"]]) for one in schema["anyOf"]), (where, value)
    elif schema.get("type") == "array":
        assert isinstance(value, list), where
        for one in value:
            fits(one, schema["items"], where)
    elif schema.get("type") == "object":
        assert set(value) == set(schema["properties"]), where
        for name, one in value.items():
            fits(one, schema["properties"][name], f"{where}.{name}")
    else:
        assert isinstance(value, kinds[schema["type"]]), (where, value)


def test_every_event_is_as_openapi_says(serve):
    service, cut = serve(Recited()), serve(Scripted(repeat("a ")), {"events": 5})
    described = service.client.get("/openapi.json").json()
    stream = described["paths"]["/conversations/{conversation_id}/stream"]["get"]["responses"]["200"]
    kinds = stream["content"]["text/event-stream"]["x-events"]
    seen = {name: data for _, name, data in service.ask() + cut.ask()[-1:]}
    assert set(seen) == set(kinds)
    for name, data in seen.items():
        fits(data, described["components"]["schemas"][kinds[name]["$ref"].rpartition("/")[2]], name)


def test_one_event_is_four_lines_whatever_is_in_it():
    sent = sse(7, "token", {"text": "a\n\ndata: é\r"})
    assert sent == 'id: 7\nevent: token\ndata: {"text": "a\\n\\ndata: é\\r"}\n\n'.encode()
    assert sse(1, "token", {"text": "\ud83d"}) == b'id: 1\nevent: token\ndata: {"text": "\\ud83d"}\n\n'
