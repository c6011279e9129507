"""Finds the latest row of each key in a growing table, and the latest rows in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import I64, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, I64, I64, INTS, INTS)
def note_rows(codes: Int64s, first_row: int, epoch: int, row_of: Int64s, epoch_of: Int64s) -> None:
    """Add rows of one epoch: each becomes the latest of its key, unless a row of a later epoch is known.

    Args:
        codes: shape (n,), of the rows' keys.
        first_row: number of the first of these rows.
        epoch: that they belong to.
        row_of: by code, the latest row; updated.
        epoch_of: by code, the epoch of that row; updated.
    """
    for i in range(len(codes)):
        code = codes[i]
        if epoch >= epoch_of[code]:
            epoch_of[code] = epoch
            row_of[code] = first_row + i


@compiled(INTS_IN, INTS, INTS)
def order_by_row(row_of: Int64s, code_at: Int64s, order: Int64s) -> None:
    """The codes in the order of their rows, without sorting.

    Args:
        row_of: by code, its row; all are distinct.
        code_at: shape (rows,), scratch memory.
        order: shape (codes + 1,), filled except for the last, which exists so that the loop need not branch.
    """
    code_at[:] = -1
    for code in range(len(row_of)):
        code_at[row_of[code]] = code
    at = 0
    for row in range(len(code_at)):
        order[at] = code_at[row]
        at += code_at[row] >= 0
