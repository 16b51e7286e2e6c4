"""Does the service stay as it is? Many distinct questions over HTTP, eight at a time, with re-ingests in between.

The server is a process of its own: uvicorn, the whole path from search to checked citations, the extractive answerer,
the course's documents. Its models are word counts instead of neural networks, so that thousands of questions take
minutes: what is measured is our code, its caches and its connections. `--models` takes MiniLM and the reranker instead.
Between the questions one document is changed and ingested again, in the server's process.

Prints errors, and memory, objects, threads and open files of the server after the first tenth and at the end. Exit
code 1 for an error, more than 5 % more memory, or more threads or files.
"""

import argparse
import gc
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from desk import WordVectors

CORPUS = Path(__file__).parents[1] / "corpus"
AT_A_TIME = 8
KEPT = 256  # conversations and cached answers, as by default
CHANGED = "contact-and-hours.md"


class WordReranker:
    """Ten times the share of the question's words in the text, less five."""

    name, languages = "word-reranker", ("en", "fr")

    def score(self, question, texts) -> np.ndarray:
        asked = set(re.findall(r"\w{4,}", question.casefold()))
        found = [len(asked.intersection(re.findall(r"\w{4,}", text.casefold()))) for text in texts]
        return np.array([10 * count / max(1, len(asked)) - 5 for count in found], dtype=np.float32)


# The server's process


def serve(home: Path, kept: int, models: bool) -> None:
    """Answers the commands `state` and `ingest` on standard input, one JSON line for each; ends with the input."""
    import psutil

    import labsupport.pipeline.extractive as extractive
    from labsupport.pipeline.chunking import StructureChunker
    from labsupport.pipeline.embedding import load_embedder
    from labsupport.pipeline.reranking import load_reranker
    from labsupport.pipeline.search import Retriever
    from labsupport.pipeline.store import Store
    from labsupport.pipeline.updates import ingest
    from labsupport.service.app import create_app
    from labsupport.service.assistant import Assistant
    from labsupport.service.limits import Limits
    from labsupport.service.remembering import RememberingReranker
    from labsupport.service.server import listener
    from labsupport.service.web_server import Server

    if models:
        embedder, reranker = load_embedder(), load_reranker()
    else:  # these have no tuned thresholds: answer whenever half of the words are there
        embedder, reranker = WordVectors(), WordReranker()
        extractive.thresholds = lambda name: extractive.Thresholds(0.0, 2.0, 0.5, 0.0)
    corpus, index = home / "corpus", home / "index.sqlite"
    chunker = StructureChunker(embedder.count_tokens)
    ingest(corpus, index, embedder, chunker)
    document = corpus / "documents" / CHANGED
    source = document.read_text(encoding="utf-8")
    process, socket = psutil.Process(), listener("127.0.0.1", 0)
    with Store(index) as store:
        retriever = Retriever(store, embedder, RememberingReranker(reranker))
        answerer = extractive.ExtractiveAnswerer(retriever.reranker, embedder)
        limits = Limits(per_minute=10**6, kept=kept)
        server = Server(create_app(Assistant(retriever, answerer, cached=kept), corpus, limits=limits))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        print(json.dumps({"port": socket.getsockname()[1]}), flush=True)
        for number, line in enumerate(sys.stdin):
            if line.strip() == "ingest":
                document.write_text(f"{source}\nNotice {number}: the desk has moved.\n", encoding="utf-8", newline="\n")
                told = {"report": ingest(corpus, index, embedder, chunker).line}
            else:
                gc.collect()
                told = {"megabytes": round(process.memory_info().rss / 2**20, 1), "objects": len(gc.get_objects()),
                        "threads": sum(not one.name.startswith("AnyIO") for one in threading.enumerate()),
                        "files": process.num_fds() if hasattr(process, "num_fds") else process.num_handles()}
            print(json.dumps(told), flush=True)
        server.should_exit = True
        thread.join()


# The clients


def texts(count: int) -> list[str]:
    """Distinct questions: those of the course, each time about another order."""
    from labsupport.pipeline.corpus import read_questions

    asked = [question.text for question in read_questions(CORPUS)]
    return [f"{asked[number % len(asked)]} (order {70_000 + number})" for number in range(count)]


