"""Folding values into accumulators, at the end of a batch or with the value after each row.

Accumulators are rows of one matrix of 8-byte cells, so that all aggregates of a key share a cache line; float cells are
the same memory seen as float64. NaN is larger than any number, as in Spark: a maximum becomes NaN at the first NaN, a
minimum is NaN only if there is no other value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from workbench.compiled.machinery.codes import COUNT, MIN, SUM
from workbench.compiled.machinery.compiled import (
    BYTES_IN,
    FLOAT_ROWS,
    FLOATS,
    FLOATS_IN,
    I64,
    INT_ROWS,
    INTS,
    INTS_IN,
    compiled,
)

if TYPE_CHECKING:
    from workbench.elements import Int64s

Float64s = npt.NDArray[np.float64]
Valid = npt.NDArray[np.uint8]
"""1 where a value is not null; length 0 if no value is null."""


@compiled(I64, INTS_IN, INTS_IN, BYTES_IN, INT_ROWS, I64)
def fold_ints(operation: int, slots: Int64s, values: Int64s, valid: Valid, cells: Int64s, cell: int) -> bool:
    """Fold `values` into ``cells[slots, cell]``; a count ignores `values`, which may then be empty.

    Returns:
        True if a sum exceeded the range of int64.
    """
    every = len(valid) == 0
    overflow = np.int64(0)
    for i in range(len(slots)):
        if every or valid[i] != 0:
            slot = slots[i]
            if operation == COUNT:
                cells[slot, cell] += 1
            elif operation == SUM:
                before = cells[slot, cell]
                value = values[i]
                after = before + value
                overflow |= (before ^ after) & (value ^ after)
                cells[slot, cell] = after
            elif operation == MIN:
                cells[slot, cell] = min(cells[slot, cell], values[i])
            else:
                cells[slot, cell] = max(cells[slot, cell], values[i])
    return bool(overflow < 0)


@compiled(I64, INTS_IN, INTS_IN, BYTES_IN, INT_ROWS, I64, INTS)
def running_ints(
    operation: int, slots: Int64s, values: Int64s, valid: Valid, cells: Int64s, cell: int, out: Int64s
) -> bool:
    """The same, and ``out[i]`` is the cell after row i."""
    every = len(valid) == 0
    overflow = np.int64(0)
    for i in range(len(slots)):
        slot = slots[i]
        after = cells[slot, cell]
        if every or valid[i] != 0:
            if operation == COUNT:
                after += 1
            elif operation == SUM:
                before = after
                value = values[i]
                after = before + value
                overflow |= (before ^ after) & (value ^ after)
            elif operation == MIN:
                after = min(after, values[i])
            else:
                after = max(after, values[i])
            cells[slot, cell] = after
        out[i] = after
    return bool(overflow < 0)


@compiled(I64, INTS_IN, FLOATS_IN, BYTES_IN, FLOAT_ROWS, I64)
def fold_floats(operation: int, slots: Int64s, values: Float64s, valid: Valid, cells: Float64s, cell: int) -> None:
    """As ``fold_ints`` for float64: sum, minimum and maximum."""
    every = len(valid) == 0
    for i in range(len(slots)):
        if every or valid[i] != 0:
            slot = slots[i]
            value = values[i]
            before = cells[slot, cell]
            if operation == SUM:
                cells[slot, cell] = before + value
            elif operation == MIN:
                if value < before or (before != before and value == value):
                    cells[slot, cell] = value
            elif value > before or value != value:
                cells[slot, cell] = value


@compiled(I64, INTS_IN, FLOATS_IN, BYTES_IN, FLOAT_ROWS, I64, FLOATS)
def running_floats(
    operation: int, slots: Int64s, values: Float64s, valid: Valid, cells: Float64s, cell: int, out: Float64s
) -> None:
    """The same, and ``out[i]`` is the cell after row i."""
    every = len(valid) == 0
    for i in range(len(slots)):
        slot = slots[i]
        after = cells[slot, cell]
        if every or valid[i] != 0:
            value = values[i]
            if operation == SUM:
                after += value
            elif operation == MIN:
                if value < after or (after != after and value == value):
                    after = value
            elif value > after or value != value:
                after = value
            cells[slot, cell] = after
        out[i] = after
