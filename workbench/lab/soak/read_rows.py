"""The rows of a numbered stream that have been read, in any order and by any thread."""

from __future__ import annotations

from collections import deque

import numpy as np

from workbench.elements import Int64s


class ReadRows:
    """The numbers of the rows read; written by several threads, queried by one.

    A recovery reads rows again, so the recorded runs overlap. They are merged on a query; until then each takes a
    hundred bytes, and a job reads hundreds per second.
    """

    def __init__(self) -> None:
        self._fresh: deque[tuple[int, int]] = deque()
        self._runs: Int64s = np.empty((0, 2), np.int64)

    def add(self, first: int, count: int) -> None:
        """Rows [first, first + count) are read; callable from any thread."""
        self._fresh.append((first, first + count))

    def runs(self) -> Int64s:
        """Shape (k, 2): begins and ends of the runs of rows, in order and disjoint; few, because readers stay close
        together."""
        fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
        if fresh:
            runs = np.concatenate([self._runs, np.array(fresh, np.int64)])
            runs = runs[np.argsort(runs[:, 0], kind="stable")]
            reached = np.maximum.accumulate(runs[:, 1])
            first = np.ones(len(runs), np.bool_)
            first[1:] = runs[1:, 0] > reached[:-1]
            self._runs = np.stack([runs[first, 0], reached[np.roll(first, -1)]], axis=1)
        return self._runs

    @property
    def count(self) -> int:
        """The number of these rows."""
        runs = self.runs()
        return int((runs[:, 1] - runs[:, 0]).sum())

    @property
    def unbroken(self) -> int:
        """The first row that was not read."""
        runs = self.runs()
        return int(runs[0, 1]) if len(runs) and runs[0, 0] == 0 else 0

    @property
    def furthest(self) -> int:
        """The row after the last one that was read."""
        runs = self.runs()
        return int(runs[-1, 1]) if len(runs) else 0
