"""Numbers for the texts that conditions compare: codes, which are equal for equal texts, and ranks, which have the
order of the texts."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.operators.matching.text_order import TextOrder
from workbench.state.key_index import KeyIndex

_TEXT = "text"
_FEW = 1_024  # fewer texts are not worth packing


class TextCodes:
    """The codes of texts: codes of constants are permanent, codes of texts in rows are dropped with their rows.

    Example:
        >>> texts = TextCodes()
        >>> texts.constant("x"), texts.codes(pa.array(["y", "x", "y"]))
        (0, array([1, 0, 1]))
        >>> texts.codes(pa.array(["w"])), texts.ranks().argsort()
        (array([2]), array([2, 0, 1]))
    """

    def __init__(self) -> None:
        self._constants = 0
        self._order: TextOrder | None = None

    @cached_property
    def _index(self) -> KeyIndex:
        return KeyIndex([_TEXT], pa.schema([pa.field(_TEXT, pa.string())]))  # late: arrays import pandas

    def constant(self, text: str | None) -> int:
        """The code of a constant; all constants come before the first rows."""
        code = int(self.codes(pa.array([text], pa.string()))[0])
        self._constants = len(self._index)
        return code

    def codes(self, texts: pa.Array) -> Int64s:
        """Shape (n,): the code of each text."""
        return self._index.codes(pa.RecordBatch.from_arrays([texts.cast(pa.string())], [_TEXT]))

    def ranks(self) -> Int64s:
        """Shape (texts,): a number for each text, by its code; the numbers have the order of the texts."""
        order, count = self._order, len(self._index)
        if order is None or (len(order) < count and not order.add(self._texts(len(order), count))):
            order = self._order = TextOrder(self._texts(0, count))
        return order.numbers

    def _texts(self, begin: int, end: int) -> pa.Array:
        return self._index.keys_table(np.arange(begin, end))[_TEXT]

    def packed(self, codes: Int64s) -> Int64s:
        """The new codes of all texts of the remaining rows; other texts may be forgotten.

        Args:
            codes: of any shape.
        """
        if len(self._index) <= _FEW + 2 * codes.size:
            return codes
        used = np.unique(codes)
        kept = np.concatenate([np.arange(self._constants), used[used >= self._constants]])
        self._order = None
        mapping: Int64s = self._index.retain(kept)[codes]
        return mapping
