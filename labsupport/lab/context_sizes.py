"""How much the questions of the corpus send: a table row for each way of searching.

All four methods could be measured in the notebook, but the reranker needs about a minute for all questions. So what the
lab's default method gives was measured once, by benchmarks/context_sizes.py, and is kept in context_sizes.json with the
hash of the documents and questions it belongs to.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from labsupport.lab.soundness import document_hashes
from labsupport.pipeline.costs import Measured

FILE = Path(__file__).with_name("context_sizes.json")
METHOD = "rerank"


def size_row(method: str, measured: Measured) -> dict[str, str | int | float]:
    """One row: median and maximum of the estimated tokens, and how many questions lost a passage to each rule."""
    return {
        "method": method, "passages found": measured.k, "questions": len(measured.tokens),
        "median tokens": measured.median, "most tokens": measured.maximum,
        "lose a near-duplicate": len(measured.lost_near_duplicate),
        "lose one to the budget": len(measured.lost_to_budget),
    }


def reranked_sizes(corpus: Path, file: Path = FILE) -> list[Measured]:
    """What was measured with the default method, for the best 5 and the best 10. [] if it was for other documents."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    return [_measured(**one) for one in kept["measured"]] if kept["corpus"] == corpus_hash(corpus) else []


def _measured(k: int, tokens: dict, lost_near_duplicate: list, lost_to_budget: list) -> Measured:
    return Measured(k, tokens, tuple(lost_near_duplicate), tuple(lost_to_budget))


def as_json(corpus: Path, measured: list[Measured]) -> str:
    """The content of context_sizes.json. Tokens by question id."""
    rows = [
        {"k": one.k, "tokens": one.tokens, "lost_near_duplicate": one.lost_near_duplicate,
         "lost_to_budget": one.lost_to_budget}
        for one in measured
    ]
    about = "Estimated tokens of each question's context, measured by benchmarks/context_sizes.py; a test repeats some."
    return json.dumps({"about": about, "method": METHOD, "corpus": corpus_hash(corpus), "measured": rows}) + "\n"


def corpus_hash(corpus: Path) -> str:
    """SHA-256 over the documents and questions, line ends aside: Git on Windows may have changed those."""
    questions = (corpus / "questions.csv").read_bytes().replace(b"\r\n", b"\n")
    texts = {path: (corpus / path).read_bytes().replace(b"\r\n", b"\n") for path in sorted(document_hashes(corpus))}
    digest = hashlib.sha256(questions)
    for path, text in texts.items():
        digest.update(f"\n{path}\n".encode() + text)
    return digest.hexdigest()
