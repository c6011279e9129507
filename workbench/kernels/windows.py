"""Assigning records to tumbling windows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workbench.durations import NO_TIME
from workbench.elements import Int64s
from workbench.kernels.compiled import BYTES, I64, INTS, INTS_IN, compiled

Bytes = npt.NDArray[np.uint8]


@compiled(INTS_IN, I64, I64, I64, INTS, BYTES)
def assign_windows(
    timestamps: Int64s, size_us: int, offset_us: int, closed_start: int, starts: Int64s, fate: Bytes
) -> tuple[int, int, int]:
    """The start of each record's window, and what becomes of the record.

    Args:
        timestamps: shape (n,), event times in microseconds.
        size_us, offset_us: the windows are [offset + k * size, offset + (k + 1) * size).
        closed_start: records of windows that start here or earlier are late.
        starts: shape (n,), filled with window starts (of records without a time: unspecified).
        fate: shape (n,), filled with 0 (goes into its window), 1 (late) or 2 (has no time).

    Returns:
        How many records are late, how many have no time, and the smallest start among the others (the largest int64
        when there are none).
    """
    late = 0
    timeless = 0
    first = 9223372036854775807
    for i in range(len(timestamps)):
        time = timestamps[i]
        if time == NO_TIME:
            starts[i] = 0
            fate[i] = 2
            timeless += 1
            continue
        start = time - (time - offset_us) % size_us
        starts[i] = start
        if start <= closed_start:
            fate[i] = 1
            late += 1
        else:
            fate[i] = 0
            first = min(first, start)
    return late, timeless, first
