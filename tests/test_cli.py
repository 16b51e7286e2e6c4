"""The command line, run in this process on a workspace restored from a snapshot: no model is needed for most of it."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from labsupport.cli import run
from labsupport.lab.home import Home
from labsupport.lab.snapshots import restore

INDEX_LINE = "index index.sqlite: 36 documents, 185 chunks | chunker structure | embeddings all-MiniLM-L6-v2\n"
REPORTS = json.loads((Path(__file__).parent / "figures.json").read_text(encoding="utf-8"))["reports"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("home")
    return home / restore("end-of-m03", Home(home)).workspace


@pytest.fixture
def here(workspace, tmp_path, monkeypatch) -> Path:
    """A copy of the workspace as the working folder."""
    shutil.copytree(workspace, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def said(capsys):
    """Runs a command line; gives its exit code, output and errors."""

    def call(*argv: str) -> tuple[int, str, str]:
        code = run(list(argv))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_reports_of_a_deletion_and_its_undoing(here, said):
    assert said("ingest") == (0, f"{REPORTS['second_ingest']}\n{INDEX_LINE}", "")
    gone = here / "corpus" / "documents" / "staff-discount-and-perks.md"
    text = gone.read_bytes()
    gone.unlink()
    code, out, _ = said("ingest")
    removed = f"{REPORTS['after_deleting_staff_discount']}\n  removed: documents/{gone.name}\n"
    assert code == 0 and out.startswith(removed)
    code, out, _ = said("audit")
    cited = re.search(r"\n268 recorded answers \| (\d+) citations to passages that are removed, not in force", out)
    assert code == 1 and int(cited[1]) > 0 and "Q51 chat rerank" in out
    gone.write_bytes(text)


def test_chunks_and_info(here, said):
    code, out, _ = said("chunks", "gift-cards")
    assert code == 0 and [line.split("]")[0].split("[")[1] for line in out.splitlines()] == [
        "8c4bc4299042", "f27bb50ce8b7", "52ad3a57c1d1"]  # fmt: skip
    assert said("chunks", "no-such-document") == (1, "No chunks for no-such-document\n", "")
    assert said("info") == (0, INDEX_LINE, "")
    assert json.loads(said("info", "--json")[1])["chunks"] == 185
    assert [one["start"] for one in json.loads(said("chunks", "gift-cards", "--json")[1])] == [12, 127, 232]


@pytest.mark.parametrize(
    ("day", "version", "chunk"), [("2026-10-31", 3, "7839ded2d52b"), ("2026-11-01", 4, "963dae4229eb")]
)
def test_the_date_picks_the_version(here, said, day, version, chunk):
    code, out, _ = said("search", "return window", "--method", "bm25", "--k", "2", "--as-of", day)
    first, text, *_, last = out.splitlines()
    assert re.fullmatch(rf"1\.  \d+\.\d+  \[{chunk}\] returns-policy v{version} \| Return window \| public", first)
    assert text.startswith("   Returns policy Return window You have") and text.endswith("…") and len(text) == 104
    assert code == 0 and last == f"bm25, top 2, as of {day}, audience staff"


def test_the_public_finds_nothing_of_staff(here, said):
    found = json.loads(said("search", "staff discount", "--method", "bm25", "--audience", "public", "--json")[1])
    assert found["results"] and {one["audience"] for one in found["results"]} == {"public"}


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["search", "x", "--method", "magic"], "Unknown method 'magic'; use one of: bm25, dense, hybrid, rerank."),
        (["search", "x", "--method", "bm25", "--as-of", "30.06.2026"], "No such date: '30.06.2026'"),
        (["search", "x", "--method", "bm25", "--audience", "all"], "No audience 'all'; use one of: public, staff."),
        (["search", "x", "--method", "bm25", "--k", "0"], "k is 0"),
        (["search", "x", "--k", "many"], "--k"),
        (["search"], "Missing argument"),
        (["find"], "No such command 'find'"),
        (["info", "--index", "nowhere.sqlite"], "nowhere.sqlite"),
        (["ingest", "--corpus", "nowhere"], "nowhere"),
        (["evaluate", "--split", "nope"], "Unknown split 'nope'; use one of: tune, test."),
        (["serve", "--method", "nope", "--port", "0"], "Unknown method 'nope'"),
        (["ingest", "--index", ""], "--index '' names no file"),
        (["info", "--index", "corpus"], "--index 'corpus' names no file"),
        (["record", "--only", "Q99"], "Unknown question 'Q99'"),
        (["record", "--method", "bogus"], "Unknown method 'bogus'"),
        (["record", "--answerer", "replay"], "give --answerer extractive, endpoint, or the name of a file of your"),
        (["record", "--answerer", "nope"], "Unknown answerer 'nope'"),
        (["serve", "--answerer", "replay:chat", "--port", "0"], "A recording answers nothing anew"),
        (["ask", "x", "--answerer", "nope"], "choose extractive, endpoint, replay:NAME of a recording, or the"),
        (["ask", "x", "--answerer", "replay"], "ask a free question with --answerer extractive."),
        (["record", "--name", "../x"], "No name for a recording: '../x'"),
        (["ask", "Q51", "--k", "1"], "A recorded answer has its own date and passages"),
        (["audit", "--corpus", "nowhere"], "No folder nowhere"),
        (["search", "x", "--method", "bm25", "--corpus", "nowhere"], "No folder nowhere"),
        (["ask", "Q99"], "There is no question Q99: corpus/questions.csv holds Q01 to Q67."),
        (["ask", "Q01", "--audience", "public"], "staff"),
        (["ask", "   ", "--answerer", "extractive"], "empty"),
        (["snapshot", "restore", "end-of-m99"], "end-of-m99"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(here, said, argv, sentence):
    before = (here / "index.sqlite").read_bytes()
    code, out, err = said(*argv)
    assert (code, out) == (2, "")
    assert sentence in err and len(err.splitlines()) == 1 and "Traceback" not in err
    assert (here / "index.sqlite").read_bytes() == before
    assert not (here / "nowhere.sqlite").exists()


@pytest.mark.model
def test_a_recorded_answer_is_checked_against_the_index_of_today(here, said):
    code, out, _ = said("ask", "Q51")
    assert code == 0 and "[c13d27947ed1]" in out and "CHECK" not in out and "audience staff" in out
    (here / "corpus" / "documents" / "staff-discount-and-perks.md").unlink()
    said("ingest")
    code, out, _ = said("ask", "Q51")
    assert code == 1 and "CHECK: missing_id:c13d27947ed1" in out and "the recording saw other passages" in out


def test_nothing_said_shows_the_commands(said):
    code, out, _ = said()
    assert code == 0 and "ingest" in out and "evaluate" in out


@pytest.mark.parametrize("words", ["", "search", "evaluate", "snapshot", "snapshot restore"])
def test_h_helps_as_help_does(words, said):
    code, out, err = said(*words.split(), "-h")
    assert (code, out, err) == said(*words.split(), "--help") and code == 0 and "Usage: python -m labsupport" in out


@pytest.mark.parametrize("command", ["evidence", "doctor"])
def test_the_commands_that_start_by_themselves_refuse_in_one_sentence_too(command):
    done = subprocess.run([sys.executable, "-m", "labsupport", command, "--bogus"], capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "--bogus" in done.stderr


def test_ctrl_c_is_answered_in_one_sentence(here, monkeypatch, said):
    import labsupport.pipeline.updates as updates

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(updates, "ingest", interrupted)
    assert said("ingest") == (130, "", "Stopped. What was not finished has changed nothing.\n")


def test_hidden_files_and_folders_hold_no_documents(here, said):
    hidden = here / "corpus" / "documents" / ".ipynb_checkpoints"
    hidden.mkdir()
    shutil.copy(here / "corpus" / "documents" / "gift-cards.md", hidden / "gift-cards-checkpoint.md")
    (hidden.parent / "._gift-cards.md").write_bytes(b"\0\5")
    assert said("ingest")[1].startswith(REPORTS["second_ingest"])


OWN_ANSWERER = """
from labsupport.pipeline.answering import Answer, StreamingAnswerer


