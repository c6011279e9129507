"""Which groups a batch touches: their codes, and the row that touched each of them last."""

from __future__ import annotations

import numpy as np

from workbench.compiled import distinct_codes, warm_up
from workbench.elements import Int64s


class TouchedGroups:
    """Finds the groups of one batch after another.

    Example:
        >>> touched = TouchedGroups()
        >>> codes, of_rows = touched.of(np.array([4, 0, 4]), 5)
        >>> codes, of_rows, touched.last_rows(of_rows, 2)
        (array([4, 0]), array([0, 1, 0]), array([2, 1]))
    """

    __slots__ = ("_places", "_seen", "_stamp")

    def __init__(self) -> None:
        warm_up(distinct_codes)
        self._seen: Int64s = np.empty(0, np.int64)
        self._places: Int64s = np.empty(0, np.int64)
        self._stamp = 0

    def of(self, codes: Int64s, groups: int) -> tuple[Int64s, Int64s]:
        """The distinct codes in the order of their first rows, and for each row the place of its code among them.

        Args:
            codes: shape (n,), from 0 to groups - 1.
            groups: the number of codes.
        """
        held = len(self._seen)
        if groups > held:
            more = max(groups, 2 * held) - held
            self._seen = np.concatenate([self._seen, np.zeros(more, np.int64)])
            self._places = np.concatenate([self._places, np.empty(more, np.int64)])
        self._stamp += 1
        found = np.empty(len(codes), np.int64)
        found = found[: distinct_codes(codes, self._seen, self._stamp, found)]
        self._places[found] = np.arange(len(found))
        return found, self._places[codes]

    @staticmethod
    def last_rows(of_rows: Int64s, groups: int) -> Int64s:
        """Shape (groups,): the last row of each place."""
        rows = np.empty(groups, np.int64)
        rows[of_rows] = np.arange(len(of_rows))
        return rows
