"""The stored vectors in memory: one matrix, searched exactly.

For a few thousand chunks, comparing the question with every vector takes a millisecond and cannot miss a neighbour,
which approximate indexes can.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

import numpy as np

MASKS = 16  # filters remembered at a time


class Matrix:
    """Vectors of the chunks `ids` (int64, rising), float32, shape (chunks, dimensions), as of one generation."""

    def __init__(self, ids: Sequence[int], vectors: np.ndarray, generation: Hashable):
        self.ids = np.asarray(ids, dtype=np.int64)
        self.vectors = vectors
        self.generation = generation
        self._masks: OrderedDict[Hashable, np.ndarray] = OrderedDict()

    def mask(self, key: Hashable, allowed: Callable[[], Sequence[int]]) -> np.ndarray:
        """Which rows the filters `key` let through; `allowed` gives their ids and is asked once."""
        if key not in self._masks:
            self._masks[key] = np.isin(self.ids, np.asarray(allowed(), dtype=np.int64))
            while len(self._masks) > MASKS:
                self._masks.popitem(last=False)
        self._masks.move_to_end(key)
        return self._masks[key]

    def nearest(self, vector: np.ndarray, mask: np.ndarray, limit: int) -> list[tuple[int, float]]:
        """The `limit` nearest rows of `mask` as (id, cosine), equal cosines by id.

        Cosines are rounded to six digits: the same text at two rows of the matrix may differ in the last bit, and
        what is equal must compare as equal.
        """
        rows = np.flatnonzero(mask)
        if limit < 1 or not len(rows):
            return []
        cosines = np.round((self.vectors @ vector)[rows].astype(np.float64), 6)
        if limit < len(rows):  # all ties at the cut stay in until they are sorted by id
            cut = np.partition(cosines, len(rows) - limit)[len(rows) - limit]
            keep = cosines >= cut
            rows, cosines = rows[keep], cosines[keep]
        order = np.lexsort((self.ids[rows], -cosines))[:limit]
        return [(int(self.ids[rows[at]]), float(cosines[at])) for at in order]
