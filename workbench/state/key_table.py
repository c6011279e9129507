"""Dense codes for int64 keys: the hash table behind key indexes and windows."""

from __future__ import annotations

import numpy as np

from workbench.compiled import add_keys, find_keys, rehash, roll_keys, warm_up
from workbench.elements import Int64s

Folds = tuple[Int64s, Int64s, Int64s, Int64s]
"""Operations, cells, addresses of values, and whether to show each value: see ``roll_keys``."""

_SMALLEST = 4  # a table of 2**4 rows


class KeyTable:
    """Assigns each distinct int64 the next code, from 0 in order of first appearance.

    Example:
        >>> table = KeyTable()
        >>> table.codes(np.array([70, -3, 70]))
        array([0, 1, 0])
        >>> table.keys()
        array([70, -3])
    """

    __slots__ = ("_bits", "_count", "_key_of_code", "_slots")

    def __init__(self) -> None:
        warm_up(add_keys, find_keys, rehash)
        self._count = 0
        self._resize(_SMALLEST)

    def __len__(self) -> int:
        return self._count

    def _resize(self, bits: int) -> None:
        self._bits = bits
        self._slots = np.zeros((1 << bits, 2), np.int64)
        keys = np.empty(1 << (bits - 1), np.int64)
        if self._count:
            keys[: self._count] = self._key_of_code[: self._count]
            rehash(keys, self._count, self._slots, 64 - bits)
        self._key_of_code: Int64s = keys

    def codes(self, keys: Int64s) -> Int64s:
        """Shape (n,): the code of each key; new keys are added."""
        codes = np.empty(len(keys), np.int64)
        row = 0
        while True:
            row, self._count = add_keys(keys, row, self._slots, self._key_of_code, self._count, 64 - self._bits, codes)
            if row == len(keys):
                return codes
            self._resize(self._bits + 1)

    def find(self, keys: Int64s) -> Int64s:
        """Shape (n,): the code of each key, -1 for keys not in the table; nothing is added."""
        codes = np.empty(len(keys), np.int64)
        find_keys(keys, self._slots, 64 - self._bits, codes)
        return codes

    def roll(self, keys: Int64s, row: int, folds: Folds, cells: Int64s, out: Int64s) -> tuple[int, int]:
        """Fold rows from `row` on into the cells of their keys, while there is a cell for a new key.

        Returns:
            The first row that was not processed, and the first fold that failed or -1.
        """
        while True:
            row, self._count, failed = roll_keys(
                keys, row, self._slots, self._key_of_code, self._count, 64 - self._bits, *folds, cells, out
            )
            if row == len(keys) or failed >= 0 or self._count == len(cells):
                return row, failed
            self._resize(self._bits + 1)

    def layout(self) -> tuple[Int64s, Int64s, int]:
        """The hash rows, the key of each code and the shift, for kernels that look up and add keys themselves."""
        return self._slots, self._key_of_code, 64 - self._bits

    def extended(self, count: int) -> None:
        """Record the new number of keys after such a kernel has added some."""
        self._count = count

    def enlarge(self) -> None:
        """Double the number of keys that there is room for."""
        self._resize(self._bits + 1)

    def clear(self) -> None:
        """Forget all keys, but keep the memory."""
        self._slots[:] = 0
        self._count = 0

    def keys(self) -> Int64s:
        """Shape (count,): the key of each code, as a view that the next ``codes`` may invalidate."""
        return self._key_of_code[: self._count]