class Shouting(StreamingAnswerer):
    name = model = "shouting"

    def stream(self, question, context, *, prompt=None, intent=None):
        yield question.upper()
        yield Answer(True, question.upper(), (), self.model)


def make_answerer(**needs):
    return Shouting()
"""


@pytest.fixture
def own_answerer(tmp_path, monkeypatch):
    """Writes the file of an answerer of one's own where the package finds it: the pipeline's folder, and one more."""
    import labsupport.pipeline

    monkeypatch.setattr(labsupport.pipeline, "__path__", [*labsupport.pipeline.__path__, str(tmp_path)])
    yield lambda text: (tmp_path / "shouting.py").write_text(text, encoding="utf-8")
    sys.modules.pop("labsupport.pipeline.shouting", None)


def test_an_answerer_of_ones_own_is_recorded_replayed_and_judged(here, said, own_answerer):
    own_answerer(OWN_ANSWERER)
    code, out, err = said("record", "--answerer", "shouting", "--method", "bm25", "--only", "Q01", "--only", "Q51")
    assert (code, out) == (0, "corpus/recordings/shouting-bm25.jsonl: 2 recorded, 0 kept, 0 failed\n"), err
    code, out, _ = said("ask", "Q51", "--answerer", "replay:shouting", "--method", "bm25")
    assert "STAFF DISCOUNT" in out and "record --answerer shouting --method bm25" in out
    assert "| shouting | bm25 | 2 |" in said("evaluate", "--answers", "--method", "bm25")[1]
    assert "shouting |" in said("ask", "how long?", "--answerer", "shouting", "--method", "bm25")[1]


@pytest.mark.parametrize("command", ["ask x", "record", "serve --port 0"])
@pytest.mark.parametrize(
    ("text", "where", "error"),
    [
        ("import re\nnonsense\n", "shouting.py, line 2 fails", "NameError: name 'nonsense' is not defined"),
        ("def make_answerer(:\n", "shouting.py, line 1 fails", "SyntaxError: invalid syntax"),
        ("import no_such_package\n", "shouting.py, line 1 fails", "No module named 'no_such_package'"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_sentence(here, said, own_answerer, command, text, where, error):
    own_answerer(text)
    code, out, err = said(*command.split(), "--answerer", "shouting")
    assert (code, out) == (2, "") and len(err.splitlines()) == 1
    assert err.startswith(f"labsupport/pipeline/{where} (") and error in err


def test_a_make_answerer_that_takes_nothing_is_one_sentence(here, said, own_answerer):
    own_answerer("def make_answerer():\n    return None\n")
    code, out, err = said("ask", "x", "--answerer", "shouting", "--method", "bm25")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and "make_answerer of labsupport" in err


def test_the_seconds_of_an_evaluation_say_what_they_are(here, said):
    code, out, _ = said("evaluate", "--method", "bm25")
    assert code == 0 and out.splitlines()[0].endswith("| MRR | seconds a question, models loaded |")
    assert "seconds" in json.loads(said("evaluate", "--method", "bm25", "--json")[1])[0]


BUILD = "python -m labsupport ingest"
OTHERS = "--corpus mine --index mine.sqlite"


@pytest.fixture
def mine(here) -> Path:
    """The same documents in a folder of one's own, without questions and defaults, and an index of another name."""
    shutil.copytree(here / "corpus" / "documents", here / "mine" / "documents")
    shutil.copy(here / "index.sqlite", here / "mine.sqlite")
    return here / "mine.sqlite"


