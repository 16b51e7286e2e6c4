"""Models that read nothing twice, so that the first word of an answer comes sooner.

Search rates the passages, and the extractive answerer asks for the ratings of the best of them again, beside those of
their sentences. What the reranker cannot read is embedded; the index holds the vectors of passages already, and the
sentences of a page that was asked about once are asked about again. No answer changes: a text always gets the same
vector, and a pair the same score.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labsupport.pipeline.embedding import Embedder
from labsupport.pipeline.index import Index
from labsupport.pipeline.reranking import Reranker
from labsupport.pipeline.rows import text_hash

if TYPE_CHECKING:
    import numpy as np

PAIRS = 256  # remembered; a question rates about 20 passages
TEXTS = 512  # vectors remembered, 1.5 KB each; a page has about 20 sentences


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


class RememberingEmbedder:
    """`embedder` for texts that may stand in `index`, which was built with it. Threads may share it."""

    def __init__(self, embedder: Embedder, index: Index, texts: int = TEXTS):
        self.texts = texts
        self._embedder, self._index = embedder, index
        self._vectors: OrderedDict[str, np.ndarray] = OrderedDict()  # by hash: no text outlives its deletion in here
        self._guard = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    @property
    def remembered(self) -> int:
        return len(self._vectors)

    def embed(self, texts: Sequence[str], *, query: bool = False, **more: Any) -> np.ndarray:
        """As the embedder's own, to the last bit."""
        if query or not texts:
            return self._embedder.embed(texts, query=query, **more)  # questions it remembers itself
        import numpy as np

        hashes = [text_hash(text) for text in texts]
        with self._guard:
            known = {one: self._vectors[one] for one in hashes if one in self._vectors}
        known |= self._index.vectors_of_texts([one for one in hashes if one not in known])
        new = {one: text for one, text in zip(hashes, texts, strict=True) if one not in known}
        if new:
            known |= zip(new, self._embedder.embed(list(new.values()), **more), strict=True)
            with self._guard:
                self._vectors |= {one: known[one] for one in new}
                while len(self._vectors) > self.texts:
                    self._vectors.popitem(last=False)
        return np.vstack([known[one] for one in hashes])