def ask(client: httpx.Client, question: str) -> str:
    """Submit, read the stream to its end; gives what was wrong with it, if anything."""
    try:
        accepted = client.post("/conversations", json={"question": question, "as_of": "2026-10-09"})
        if accepted.status_code != 202:
            return f"{accepted.status_code} {accepted.text}"
        body = client.get(f"/conversations/{accepted.json()['conversation_id']}/stream").text
    except httpx.HTTPError as error:
        return repr(error)
    events = [block.split("\n") for block in body.split("\n\n") if block.startswith("id: ")]
    data = [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for _, name, data in events]
    said = "".join(content["text"] for name, content in data if name == "token")
    stored = [content["answer"] for name, content in data if name == "answer"]
    return "" if data and data[-1][0] == "done" and stored == [said] else body[-300:]


def run(questions: int, reingests: int, models: bool) -> dict:
    """Everything measured: `first` and `last` are the server's state after a tenth and at the end."""
    kept = min(KEPT, max(4 * AT_A_TIME, questions // 10))
    first = min(max(questions // 10, 2 * kept), questions // 2)  # by then what is bounded is full
    wanted, errors = texts(questions), []
    step = max(1, questions // reingests) if reingests else questions
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(CORPUS, Path(home) / "corpus", ignore=shutil.ignore_patterns("recordings", "evidence"))
        command = [sys.executable, __file__, "--serve", home, "--kept", str(kept), *(["--models"] if models else [])]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

        def tell(what: str) -> dict:
            server.stdin.write(what + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        address = f"http://127.0.0.1:{json.loads(server.stdout.readline())['port']}"
        started, states, ingested = time.monotonic(), {}, 0
        with ThreadPoolExecutor(AT_A_TIME) as pool, httpx.Client(base_url=address, timeout=120) as client:
            at = 0
            while at < questions:
                upto = min([end for end in (first, questions, (at // step + 1) * step) if end > at])
                errors += [wrong for wrong in pool.map(lambda text: ask(client, text), wanted[at:upto]) if wrong]
                at = upto
                if at % step == 0 and ingested < reingests:
                    assert tell("ingest")["report"].startswith("0 added, 1 updated")
                    ingested += 1
                if at in (first, questions):
                    states["first" if at == first else "last"] = tell("state")
        seconds = time.monotonic() - started
        server.stdin.close()
        server.wait(30)
        server.stdout.close()
    return {"questions": questions, "at_a_time": AT_A_TIME, "reingests": ingested, "errors": len(errors),
            "first_error": errors[:1], "seconds": round(seconds, 1), "measured_first_after": first, **states,
            "memory_ratio": round(states["last"]["megabytes"] / states["first"]["megabytes"], 3),
            "models": "MiniLM and the reranker" if models else "word counts, no neural network"}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--questions", type=int, default=10_000)
    options.add_argument("--reingests", type=int, default=100)
    options.add_argument("--models", action="store_true", help="MiniLM and the reranker: about a second a question")
    options.add_argument("--json", action="store_true")
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--kept", type=int, default=KEPT, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.serve:
        return serve(asked.serve, asked.kept, asked.models)
    found = run(asked.questions, asked.reingests, asked.models)
    first, last = found["first"], found["last"]
    if asked.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['questions']} distinct questions, {AT_A_TIME} at a time, {found['reingests']} re-ingests; "
              f"models: {found['models']}: {found['errors']} errors, {found['seconds']:g} s")
        for when, state in ((f"after {found['measured_first_after']}", first), ("at the end", last)):
            print(f"{when:>14}: {state['megabytes']} MB, {state['objects']} objects, {state['threads']} threads, "
                  f"{state['files']} files")
        print(f"memory at the end / then: {found['memory_ratio']}")
        print(*found["first_error"], sep="\n", end="")
    grown = last["threads"] > first["threads"] or last["files"] > first["files"]
    sys.exit(1 if found["errors"] or found["memory_ratio"] > 1.05 or grown else 0)


if __name__ == "__main__":
    main()
