"""An embedding model in ten lines, for tests of what is done with vectors, not of the vectors."""

import hashlib

import numpy as np


class FakeEmbedder:
    """Adds up one random direction for each word: texts that share words lie near each other. Notes what it embeds."""

    name, dimensions, max_tokens = "fake", 16, 512

    def __init__(self, fingerprint="fake:1"):
        self.fingerprint = fingerprint
        self.embedded = []

    def count_tokens(self, text):
        return len(text.split()) + 2

    def embed(self, texts, *, query=False, progress=None):
        self.embedded += texts
        rows = np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(len(texts), self.dimensions)
        if progress:
            progress(len(texts), len(texts))
        return rows

    def _vector(self, text):
        total = np.zeros(self.dimensions, dtype=np.float32)
        for word in text.lower().split():
            total += np.frombuffer(hashlib.sha256(word.encode()).digest(), dtype=np.uint16).astype(np.float32) - 32768
        length = np.linalg.norm(total)
        return total / length if length else np.eye(1, self.dimensions, dtype=np.float32)[0]
