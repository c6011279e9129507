"""Which values of a column occur in each group: marked once, or counted where rows are taken back.

A *pair* is a value in a group. Several aggregates can look at the same column, each at the rows of its own condition;
a row's *mask* has a bit for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS, INT_ROWS)
def mark_values(pairs: Int64s, groups: Int64s, masks: Int64s, marks: Int64s, distinct: Int64s) -> None:
    """Mark the pairs that occur, and count for each group those that do so for the first time.

    Args:
        pairs, groups, masks: shape (n,), of the rows.
        marks: by pair, the bits of the aggregates that it has occurred for; updated.
        distinct: shape (groups, aggregates), the number of different values; updated.
    """
    for i in range(len(pairs)):
        fresh = masks[i] & ~marks[pairs[i]]
        if fresh:
            marks[pairs[i]] |= fresh
            for at in range(distinct.shape[1]):
                distinct[groups[i], at] += (fresh >> at) & 1


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN, INT_ROWS, INT_ROWS)
def count_values(
    pairs: Int64s, groups: Int64s, masks: Int64s, weights: Int64s, counts: Int64s, distinct: Int64s
) -> None:
    """Count how often pairs occur, and for each group the pairs that occur at all.

    Args:
        pairs, groups, masks: shape (n,), of the rows.
        weights: shape (n,), 1 for rows that are added and -1 for those that are taken back.
        counts: shape (pairs, aggregates); updated.
        distinct: shape (groups, aggregates), the number of different values; updated.
    """
    for i in range(len(pairs)):
        pair, weight = pairs[i], weights[i]
        for at in range(distinct.shape[1]):
            if (masks[i] >> at) & 1:
                before = counts[pair, at]
                counts[pair, at] = before + weight
                distinct[groups[i], at] += int(before + weight > 0) - int(before > 0)
