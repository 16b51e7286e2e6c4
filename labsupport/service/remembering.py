"""A reranker that reads a passage once for a question.

Search rates the passages, and the extractive answerer rates the best of them again beside their sentences. Remembering
the scores brings the first word of an answer forward, and changes none: a pair always gets the same score.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labsupport.pipeline.reranking import Reranker

if TYPE_CHECKING:
    import numpy as np

PAIRS = 256  # remembered; a question rates about 20 passages


class RememberingReranker:
    """Passes on to `reranker` what it has not just scored. Threads may share it."""

    def __init__(self, reranker: Reranker, pairs: int = PAIRS):
        self.name, self.languages, self.pairs = reranker.name, reranker.languages, pairs
        self._reranker = reranker
        if hasattr(reranker, "fit"):
            self.fit = reranker.fit
        self._scores: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._guard = threading.Lock()

    @property
    def remembered(self) -> int:
        return len(self._scores)

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """One logit per text: float32, shape (n,), in the order given."""
        import numpy as np

        with self._guard:
            known = {text: self._scores[question, text] for text in texts if (question, text) in self._scores}
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            known |= zip(new, self._reranker.score(question, new).tolist(), strict=True)
        with self._guard:
            self._scores |= {(question, text): known[text] for text in new}
            while len(self._scores) > self.pairs:
                self._scores.popitem(last=False)
        return np.fromiter((known[text] for text in texts), dtype=np.float32, count=len(texts))
