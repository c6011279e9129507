"""Rolling aggregates of integers: all folds of a batch, with the values after each row, in one call.

Indices are unsigned, because each access by a signed index is preceded by a test for a negative value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from workbench.compiled.machinery.codes import COUNT, MIN, SUM
from workbench.compiled.machinery.compiled import FEW, I64, INT_ROWS, INTS, INTS_IN, compiled
from workbench.compiled.machinery.memory import load_int

if TYPE_CHECKING:
    from workbench.elements import Int64s

_BLOCK = 512
"""Rows whose slots stay in the processor's cache while the aggregates are folded one after the other."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_S32, _ONE = np.uint64(32), np.uint64(1)


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _fold(
    codes: Int64s,
    row: int,
    block: int,
    operations: Int64s,
    places: Int64s,
    values: Int64s,
    shown: Int64s,
    cells: Int64s,
    out: Int64s,
    unshown: Int64s,
    failed: int,
) -> int:
    """Fold `block` rows from `row` on into the cells of their codes."""
    for fold in range(len(operations)):
        place = np.uint64(places[fold])
        after = out[shown[fold], row : row + block] if shown[fold] >= 0 else unshown[:block]
        source = values[fold] + 8 * row
        if operations[fold] == COUNT:
            for i in range(block):
                number = cells[np.uint64(codes[i]), place] + 1
                cells[np.uint64(codes[i]), place] = number
                after[i] = number
        elif operations[fold] == SUM:
            overflow = np.int64(0)
            for i in range(block):
                before = cells[np.uint64(codes[i]), place]
                value = load_int(source + 8 * i)
                number = before + value
                overflow |= (before ^ number) & (value ^ number)
                cells[np.uint64(codes[i]), place] = number
                after[i] = number
            if overflow < 0 and failed < 0:
                failed = fold
        elif operations[fold] == MIN:
            for i in range(block):
                number = min(cells[np.uint64(codes[i]), place], load_int(source + 8 * i))
                cells[np.uint64(codes[i]), place] = number
                after[i] = number
        else:
            for i in range(block):
                number = max(cells[np.uint64(codes[i]), place], load_int(source + 8 * i))
                cells[np.uint64(codes[i]), place] = number
                after[i] = number
    return failed


@compiled(INTS_IN, I64, INT_ROWS, INTS, I64, I64, INTS_IN, INTS_IN, INTS_IN, INTS_IN, INT_ROWS, INT_ROWS, few=FEW)
def roll_keys(
    keys: Int64s,
    start: int,
    slots: Int64s,
    key_of_code: Int64s,
    count: int,
    shift: int,
    operations: Int64s,
    places: Int64s,
    values: Int64s,
    shown: Int64s,
    cells: Int64s,
    out: Int64s,
) -> tuple[int, int, int]:
    """Fold each row into its key's cells.

    Args:
        keys: shape (n,), without nulls.
        start: the first row to handle.
        slots, key_of_code, count, shift: the key table, as for ``add_keys``.
        operations: shape (folds,), COUNT, SUM, MIN or MAX.
        places: shape (folds,), the cell of each.
        values: shape (folds,), addresses of n int64 values each; ignored for a count.
        shown: shape (folds,), the row of `out` that receives the cell after each row, or -1.
        cells: shape (slots, cells); it has room for as many keys as rows.
        out: shape (m, n).

    Returns:
        The first row that was not processed because there is no room for its key (n if all were), the new count, and
        the first fold whose sum exceeded the range of int64, or -1.
    """
    n = len(keys)
    mask = np.uint64(len(slots) - 1)
    limit = min(len(key_of_code), len(cells))
    by = np.uint64(shift)
    codes = np.empty(_BLOCK, np.int64)
    unshown = np.empty(_BLOCK, np.int64)
    failed = -1
    row = start
    full = False
    while row < n and not full:
        block = min(_BLOCK, n - row)
        for i in range(block):
            key = keys[np.uint64(row + i)]
            h = np.uint64(key)
            place = ((h ^ (h >> _S32)) * _GAMMA) >> by
            while True:
                found = slots[place, 1]
                if found == 0 or slots[place, 0] == key:
                    break
                place = (place + _ONE) & mask
            if found == 0:
                if count == limit:
                    full = True
                    block = i
                    break
                key_of_code[count] = key
                count += 1
                slots[place, 0] = key
                slots[place, 1] = count
                found = count
            codes[i] = found - 1
        failed = _fold(codes, row, block, operations, places, values, shown, cells, out, unshown, failed)
        row += block
    return row, count, failed


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN, INT_ROWS, INT_ROWS)
def roll_slots(
    slots: Int64s, operations: Int64s, places: Int64s, values: Int64s, shown: Int64s, cells: Int64s, out: Int64s
) -> int:
    """Like ``roll_keys`` for rows whose slots are known, shape (n,); returns the first fold that failed, or -1."""
    unshown = np.empty(_BLOCK, np.int64)
    failed = -1
    for row in range(0, len(slots), _BLOCK):
        block = min(_BLOCK, len(slots) - row)
        codes = slots[row : row + block]
        failed = _fold(codes, row, block, operations, places, values, shown, cells, out, unshown, failed)
    return failed
