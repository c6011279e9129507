"""Numbers that have the order of texts, with gaps for texts that are added later."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s

_GAP = 1 << 32
_PART = 64  # sorting this many texts takes as long as inserting one


class TextOrder:
    """The order of some texts; null has the place of the empty text.

    Args:
        texts: all texts.

    Attributes:
        numbers: shape (n,), the number of each text, lower for texts that come earlier in the order.

    Example:
        >>> order = TextOrder(pa.array([f"a{at}" for at in range(100, 200)]))
        >>> order.add(pa.array(["a150b"]))
        True
        >>> bool(order.numbers[50] < order.numbers[100] < order.numbers[51])
        True
    """

    __slots__ = ("_places", "_sorted", "_texts", "numbers")

    def __init__(self, texts: pa.Array) -> None:
        self._texts: pa.Array | None = texts.fill_null("")
        self.numbers: Int64s = pc.rank(self._texts, tiebreaker="dense").to_numpy().astype(np.int64) * _GAP
        self._sorted: list[str] = []
        self._places: list[int] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, texts: pa.Array) -> bool:
        """Insert more texts into the order; return False if sorting all again is faster, or a gap is too small."""
        if _PART * len(texts) > len(self):
            return False
        if self._texts is not None:
            order = np.argsort(self.numbers)
            self._sorted, self._places = self._texts.take(order).to_pylist(), self.numbers[order].tolist()
            self._texts = None
        added = []
        for text in texts.fill_null("").to_pylist():
            at = bisect_left(self._sorted, text)
            behind = self._places[at] if at < len(self._places) else self._places[-1] + 2 * _GAP
            before = self._places[at - 1] if at else self._places[0] - 2 * _GAP
            number = (before + behind) // 2
            if number == before:
                return False
            self._sorted.insert(at, text)
            self._places.insert(at, number)
            added.append(number)
        self.numbers = np.concatenate([self.numbers, np.array(added, np.int64)])
        return True
