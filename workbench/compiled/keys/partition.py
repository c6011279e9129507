"""Ordering the rows of a batch by their targets: the position of each row, and moving fixed-width columns there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray, njit

from workbench.compiled.keys.hashing import Hashes
from workbench.compiled.machinery.compiled import HASHES_IN, INTS, INTS_IN, compiled
from workbench.compiled.machinery.memory import pointer

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(HASHES_IN, INTS_IN, INTS, INTS)
def route(hashes: Hashes, target_of_group: Int64s, starts: Int64s, positions: Int64s) -> None:
    """The position of each row if the rows are ordered by target; rows of one target keep their order.

    Args:
        hashes: shape (n,), of the keys.
        target_of_group: shape (max_parallelism,), the target of each key group.
        starts: shape (parallelism + 1,), filled: rows of target t are at [starts[t], starts[t + 1]).
        positions: shape (n,), filled.
    """
    groups = np.uint64(len(target_of_group))
    mask = groups - np.uint64(1)
    if groups & mask == np.uint64(0):
        for i in range(len(hashes)):
            positions[i] = target_of_group[np.int64(hashes[i] & mask)]
    else:
        for i in range(len(hashes)):
            positions[i] = target_of_group[np.int64(hashes[i] % groups)]
    if len(starts) == 3:  # two targets: the cursors stay in registers
        ones = 0
        for i in range(len(positions)):
            ones += positions[i]
        zeros = len(positions) - ones
        starts[0] = 0
        starts[1] = zeros
        starts[2] = len(positions)
        seen = 0
        for i in range(len(positions)):
            one = positions[i]
            positions[i] = zeros + seen if one else i - seen
            seen += one
        return
    starts[:] = 0
    for i in range(len(positions)):
        starts[positions[i] + 1] += 1
    for target in range(1, len(starts)):
        starts[target] += starts[target - 1]
    cursors = starts[:-1].copy()
    for i in range(len(positions)):
        target = positions[i]
        positions[i] = cursors[target]
        cursors[target] += 1


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _move(positions: Int64s, source: Any, target: Any) -> None:
    for i in range(len(positions)):
        target[positions[i]] = source[i]


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN)
def scatter(positions: Int64s, sources: Int64s, destinations: Int64s, widths: Int64s) -> None:
    """For each column c and row i: ``destination[c][positions[i]] = source[c][i]``.

    Args:
        positions: shape (n,), a permutation of the rows.
        sources, destinations: shape (columns,), addresses of buffers that hold n values each.
        widths: shape (columns,), bytes per value: 1, 2, 4 or 8.
    """
    n = len(positions)
    for c in range(len(sources)):
        source, target = pointer(sources[c]), pointer(destinations[c])
        if widths[c] == 8:
            _move(positions, carray(source, n, np.uint64), carray(target, n, np.uint64))
        elif widths[c] == 4:
            _move(positions, carray(source, n, np.uint32), carray(target, n, np.uint32))
        elif widths[c] == 2:
            _move(positions, carray(source, n, np.uint16), carray(target, n, np.uint16))
        else:
            _move(positions, carray(source, n, np.uint8), carray(target, n, np.uint8))