def change_meta(index: Path, key: str) -> None:
    with sqlite3.connect(index) as connection:
        connection.execute("UPDATE meta SET value = 'another' WHERE key = ?", [key])
    connection.close()


def test_a_mend_names_the_index_and_the_corpus_it_is_about(mine, said):
    mine.unlink()
    assert said("info")[0] == 0
    assert said("info", "--index", "mine.sqlite")[2] == (
        f"No index at mine.sqlite. Build it with: {BUILD} --index mine.sqlite\n")
    assert said("search", "x", *OTHERS.split())[2].endswith(f"Build it with: {BUILD} {OTHERS}\n")
    assert said("info", "--index", "my index.sqlite")[2].endswith(f'{BUILD} --index "my index.sqlite"\n')
    Path("index.sqlite").unlink()
    assert said("info")[2] == f"No index at index.sqlite. Build it with: {BUILD}\n"


@pytest.mark.parametrize("command", ["ingest", "search x --method dense"])
@pytest.mark.parametrize("key", ["fingerprint", "chunker"])
def test_so_does_the_mend_of_an_index_made_with_other_parts(mine, said, command, key):
    change_meta(mine, key)
    code, _, err = said(*command.split(), *OTHERS.split())
    assert code == 2 and err.endswith(f"build the index anew with: {BUILD} {OTHERS} --rebuild\n")


def test_so_does_the_mend_of_a_damaged_index(mine, said):
    data = mine.read_bytes()
    mine.write_bytes(data[:4096] + b"\7" * (len(data) - 4096))
    assert said("info", *OTHERS.split())[2].endswith(f"Build it anew with: {BUILD} {OTHERS} --rebuild\n")


