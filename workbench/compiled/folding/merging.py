"""Folding accumulators into others: panes into windows, sessions into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.codes import COUNT, MIN, SUM
from workbench.compiled.machinery.compiled import BYTES_IN, FLOAT_ROWS, INT_ROWS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.compiled.folding.accumulate import Float64s, Valid
    from workbench.elements import Int64s


@compiled(INTS_IN, BYTES_IN, INTS_IN, INTS_IN, INT_ROWS, FLOAT_ROWS, INT_ROWS, FLOAT_ROWS)
def merge_cells(
    operations: Int64s,
    decimal: Valid,
    sources: Int64s,
    targets: Int64s,
    from_ints: Int64s,
    from_floats: Float64s,
    to_ints: Int64s,
    to_floats: Float64s,
) -> int:
    """Fold the row ``sources[i]`` of one matrix of cells into the row ``targets[i]`` of another, for each i in turn.

    Args:
        operations, decimal: by column, what it accumulates, and whether its cells are float64.
        sources, targets: shape (n,).
        from_ints, from_floats: one matrix, seen as both types.
        to_ints, to_floats: the other, which may be the same.

    Returns:
        The first column whose sum exceeded the range of int64, or -1.
    """
    failed = -1
    for i in range(len(sources)):
        source = sources[i]
        target = targets[i]
        for column in range(len(operations)):
            operation = operations[column]
            if decimal[column]:
                value = from_floats[source, column]
                before = to_floats[target, column]
                if operation == SUM:
                    to_floats[target, column] = before + value
                elif operation == MIN:
                    if value < before or (before != before and value == value):
                        to_floats[target, column] = value
                elif value > before or value != value:
                    to_floats[target, column] = value
            else:
                number = from_ints[source, column]
                held = to_ints[target, column]
                if operation == COUNT:
                    to_ints[target, column] = held + number
                elif operation == SUM:
                    after = held + number
                    if (held ^ after) & (number ^ after) < 0 and failed < 0:
                        failed = column
                    to_ints[target, column] = after
                elif operation == MIN:
                    to_ints[target, column] = min(held, number)
                else:
                    to_ints[target, column] = max(held, number)
    return failed
