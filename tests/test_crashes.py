"""Ingests that are broken off, that meet each other, or may not write. Tools in benchmarks/ do the same at length."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from garden import front_matter, write
from index_state import check, state

from labsupport.pipeline import LabError
from labsupport.pipeline.index import Filters
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

ROOT = Path(__file__).parents[1]
HOLD = """
import sys, time
from labsupport.pipeline.index_file import IndexFile
with IndexFile(sys.argv[1]).writing(print):
    print("held", flush=True)
    time.sleep(3600)  # longer than any test; it is killed
"""


def tool(name, *options):
    """The output of a tool in benchmarks/, which has to succeed. In memory where possible: the disk is not tested."""
    home = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / name, *options], capture_output=True, text=True,
                          encoding="utf-8", timeout=300, env=os.environ | home)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def corpus(tmp_path):
    for name in ("hire", "mower"):
        title = f"The {name}"
        write(tmp_path, f"{name}.md", front_matter(doc_id=name, title=title) + f"# {title}\n\nCare of the {name}.\n")
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_thirty_random_kills():
    out = tool("kill.py", "--runs", "30")
    old, new = map(int, re.search(r"30 kills at random: (\d+) left the old index, (\d+) the new one", out).groups())
    assert old + new == 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_interrupts_and_full_disks_at_every_kind_of_step():
    out = tool("kill.py", "--every", "17")
    assert all(int(number) > 0 for number in re.findall(r"(\d+) (?:kills|Ctrl-C|full disks)", out)) and "0 half" in out


def test_two_writers_and_eight_readers():
    assert ", 0 errors" in tool("crowd.py", "--seconds", "3")


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_who_waits_says_for_whom_and_a_killed_holder_does_not_block(corpus, embedder, end):
    index = corpus / "index.sqlite"
    ingest(corpus, index, embedder)
    write(corpus, "pump.md", front_matter(doc_id="pump", title="The pump") + "# The pump\n\nDrain it.\n")
    with subprocess.Popen([sys.executable, "-c", HOLD, str(index)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        said = []

        def progress(what, done, total):
            said.append(what)
            getattr(holder, end)()

        try:
            with Store(index) as reader:  # nobody else has to wait
                assert len(reader.keyword(["care"], Filters(), 9)) == 2
            report = ingest(corpus, index, embedder, progress=progress)
        finally:
            holder.kill()
    assert said[0] == f"Another ingest is running (process {holder.pid}); waiting for it to finish"
    assert report.notes == (f"Another ingest is running (process {holder.pid}); waited for it to finish",)
    assert report.added == ("documents/pump.md",)


def test_waiting_ends(corpus, embedder, monkeypatch):
    monkeypatch.setattr("labsupport.pipeline.index_file.WAIT_SECONDS", 0)
    index = corpus / "index.sqlite"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(index)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        try:
            with pytest.raises(LabError, match=rf"running \(process {holder.pid}\) and did not finish in 0 minutes"):
                ingest(corpus, index, embedder)
        finally:
            holder.kill()
    assert not index.exists()


def test_two_threads_of_one_process_take_turns(corpus):
    index, reports = corpus / "index.sqlite", []

    def run():
        reports.append(ingest(corpus, index, FakeEmbedder(), rebuild=True))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.chunks_added for report in reports] == [2, 2, 2]
    check(index)


def test_an_interrupt_releases_the_lock(corpus, embedder):
    index = corpus / "index.sqlite"

    def stop(*_, **__):
        raise KeyboardInterrupt

    plain, embedder.embed = embedder.embed, stop
    with pytest.raises(KeyboardInterrupt):
        ingest(corpus, index, embedder)
    embedder.embed = plain
    waits = []
    ingest(corpus, index, embedder, progress=lambda what, *_: waits.append(what))
    assert waits == ["embedding"]


READ_ONLY = """
import os, sys
corpus, index, tests, what = sys.argv[1:]
sys.path.insert(0, tests)
from fakes import FakeEmbedder
from labsupport.pipeline import LabError, memory  # all that is imported later, while everything can still be read
from labsupport.pipeline.index import Filters
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest
if os.geteuid() == 0:
    os.setuid(65534)
with Store(index) as store:
    while True:
        words = store.keyword(["care"], Filters(), 9)
        vectors = store.dense(FakeEmbedder()._vector("care"), Filters(), 9)
        print(len(words), len(vectors), len(store.documents()), flush=True)
        if what == "ingest" or not sys.stdin.readline():
            break
