"""A hash table from int64 keys to dense codes: open addressing, linear probing, at most half full.

A row of `slots` is (key, code + 1), so that a look-up touches one cache line; zero marks a free row. Rows are found by
the *high* bits of a multiplicative hash: the low bits of the exchange's hash are similar for all keys of one subtask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from workbench.compiled.machinery.compiled import I64, INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_S32 = np.uint64(32)


@njit(nogil=True)  # type: ignore[untyped-decorator]
def code_of(key: int, slots: Int64s, key_of_code: Int64s, count: int, shift: int) -> int:
    """The code of a key: `count` for a new one, which is added; -1 if there is no room for it."""
    h = np.uint64(key)
    row = np.int64(((h ^ (h >> _S32)) * _GAMMA) >> np.uint64(shift))
    mask = len(slots) - 1
    while True:
        found = slots[row, 1]
        if found == 0:
            if count == len(key_of_code):
                return -1
            slots[row, 0] = key
            slots[row, 1] = count + 1
            key_of_code[count] = key
            return count
        if slots[row, 0] == key:
            return int(found - 1)
        row = (row + 1) & mask


@compiled(INTS_IN, I64, INT_ROWS, INTS, I64, I64, INTS)
def add_keys(
    keys: Int64s, start: int, slots: Int64s, key_of_code: Int64s, count: int, shift: int, codes: Int64s
) -> tuple[int, int]:
    """Fill ``codes[start:]`` with the code of each key, giving new keys the next codes.

    Args:
        keys: shape (n,).
        start: the first row to handle.
        slots: shape (2**k, 2), the table.
        key_of_code: shape (2**(k - 1),), the key of each code; its length is the capacity of the table.
        count: the number of keys in the table.
        shift: 64 - k.
        codes: shape (n,), filled.

    Returns:
        The first row that was not processed because the table is full (n if all were), and the new count.
    """
    for i in range(start, len(keys)):
        code = code_of(keys[i], slots, key_of_code, count, shift)
        if code < 0:
            return i, count
        count += code == count
        codes[i] = code
    return len(keys), count


@compiled(INTS_IN, I64, INT_ROWS, I64)
def rehash(key_of_code: Int64s, count: int, slots: Int64s, shift: int) -> None:
    """Put the keys of codes 0 to count - 1 into empty `slots`."""
    mask = len(slots) - 1
    by = np.uint64(shift)
    for code in range(count):
        key = key_of_code[code]
        h = np.uint64(key)
        row = np.int64(((h ^ (h >> _S32)) * _GAMMA) >> by)
        while slots[row, 1] != 0:
            row = (row + 1) & mask
        slots[row, 0] = key
        slots[row, 1] = code + 1


@compiled(INTS_IN, INT_ROWS, I64, INTS)
def find_keys(keys: Int64s, slots: Int64s, shift: int, codes: Int64s) -> None:
    """Fill `codes` with the code of each key, -1 if the table does not contain it (see ``add_keys``)."""
    mask = len(slots) - 1
    by = np.uint64(shift)
    for i in range(len(keys)):
        key = keys[i]
        h = np.uint64(key)
        row = np.int64(((h ^ (h >> _S32)) * _GAMMA) >> by)
        while slots[row, 1] != 0 and slots[row, 0] != key:
            row = (row + 1) & mask
        codes[i] = slots[row, 1] - 1
