"""Finds the texts that contain a literal, by comparing many bytes at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workbench.compiled.machinery.compiled import BYTES_IN, SMALL_INTS, SMALL_INTS_IN, compiled

Offsets = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

_AT_ONCE = 64


@compiled(SMALL_INTS_IN, BYTES_IN, BYTES_IN, SMALL_INTS)
def find_literal(offsets: Offsets, data: Bytes, literal: Bytes, rows: Rows) -> int:
    """Fill `rows` with the numbers of the texts ``data[offsets[i]:offsets[i + 1]]`` that contain `literal`, in order.

    All texts are searched as one. First, four bytes of the literal are compared at 64 positions together, without
    a branch, so that the compiler generates vector instructions; the few remaining positions are checked one by one.

    Args:
        offsets: shape (n + 1,), where the texts begin and end.
        data: shape (m,), the texts.
        literal: shape (k,), k at least 1.
        rows: shape (n,), filled from the front.

    Returns:
        The number of texts that contain it.
    """
    length = len(literal)
    second, third, last = min(1, length - 1), min(2, length - 1), length - 1
    byte_0, byte_1, byte_2, byte_3 = literal[0], literal[second], literal[third], literal[last]
    # Unsigned positions avoid the test for negative ones, which would keep the loop from being vectorised.
    step_1, step_2, step_3 = np.uint64(second), np.uint64(third), np.uint64(last)
    at, end = int(offsets[0]), int(offsets[-1])
    row = 0
    found = 0
    latest = -1
    while at + last < end:
        positions = min(_AT_ONCE, end - last - at)
        if positions == _AT_ONCE:
            start = np.uint64(at)
            some = False
            for j in range(_AT_ONCE):
                i = start + np.uint64(j)
                some = some | (
                    (data[i] == byte_0)
                    & (data[i + step_1] == byte_1)
                    & (data[i + step_2] == byte_2)
                    & (data[i + step_3] == byte_3)
                )
            if not some:
                at += _AT_ONCE
                continue
        for position in range(at, at + positions):
            same = True
            for k in range(length):
                if data[position + k] != literal[k]:
                    same = False
                    break
            if same:
                while offsets[row + 1] <= position:
                    row += 1
                if row != latest and position + last < offsets[row + 1]:
                    rows[found] = latest = row
                    found += 1
        at += positions
    return found
