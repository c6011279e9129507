"""Random ids of 64 bits, the same ones for the same seed."""

from __future__ import annotations

import zlib

import numpy as np

from workbench.compiled import hash_ints, warm_up
from workbench.elements import Int64s

_BLOCK = 4_096


class Ids:
    """Ids for one task: SplitMix64 over numbers that no other task of the job uses, so no two ids are equal.

    Args:
        seed: of the job.
        task: its name.
        attempt: of the job; each has other ids.

    Example:
        >>> ids = Ids(1, "filter[0]", 0)
        >>> len(np.unique(ids.take(10_000))), ids.one() != ids.one()
        (10000, True)
    """

    __slots__ = ("_at", "_block", "_next")

    def __init__(self, seed: int, task: str, attempt: int) -> None:
        warm_up(hash_ints)
        self._next = (seed + (zlib.crc32(f"ids {task} {attempt}".encode()) << 30)) % 2**62
        self._block = np.empty(0, np.int64)
        self._at = 0

    def take(self, count: int) -> Int64s:
        """The next ids, shape (count,); the array must not be changed."""
        if self._at + count > len(self._block):
            self._block, self._at = self._draw(max(_BLOCK, count)), 0
        begin, self._at = self._at, self._at + count
        return self._block[begin : self._at]

    def one(self) -> int:
        """The next id."""
        return int(self.take(1)[0])

    def _draw(self, count: int) -> Int64s:
        numbers = np.empty(count, np.uint64)
        hash_ints(np.arange(self._next, self._next + count, dtype=np.int64), numbers)
        self._next += count
        drawn = numbers.view(np.int64)
        drawn[drawn == 0] = 1  # 0 means a record without a tree
        return drawn
