"""Counting records per key or window, in the order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import I64, INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, INTS, INTS)
def number_rows(slots: Int64s, seen: Int64s, numbers: Int64s) -> None:
    """The number of each row among those of its slot.

    Args:
        slots: shape (n,).
        seen: by slot, the number of earlier rows; updated.
        numbers: shape (n,), filled, from ``seen`` on.
    """
    for i in range(len(slots)):
        slot = slots[i]
        numbers[i] = seen[slot]
        seen[slot] += 1


@compiled(INTS_IN, I64, INTS, INT_ROWS, INTS, INTS, INTS, INTS)
def count_into_waves(
    entries: Int64s,
    every: int,
    seen: Int64s,
    moves: Int64s,
    waves: Int64s,
    pair_waves: Int64s,
    move_waves: Int64s,
    firing: Int64s,
) -> tuple[int, int]:
    """Find the rows that make their window fire, and the wave of the batch to which each row belongs.

    A wave holds rows whose windows fire at most once in it, after the last of their rows there; so the number of waves
    of a batch is one more than the firings of the busiest window.

    Args:
        entries: shape (n,), the window of each row.
        every: a window fires after every so many further rows.
        seen: by window, the number of rows since it fired.
        moves: shape (m, 3): before row ``moves[j, 0]``, window ``moves[j, 2]`` becomes part of ``moves[j, 1]``.
        waves: by window, zeros; scratch, zeros again afterwards.
        pair_waves, move_waves: shapes (n,) and (m,), filled.
        firing: shape (n,), filled from the front with the rows that make their window fire.

    Returns:
        The number of rows in `firing`, and the number of waves.
    """
    fired = 0
    count = 1
    j = 0
    for i in range(len(entries)):
        while j < len(moves) and moves[j, 0] <= i:
            kept = moves[j, 1]
            gone = moves[j, 2]
            seen[kept] += seen[gone]
            seen[gone] = 0
            waves[kept] = max(waves[kept], waves[gone])
            move_waves[j] = waves[kept]
            j += 1
        entry = entries[i]
        pair_waves[i] = waves[entry]
        seen[entry] += 1
        count = max(count, waves[entry] + 1)
        if seen[entry] >= every:
            seen[entry] = 0
            firing[fired] = i
            fired += 1
            waves[entry] += 1
    for i in range(len(entries)):
        waves[entries[i]] = 0
    for j in range(len(moves)):
        waves[moves[j, 1]] = 0
        waves[moves[j, 2]] = 0
    return fired, count