try:
    print(ingest(corpus, index, FakeEmbedder()).line if what == "ingest" else "")
except LabError as error:
    print(error)
"""


@pytest.fixture
def shared(corpus, embedder):
    """A folder that other users may look into, which pytest's own are not, with a corpus and its index."""
    home = Path(tempfile.mkdtemp())
    home.chmod(0o755)
    shutil.copytree(corpus / "documents", home / "corpus" / "documents")
    ingest(home / "corpus", home / "index.sqlite", embedder)
    home.joinpath("index.sqlite.lock").chmod(0o666)
    home.joinpath("index.sqlite").chmod(0o444)
    yield home
    home.chmod(0o755)
    shutil.rmtree(home)


def without_rights(home, what):
    return [sys.executable, "-c", READ_ONLY, *map(str, (home / "corpus", home / "index.sqlite", ROOT / "tests")), what]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a folder is made read-only in another way there")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_where_writing_is_not_allowed_the_old_index_stays_and_answers(shared, what):
    before = state(shared / "index.sqlite")
    shared.chmod(0o777 if what == "file" else 0o555)
    options = {"capture_output": True, "text": True, "encoding": "utf-8", "cwd": ROOT}
    done = subprocess.run(without_rights(shared, "ingest"), **options)
    nothing = "0 added, 0 updated, 2 unchanged, 0 removed | chunks: +0 -0"
    assert done.stdout.splitlines() == ["2 2 2", nothing], done.stderr
    (shared / "corpus" / "documents" / "hire.md").unlink()
    done = subprocess.run(without_rights(shared, "ingest"), **options)
    found, error = done.stdout.splitlines()
    assert found == "2 2 2" and "Check the disk space and who may write" in error
    shared.chmod(0o755)
    assert state(shared / "index.sqlite") == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_who_may_only_read_sees_what_others_write(shared, embedder):
    shared.chmod(0o755)
    with subprocess.Popen(without_rights(shared, "read"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          cwd=ROOT) as reader:
        def ask():
            reader.stdin.write("\n")
            reader.stdin.flush()
            return reader.stdout.readline()

        assert reader.stdout.readline() == "2 2 2\n"
        for _ in range(2):
            kept = (shared / "corpus" / "documents" / "hire.md").read_bytes()
            (shared / "corpus" / "documents" / "hire.md").unlink()
            ingest(shared / "corpus", shared / "index.sqlite", embedder)
            assert ask() == "1 1 1\n"
            (shared / "corpus" / "documents" / "hire.md").write_bytes(kept)
            with Store(shared / "index.sqlite"):  # somebody holds SQLite's log open
                ingest(shared / "corpus", shared / "index.sqlite", embedder, rebuild=True)
                assert ask() == "2 2 2\n"
            assert ask() == "2 2 2\n"


def test_a_first_index_whose_log_is_not_yet_in_the_file_does_not_take_its_place(corpus, embedder, monkeypatch):
    monkeypatch.setattr("labsupport.pipeline.index_file.TIDY_SECONDS", 0.05)
    readers = []

    def replace(self, *args, plain=Store.replace, **kwargs):
        plain(self, *args, **kwargs)
        readers.append(sqlite3.connect(self.path, isolation_level=None))
        readers[0].execute("BEGIN")
        readers[0].execute("SELECT * FROM documents").fetchall()  # keeps the log from being emptied

    monkeypatch.setattr(Store, "replace", replace)
    with pytest.raises(LabError, match="Another program has .*index.sqlite.new open"):
        ingest(corpus, corpus / "index.sqlite", embedder)
    assert not (corpus / "index.sqlite").exists()
    readers[0].close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_writer_killed_in_its_transaction_leaves_the_old_index(corpus, embedder):
    index = corpus / "index.sqlite"
    ingest(corpus, index, embedder)
    before = state(index)
    code = ("import os, signal, sys\nfrom labsupport.pipeline.store import Store\n"
            "store = Store(sys.argv[1])\nwith store._transaction() as connection:\n"
            "    connection.execute('DELETE FROM documents')\n    os.kill(os.getpid(), signal.SIGKILL)\n")
    assert subprocess.run([sys.executable, "-c", code, str(index)]).returncode == -signal.SIGKILL
    assert state(index) == before
    check(index)
