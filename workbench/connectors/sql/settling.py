"""Which rows of a growing table can be read without skipping a row that is committed later.

A transaction draws its key before it commits, so a row can become visible below rows that are visible already. Keys are
unique whole numbers: such a row lands in a gap between the keys of other rows. Rows that follow one another without a
gap are read at once; rows after a gap wait until a key as large as theirs has been visible for some time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from workbench.elements import Int64s

LEAST, MOST = -(2**63), 2**63 - 1
GAPS_MAX = 500
"""The number of gaps whose keys are looked for again: the last ones."""
_MARKS = 16


class Settling:
    """The position in a table, and the keys that are possibly drawn and not visible yet.

    Args:
        settle_us: how long the rows after a gap wait; 0: not at all.
        last: the position: the last key that was read; None: none.

    Attributes:
        last: as above.
        lowest: the key that the table's own sequence draws first; None: unknown.

    Example:
        >>> settling = Settling(1_000_000, last=4)
        >>> keys = np.array([5, 6, 8])
        >>> settling.saw(8, now_us=0)
        >>> settling.ready(keys, now_us=10), settling.ready(keys, now_us=1_000_000)
        (2, 3)
    """

    def __init__(self, settle_us: int, last: int | None) -> None:
        self._settle_us = settle_us
        self.last = last
        self.lowest: int | None = None
        self._settled = LEAST if settle_us else MOST
        self._marks: deque[tuple[int, int]] = deque()
        self._gaps: deque[tuple[int, int]] = deque(maxlen=GAPS_MAX)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The first and the last key of each of the last gaps that were passed, in ascending order."""
        return list(self._gaps)

    def restore(self, last: int | None, gaps: Sequence[tuple[int, int]]) -> None:
        """Continue behind `last`; what was visible, and since when, is not known any longer.

        Raises:
            ValueError: a value that is not a key.
        """
        keys = [key for gap in gaps for key in gap] + ([] if last is None else [last])
        if len(gaps) > GAPS_MAX or any(not LEAST <= key <= MOST for key in keys):
            raise ValueError("a position is not a whole number of 64 bits, or there are too many gaps")
        self.last = last
        self._gaps = deque(gaps, maxlen=GAPS_MAX)

    def wants_mark(self, now_us: int) -> bool:
        """Whether `saw` should be called, because rows wait."""
        return not self._marks or now_us - self._marks[-1][0] >= self._settle_us // _MARKS

    def saw(self, greatest: int, now_us: int) -> None:
        """Note the greatest key that is visible.

        Args:
            greatest: the key.
            now_us: processing time, after it was seen.
        """
        self._marks.append((now_us, greatest))

    def due_us(self) -> int | None:
        """The time when more rows are ready; None: unknown."""
        return self._marks[0][0] + self._settle_us if self._marks else None

    def ready(self, keys: Int64s, now_us: int) -> int:
        """How many of the next rows can be read.

        Args:
            keys: of the next rows, ascending.
            now_us: processing time.
        """
        while self._marks and self._marks[0][0] + self._settle_us <= now_us:
            self._settled = max(self._settled, self._marks.popleft()[1])
        if self._settled == MOST or not len(keys):
            return len(keys)
        waits = self._follows_a_gap(keys) & (keys > self._settled)
        return int(waits.argmax()) if waits.any() else len(keys)

    def passed(self, keys: Int64s) -> None:
        """Move the position behind these rows.

        Args:
            keys: of the rows, ascending.
        """
        if not len(keys):
            return
        at = np.flatnonzero(self._follows_a_gap(keys, drawn=False))[-GAPS_MAX:]
        for index in at.tolist():
            below = (LEAST - 1 if self.last is None else self.last) if index == 0 else int(keys[index - 1])
            self._gaps.append((below + 1, int(keys[index]) - 1))
        self.last = int(keys[-1])

    def _follows_a_gap(self, keys: Int64s, *, drawn: bool = True) -> np.ndarray:
        """By row: whether keys between it and the row before it can be visible later.

        Args:
            keys: of the rows, ascending.
            drawn: whether all keys are from the table's own sequence.
        """
        follows = np.empty(len(keys), bool)
        follows[1:] = keys[1:] - 1 != keys[:-1]
        first = int(keys[0])
        if self.last is None:
            follows[0] = first > LEAST and not (drawn and first == self.lowest)
        else:
            follows[0] = first - 1 != self.last
        return follows
