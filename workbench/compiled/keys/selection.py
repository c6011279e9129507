"""Selects rows of a batch and copies their columns, all in one call.

Each call of a kernel releases the interpreter lock and has to reacquire it, which costs as much as thousands of rows if
two threads are busy. So one kernel finds the rows, allocates memory and fills every column of fixed width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba import carray, njit

from workbench.compiled.machinery.codes import BITS, ROWS
from workbench.compiled.machinery.compiled import BYTES_IN, I64, INTS_IN, SMALL_INTS, compiled
from workbench.compiled.machinery.memory import pointer

if TYPE_CHECKING:
    from workbench.elements import Int64s

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int32]

ALIGNMENT = 64
"""The alignment of buffers that Arrow recommends, in bytes."""


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _set_bits(n: int, address: int, offset: int, validity: int, valid_offset: int, rows: Rows) -> int:
    """The numbers of the rows whose bit is set and, if there is a second bitmap, also set there."""
    bits = carray(pointer(address), (offset + n + 7) // 8, np.uint8)
    valid = carray(pointer(validity), (valid_offset + n + 7) // 8 if validity else 0, np.uint8)
    found = 0
    i = 0
    while i < n:
        at = offset + i
        length = min(8 - (at & 7), n - i)
        byte = np.int64(bits[at >> 3]) >> (at & 7)
        if validity:
            for j in range(length):
                at = valid_offset + i + j
                if not (valid[at >> 3] >> (at & 7)) & 1:
                    byte &= ~(1 << j)
        if byte == 0:  # as most are if few rows are chosen
            i += length
            continue
        if length == 8:
            for j in range(8):
                rows[found] = i + j  # written in any case: an unpredictable branch costs more
                found += int((byte >> j) & 1)
        else:
            for j in range(length):
                rows[found] = i + j
                found += int((byte >> j) & 1)
        i += length
    return found


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _copy_bits(rows: Rows, found: int, address: int, offset: int, out: Bytes) -> int:
    """Copy the bits of these rows; returns how many of them are set."""
    bits = carray(pointer(address), 1 << 40, np.uint8)
    total = 0
    for j in range(found):
        at = offset + rows[j]
        bit = (bits[at >> 3] >> (at & 7)) & 1
        out[j >> 3] |= bit << (j & 7)
        total += bit
    return total


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _accept(codes: Any, accepted: Bytes, rows: Rows) -> int:
    found = 0
    for i in range(len(codes)):
        rows[found] = i
        found += accepted[codes[i]]
    return found


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _take(rows: Rows, found: int, source: Any, target: Any) -> None:
    for j in range(found):
        target[j] = source[rows[j]]


@compiled(I64, I64, I64, I64, I64, I64, BYTES_IN, SMALL_INTS, INTS_IN)
def choose_rows(
    n: int,
    form: int,
    address: int,
    offset: int,
    validity: int,
    valid_offset: int,
    accepted: Bytes,
    rows: Rows,
    columns: Int64s,
) -> tuple[int, Bytes, Int64s]:
    """Find the chosen rows and copy their columns; nothing is copied if no row or every row is chosen.

    Args:
        n: rows in the batch; with ROWS, how many are chosen.
        form: how the choice is given: BITS, ROWS, or the bytes of a dictionary code (1, 2, 4 or 8).
        address, offset: of the bitmap (offset in bits) or of the codes (offset in codes).
        validity, valid_offset: of the bitmap of the rows for which the first one is valid; address 0: all.
        accepted: by code, 1 where its rows are chosen.
        rows: shape (n,) or more, filled with the chosen rows; given with ROWS.
        columns: shape (5 * k,), of each column: the address of its values, bytes per value (1, 2, 4 or 8, and 0 for
            bits), the offset of the first bit, the address of its validity bitmap or 0, and the offset in that.

    Returns:
        The number of chosen rows; the memory of all copied columns; and for each column the position of its values in
        the memory, the position of its validity, and the number of nulls, shape (3 * k,).
    """
    if form == ROWS:
        found = n
    elif form == BITS:
        found = _set_bits(n, address, offset, validity, valid_offset, rows)
    elif form == 1:
        found = _accept(carray(pointer(address + offset), n, np.uint8), accepted, rows)
    elif form == 2:
        found = _accept(carray(pointer(address + 2 * offset), n, np.uint16), accepted, rows)
    elif form == 4:
        found = _accept(carray(pointer(address + 4 * offset), n, np.uint32), accepted, rows)
    else:
        found = _accept(carray(pointer(address + 8 * offset), n, np.int64), accepted, rows)
    count = len(columns) // 5
    layout = np.zeros(3 * count, np.int64)
    if found == 0 or (form != ROWS and found == n):
        return found, np.empty(0, np.uint8), layout
    size = 0
    bitmap = -(-found // (8 * ALIGNMENT)) * ALIGNMENT
    for c in range(count):
        width = columns[5 * c + 1]
        layout[3 * c] = size
        size += -(-found * width // ALIGNMENT) * ALIGNMENT if width else bitmap
        layout[3 * c + 1] = size
        size += bitmap if columns[5 * c + 3] else 0
    memory = np.empty(size, np.uint8)
    for c in range(count):
        source, width, skip, nulls, nulls_skip = columns[5 * c : 5 * c + 5]
        target = memory[layout[3 * c] :]
        if width == 8:
            _take(rows, found, carray(pointer(source), 1 << 40, np.uint64), target[: 8 * found].view(np.uint64))
        elif width == 4:
            _take(rows, found, carray(pointer(source), 1 << 40, np.uint32), target[: 4 * found].view(np.uint32))
        elif width == 2:
            _take(rows, found, carray(pointer(source), 1 << 40, np.uint16), target[: 2 * found].view(np.uint16))
        elif width == 1:
            _take(rows, found, carray(pointer(source), 1 << 40, np.uint8), target)
        else:
            target[:bitmap] = 0
            _copy_bits(rows, found, source, skip, target)
        if nulls:
            valid = memory[layout[3 * c + 1] : layout[3 * c + 1] + bitmap]
            valid[:] = 0
            layout[3 * c + 2] = found - _copy_bits(rows, found, nulls, nulls_skip, valid)
    return found, memory, layout
