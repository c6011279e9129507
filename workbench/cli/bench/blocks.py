"""The inputs: blocks of a million events that a source repeats from the first row on.

So the exact answer for any number of emitted events follows from the block: how often each of its rows was emitted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s

BLOCK = 1_000_000
SEED = 7
WIDTH = 100
CHUNK_MAX = 65_536
"""No source asks for more rows at once; the block is continued by so many, so that every chunk is one slice."""


class Emitted:
    """Which rows of the block were emitted, and how often."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, first: int, count: int) -> None:
        """Rows [first, first + count) of the continued block were emitted; called by several threads."""
        self._ranges.append((first, count))

    @property
    def events(self) -> int:
        """How many events that were."""
        return sum(count for _, count in self._ranges.copy())

    def times(self) -> Int64s:
        """Shape (BLOCK,): how often each row was emitted."""
        starts = np.array(self._ranges, dtype=np.int64).reshape(-1, 2)
        steps = np.zeros(BLOCK + CHUNK_MAX + 1, dtype=np.int64)
        np.add.at(steps, starts[:, 0], 1)
        np.add.at(steps, starts.sum(axis=1), -1)
        times = np.cumsum(steps)[:-1]
        times[:CHUNK_MAX] += times[BLOCK:]
        return times[:BLOCK]


def grouping_block(keys: int) -> tuple[Int64s, Int64s]:
    """Keys below `keys` and values below 1,000, uniform; with a million keys each comes exactly once."""
    rng = np.random.default_rng(SEED)
    # The draws stand in the order in which all blocks are drawn, so that every system gets the same numbers.
    rng.integers(97, 123, (BLOCK, WIDTH), dtype=np.uint8)
    hit = rng.random(BLOCK) < 0.01
    rng.random(BLOCK)
    rng.integers(0, WIDTH - 9, BLOCK)
    for _ in range(int(hit.sum())):
        rng.integers(1_000)
    values = rng.integers(0, 1_000, BLOCK)
    small = rng.integers(0, 10_000, BLOCK)
    if keys == 10_000:
        return small, values
    if keys == BLOCK:
        return rng.permutation(BLOCK), values
    return rng.integers(0, keys, BLOCK), values


def continued(column: Int64s) -> pa.Array:
    """A column of the block, followed by its first rows again."""
    return pa.array(np.concatenate([column, column[:CHUNK_MAX]]))
