"""Finds the best row of each key among those of a batch and the one that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import I64, INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, INT_ROWS, I64, INT_ROWS, INTS, INTS, INTS)
def pick_best(
    codes: Int64s, values: Int64s, last_wins: int, best: Int64s, known: Int64s, picked: Int64s, found: Int64s
) -> int:
    """Pick for each key the row with the largest values, compared from the first to the last.

    Args:
        codes: shape (n,), of the rows' keys.
        values: shape (n, columns).
        last_wins: of rows with equal values, 1: the last one is picked, 0: the first one.
        best: shape (codes, columns), the values of the best row so far; updated.
        known: by code, whether there is one: 1 or 0; updated.
        picked: by code, the picked row of this batch; -1 at first, updated.
        found: shape (n,), filled with the codes that have got another row, in the order in which they first did.

    Returns:
        How many there are.
    """
    columns = values.shape[1]
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        better = known[code] == 0
        if not better:
            better = last_wins != 0
            for at in range(columns):
                if values[i, at] != best[code, at]:
                    better = values[i, at] > best[code, at]
                    break
        if better:
            known[code] = 1
            for at in range(columns):
                best[code, at] = values[i, at]
            if picked[code] < 0:
                found[count] = code
                count += 1
            picked[code] = i
    return count
