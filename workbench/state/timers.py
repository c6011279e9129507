"""Timers of keys, ordered by time: each (key, time) at most once."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from workbench.durations import MAX_TIME
from workbench.elements import Int64s


class Timers:
    """Timers as (time, code of the key).

    Example:
        >>> timers = Timers()
        >>> timers.add(20, 0); timers.add(10, 1); timers.add(20, 0)
        >>> timers.pop(15), timers.pop(15), len(timers)
        ((10, 1), None, 1)
    """

    __slots__ = ("_heap", "_set")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []  # may contain removed timers, and these twice
        self._set: set[tuple[int, int]] = set()

    def __len__(self) -> int:
        return len(self._set)

    def add(self, time_us: int, code: int) -> None:
        """Set a timer, unless it is set."""
        timer = (time_us, code)
        if timer not in self._set:
            self._set.add(timer)
            heappush(self._heap, timer)

    def remove(self, time_us: int, code: int) -> None:
        """Remove a timer, if it is set."""
        self._set.discard((time_us, code))

    @property
    def next_us(self) -> int:
        """The earliest time, MAX_TIME without timers. It may belong to a timer that was removed."""
        while self._heap and self._heap[0] not in self._set:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else MAX_TIME

    def pop(self, until_us: int) -> tuple[int, int] | None:
        """Take the earliest timer at or before `until_us`; of equal times that with the lowest code."""
        while self._heap and self._heap[0][0] <= until_us:
            timer = heappop(self._heap)
            if timer in self._set:
                self._set.remove(timer)
                return timer
        return None

    def arrays(self) -> tuple[Int64s, Int64s]:
        """Times and codes of all timers, in order."""
        both = np.array(sorted(self._set), np.int64).reshape(-1, 2)
        return both[:, 0].copy(), both[:, 1].copy()

    def recode(self, mapping: Int64s) -> None:
        """Replace the codes of keys by ``mapping[code]``."""
        times, codes = self.arrays()
        self._set = set(zip(times.tolist(), mapping[codes].tolist(), strict=True))
        self._heap = list(self._set)
        heapify(self._heap)
