"""Choose the extractive answerer's thresholds on the questions marked "tune", and say what they give.

    python benchmarks/tune_extractive.py [--corpus corpus] [--index index.sqlite] [--write]

Two sets are chosen: one for what the reranker reads, one for what is left to the embedding model. Every combination of
a small grid is tried; the one with the most right answers and right abstentions wins, then the one with the fewest
sentences, """

from __future__ import annotations

import argparse
import itertools
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import labsupport.pipeline.extractive as extractive
from labsupport.pipeline.answering import Answer, Claim
from labsupport.pipeline.ask import find
from labsupport.pipeline.corpus import read_questions
from labsupport.pipeline.extractive import ExtractiveAnswerer, thresholds
from labsupport.pipeline.index import Filters
from labsupport.pipeline.rating import Unread
from labsupport.pipeline.scoring import verdict
from labsupport.pipeline.search import Retriever
from labsupport.pipeline.store import Store

GRID = {
    "passage_weight": (0.0, 0.5, 1.0),
    "rule_bonus": {"rerank": (0.0, 0.5, 1.0, 2.0), "embed": (0.0,)},
    "also_within": {"rerank": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), "embed": (0.0, 0.02, 0.04, 0.06, 0.1)},
}


class Quick(ExtractiveAnswerer):
    """Rates all sentences, and the same ones for the same question and weights only once."""

    def __init__(self, *models):
        super().__init__(*models)
        self.rated = {}

    def unread(self, query, wanted, by_embedding=False):
        limits = extractive.thresholds(self.embedder.name if by_embedding else self.reranker.name)
        chunks = tuple(dict.fromkeys(one.chunk.chunk_id for one in wanted))
        key = query.text, chunks, by_embedding, limits.passage_weight, limits.rule_bonus
        if key not in self.rated:
            self.rated[key] = list(all_read(super().unread(query, wanted, by_embedding)))
        return self.rated[key]


def all_read(candidates):
    for one in candidates:
        yield from all_read(one.read()) if isinstance(one, Unread) else [one]


class Remembered:
    """A model that is asked once for each pair, so that the grid costs no more than one run."""

    def __init__(self, model):
        self.model, self.name, self.known = model, model.name, {}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, question, texts):
        new = [text for text in texts if (question, text) not in self.known]
        if new:
            scores = map(float, self.model.score(question, new))
            self.known |= dict(zip([(question, text) for text in new], scores, strict=True))
        return [self.known[question, text] for text in texts]

    def embed(self, texts, query=False, **_):
        import numpy as np

        new = [text for text in texts if (query, text) not in self.known]
        if new:
            self.known |= dict(zip([(query, text) for text in new], self.model.embed(new, query=query), strict=True))
        return np.vstack([self.known[query, text] for text in texts])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--corpus", type=Path, default=Path("corpus"))
    options.add_argument("--index", type=Path, default=Path("index.sqlite"))
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    questions = [question for question in read_questions(given.corpus) if question.split == "tune"]
    with Store(given.index) as store:
        retriever = Retriever(store)
        asked = []
        for question in questions:
            for method in ("rerank", "bm25"):
                found = find(question.text, retriever, method=method, history=question.history,
                             filters=Filters(question.as_of, question.audience))
                asked.append((question, found.self_contained, found.context))
        answerer = Quick(Remembered(retriever.reranker), Remembered(retriever.embedder))
        tune(answerer, asked, given.write)


def tune(answerer, asked, write) -> None:
    path = Path(extractive.__file__).with_name("extractive.json")
    chosen = {answerer.reranker.name: None, answerer.embedder.name: None}
    current = {name: thresholds(name) for name in chosen}
    extractive.thresholds = lambda name: current[name]
    # Read and cut once, not for every combination.
    extractive.rewrite, extractive.sentences = cache(extractive.rewrite), cache(extractive.sentences)
    judged = cache(verdict)
    for kind, name in (("rerank", answerer.reranker.name), ("embed", answerer.embedder.name)):
        results = []
        for weight, bonus, within in itertools.product(
            GRID["passage_weight"], GRID["rule_bonus"][kind], GRID["also_within"][kind]
        ):
            for floor in floors(kind):
                current[name] = replace(current[name], abstain_below=floor, also_within=within, passage_weight=weight,
                                        rule_bonus=bonus)
                results.append((*run(answerer, asked, judged), current[name]))
        best = max(result[:3] for result in results)
        ties = [result[3] for result in results if result[:3] == best]
        middle = sorted(ties, key=lambda t: (t.passage_weight, t.rule_bonus, t.also_within, t.abstain_below))
        middle = middle[len(middle) // 2]
        print(f"{name}: {best[1]} of {len(asked)} right, {-best[2]} sentences, {len(ties)} combinations alike")
        measured = (f"{best[1]} of {len(asked)} answers right or rightly withheld on the 'tune' questions "
                    "(rerank and bm25), benchmarks/tune_extractive.py")
        current[name] = chosen[name] = replace(middle, measured=measured)
    for name, limits in chosen.items():
        print(name, limits)
    for question, text, context in asked:
        outcome, missing = verdict(answer_of(answerer, text, context), question)
        if outcome in ("wrong", "abstained wrongly"):
            print(f"  {question.qid} {outcome} {missing or ''}")
    if write:
        known = json.loads(path.read_text(encoding="utf-8"))
        known |= {name: {key: value for key, value in vars(limits).items() if value not in ("", math.inf)}
                  for name, limits in chosen.items()}
        path.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def floors(kind):
    return [at / 2 for at in range(-4, 11)] if kind == "rerank" else [at / 20 for at in range(8, 18)]


def answer_of(answerer, text, context) -> Answer:
    rated, _ = answerer.select(text, context)
    claims = tuple(Claim(one.sentence.text, (one.sentence.chunk.chunk_id,)) for one in rated)
    return Answer(bool(rated), " ".join(one.sentence.readable for one in rated), claims)


def run(answerer, asked, judged) -> tuple[int, int, int]:
    """Twice the right answers and right abstentions less the wrong answers; the former alone; sentences, negative."""
    right = wrong = length = 0
    for question, text, context in asked:
        answer = answer_of(answerer, text, context)
        outcome = judged(answer, question)[0]
        right += outcome in ("right", "abstained rightly")
        wrong += outcome == "wrong"
        length += len(answer.claims)
    return 2 * right - wrong, right, -length


if __name__ == "__main__":
    main()