@pytest.mark.parametrize("command", ["info", "ingest", "search x --method bm25", "serve --port 0"])
def test_an_address_that_nobody_knows_is_no_file(here, said, command):
    for other in ("POSTGRESQL://me:secret@x/y", " postgresql://me:secret@x/y", "host=x dbname=y password=secret"):
        code, out, err = said(*command.split(), "--index", other)
        assert (code, out) == (2, "") and "postgresql://" in err and "secret" not in err and len(err.splitlines()) == 1
    code, out, err = said(*command.split(), "--index", "mysql://me:secret@x/y")
    assert (code, out) == (2, "") and "--index mysql://… is no address" in err and "secret" not in err
    assert len(err.splitlines()) == 1 and not (here / "mysql:").exists()


def test_a_method_that_was_not_recorded_says_how_it_would_be(here, said):
    code, _, err = said("ask", "Q01", "--method", "hybrid")
    assert code == 2 and "python -m labsupport record --answerer endpoint --method hybrid, or ask with" in err
    assert "there are recordings of: chat-bm25, chat-rerank, extractive-bm25, extractive-rerank." in err
    assert "labsupport record" not in said("ask", "Q01", "--method", "narrow")[2]  # it records searches only


def test_a_token_file_that_is_not_there_is_made_under_its_own_name(here, said):
    err = said("serve", "--tokens", "nope.jsonl", "--port", "0")[2]
    assert err.endswith("make one with: python -m labsupport token NAME --file nope.jsonl\n")


@pytest.mark.parametrize("command", ["search x --method bm25", "ask x --method bm25", "evaluate", "record", "audit"])
def test_a_folder_that_is_no_corpus_is_refused_as_ingest_does(here, said, command):
    sentence = "Name the corpus folder with --corpus; it keeps its documents in a folder named documents.\n"
    for code, out, err in (said(*one.split(), "--corpus", "corpus/documents") for one in (command, "ingest")):
        assert (code, out) == (2, "") and err.endswith(sentence) and "corpus/documents/documents" in err


def test_a_missing_package_is_one_sentence():
    code = (
        "import sys\nclass Block:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Block())\nfrom labsupport.__main__ import main\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, "ingest"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("The package typer is missing") and "`make lab`" in done.stderr
    assert "pip install -e ." in done.stderr


def test_the_prompt_as_json(here, said):
    words = ("ask", "Do gift cards expire?", "--prompt", "--method", "bm25")
    code, out, _ = said(*words, "--json")
    parts = json.loads(out)
    assert code == 0 and said(*words)[1] == f"{parts['prompt']['system']}\n\n{parts['prompt']['user']}\n"
    assert parts["version"] == "answer_v1" and parts["passages"]


def test_a_search_without_a_hit_says_so_and_with_which_filters(here, said):
    code, out, _ = said("search", "zzzz", "--method", "bm25", "--language", "fr", "--doc-type", "policy")
    day = "2026-10-09"
    assert code == 0 and out == (
        f"nothing found (filters: as of {day}, audience staff, language fr, type policy)\n"
        f"bm25, top 5, as of {day}, audience staff\n")


@pytest.mark.model
def test_a_list_with_two_scales_says_whose_score_is_which(here, said):
    question = "Do you sell extended warranties?"
    found = json.loads(said("search", question, "--json")[1])["results"]
    other = [str(one["rank"]) for one in found if one["scored_by"] == "rrf"]
    assert 0 < len(other) < len(found)
    out = said("search", question)[1]
    assert f"note: Scored by rrf: {', '.join(other)}; by the reranker: the others." in out
    assert "do not compare" not in said("search", question, "--method", "bm25")[1]


@pytest.mark.parametrize("argv", [["ask", "x", "--budget", "0"], ["serve", "--answerer", "replay", "--port", "0"]])
def test_what_is_wrong_from_the_start_is_said_before_an_index_is_opened(tmp_path, monkeypatch, said, argv):
    (tmp_path / "corpus" / "documents").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    err = said(*argv)[2]
    assert err.startswith(("The budget is 0;", "A recording answers nothing anew;"))


def test_clean_takes_what_lies_beside_the_index():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    taken = re.search(r"^clean:\n\trm -rf (.+)", makefile, re.MULTILINE)[1].split()
    from fnmatch import fnmatch

    for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite.files", "index.sqlite.lock", "index.sqlite.new-wal"):
        assert any(fnmatch(name, pattern) for pattern in taken), name
