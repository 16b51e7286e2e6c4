"""A cross-encoder reads question and passage together and says how well the one answers the other.

The default is ms-marco-MiniLM-L-12-v2 in int8, trained on English. Its scores are logits: about +9 for a passage that
answers, below 0 for one that does not. It quantises each batch as a whole, so a pair's score would shift with the
other pairs of the batch: every pair is scored on its own, and a score depends on nothing but the pair.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

from labsupport.pipeline import LabError
from labsupport.pipeline.weights import RERANKER_EN, TORCH, CannotLoad, verify

if TYPE_CHECKING:
    import numpy as np

DEFAULT_RERANKER = RERANKER_EN.name
MAX_TOKENS = 512  # of a pair
QUESTION_TOKENS = 64  # of a question: twenty pairs of 512 tokens would take seconds


class Reranker(Protocol):
    name: str
    languages: tuple[str, ...]  # languages it was trained on; others keep their first-stage order
    # A reranker may have `fit(question) -> (text, cut)`, if it reads long questions in part only.

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray: ...


def load_reranker(name: str = DEFAULT_RERANKER, languages: Sequence[str] = ("en",)) -> Reranker:
    """The reranker called `name`; its weights load with the first pair scored, once per process.

    Any name but the default is given to sentence-transformers as a CrossEncoder; `languages` says what it reads
    (for a multilingual one: ("en", "fr")).
    """
    return _load(str(name), tuple(languages))


@lru_cache(maxsize=2)
def _load(name: str, languages: tuple[str, ...]) -> Reranker:
    return OnnxReranker() if name == RERANKER_EN.name else NamedCrossEncoder(name, languages)


class OnnxReranker:
    name = RERANKER_EN.name
    languages = ("en",)

    def __init__(self) -> None:
        self._loading = threading.Lock()

    def fit(self, question: str) -> tuple[str, bool]:
        """The beginning of `question` that is read, and whether anything was cut."""
        with self._loading:
            _, tokenizer = self._model
        ends = [end for _, end in tokenizer.encode(question, add_special_tokens=False).offsets]
        return (question[: ends[QUESTION_TOKENS - 1]], True) if len(ends) > QUESTION_TOKENS else (question, False)

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """One logit per text: float32, shape (n,), in the order given.

        A pair over 512 tokens is cut, from the longer of the two; a chunk and a question that fits stay below.
        """
        import numpy as np

        with self._loading:
            session, tokenizer = self._model

        def one(text: str) -> float:
            pair = tokenizer.encode(question, text)
            feed = {
                "input_ids": np.array([pair.ids], dtype=np.int64),
                "attention_mask": np.array([pair.attention_mask], dtype=np.int64),
                "token_type_ids": np.array([pair.type_ids], dtype=np.int64),
            }
            return session.run(None, feed)[0].item()

        with ThreadPoolExecutor(min(2, os.cpu_count() or 1), thread_name_prefix="rerank") as pool:
            return np.fromiter(pool.map(one, texts), dtype=np.float32, count=len(texts))

    @cached_property
    def _model(self):
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except (ImportError, OSError) as error:
            raise CannotLoad("onnxruntime", "onnxruntime tokenizers", error) from error
        folder = verify(RERANKER_EN)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # two pairs at a time keep two cores busy
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return session, tokenizer


class NamedCrossEncoder:
    """Any CrossEncoder of sentence-transformers, by hub name or folder."""

    def __init__(self, name: str, languages: tuple[str, ...]) -> None:
        self.name, self.languages = name, languages
        self._loading = threading.Lock()

    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        import numpy as np

        with self._loading:
            model = self._model
        pairs = [(question, text) for text in texts]
        # One pair a batch, for the same reason as above: padding would change the last bits.
        return np.asarray(model.predict(pairs, batch_size=1, show_progress_bar=False), dtype=np.float32).reshape(-1)

    @cached_property
    def _model(self):
        try:
            from sentence_transformers import CrossEncoder
        except (ImportError, OSError) as error:
            raise CannotLoad("torch", TORCH, error) from error
        try:
            return CrossEncoder(self.name, device="cpu")
        except Exception as error:  # the hub client raises a dozen kinds: no such model, no network, no space
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise LabError(
                f"The reranker {self.name!r} cannot be loaded ({reason[:200]}); use {RERANKER_EN.name}, "
                "the name of a CrossEncoder, or the folder of one."
            ) from error
