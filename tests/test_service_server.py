"""The command `serve`, from its first line to the signal that ends it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from desk import DOCUMENTS
from garden import write
from serving import AT_MOST, DEPOSIT, events, names, text_of

from labsupport.cli import run
from labsupport.pipeline import LabError
from labsupport.service.server import listener

ROOT = Path(__file__).parents[1]


def test_a_port_that_is_taken_is_one_sentence():
    with listener("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LabError, match=rf"Cannot listen on 127.0.0.1:{port} .*--port, or 0"):
            listener("127.0.0.1", port)
    with pytest.raises(LabError, match="Cannot listen on"):
        listener("no.such.host.invalid", 0)
    with pytest.raises(LabError, match="Cannot listen on"):
        listener("127.0.0.1", 70_000)


def test_a_token_is_printed_once_and_needs_an_audience(tmp_path, capsys):
    file = str(tmp_path / "tokens.jsonl")
    assert run(["token", "ann", "--file", file]) == 0
    assert len(capsys.readouterr().out.strip()) >= 43
    assert run(["token", "ann", "--audience", "boss", "--file", file]) == 2
    assert "boss" in capsys.readouterr().err
    assert run(["serve", "--index", str(tmp_path / "none.sqlite")]) == 2
    assert "No index" in capsys.readouterr().err


@pytest.mark.model
@pytest.mark.skipif(os.name != "posix", reason="Windows has no signal that asks a process to end")
def test_serve_answers_and_a_signal_ends_it_in_good_order(tmp_path):
    for name, text in DOCUMENTS.items():
        write(tmp_path / "corpus", name, text)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    for name in ("LAB_ENDPOINT_URL", "FORWARDED_ALLOW_IPS"):
        environment.pop(name, None)
    program = [sys.executable, "-m", "labsupport"]
    subprocess.run([*program, "ingest"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    service = subprocess.Popen([*program, "serve", "--port", "0"], cwd=tmp_path, env=environment, text=True,
                               encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        address = next(found[0] for line in service.stdout if (found := re.findall(r"http://127\.0\.0\.1:\d+", line)))
        with httpx.Client(base_url=address, timeout=5 * AT_MOST) as client:
            asked = {"question": DEPOSIT, "as_of": "2026-08-01"}
            found = events(client.get(f"/conversations/{submit(client, asked)}/stream").content)
            assert names(found)[-1] == "done"
            assert "$95" in text_of(found)
            assert found[-2][2]["grounded"]
            with client.stream("GET", f"/conversations/{submit(client, asked | {'as_of': None})}/stream") as response:
                service.send_signal(signal.SIGTERM)
                assert names(events(b"".join(response.iter_raw())))[-1] in ("done", "error")
        assert service.wait(AT_MOST) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        log = service.stdout.read()
        assert f"asked: {len(DEPOSIT)} characters by the public" in log
        assert "tiller" not in log
        assert "Traceback" not in log
    finally:
        service.kill()
        service.stdout.close()
        service.wait()


def submit(client, asked):
    return client.post("/conversations", json=asked).json()["conversation_id"]
