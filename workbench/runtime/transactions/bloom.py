"""A Bloom filter over record ids: says quickly that an id is new; that it is known must be looked up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workbench.elements import Mask

UInt64s = npt.NDArray[np.uint64]
_HASHES = 4
_BITS_PER_ID = 10
"""With four hashes: about one false positive in a hundred at capacity."""


class BloomFilter:
    """A set of ids without false negatives.

    Args:
        capacity: number of ids for which about one in a hundred new ones is taken for a known one.

    Attributes:
        count: ids added so far.

    Example:
        >>> known = BloomFilter(1_000)
        >>> known.add(np.arange(500, dtype=np.uint64))
        >>> bool(known.may_hold(np.arange(500, dtype=np.uint64)).all())
        True
        >>> int(known.may_hold(np.arange(500, 1_000, dtype=np.uint64)).sum()) < 20
        True
    """

    __slots__ = ("_bits", "_mask", "capacity", "count")

    def __init__(self, capacity: int) -> None:
        bits = 1 << max(9, (capacity * _BITS_PER_ID - 1).bit_length())
        self._bits: UInt64s = np.zeros(bits >> 6, np.uint64)
        self._mask = np.uint64(bits - 1)
        self.capacity = capacity
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether it holds more ids than it has capacity for."""
        return self.count > self.capacity

    def add(self, ids: UInt64s) -> None:
        """Add ids, shape (n,)."""
        places = self._places(ids).ravel()
        np.bitwise_or.at(self._bits, places >> np.uint64(6), np.uint64(1) << (places & np.uint64(63)))
        self.count += len(ids)

    def may_hold(self, ids: UInt64s) -> Mask:
        """Shape (n,): False where an id was certainly not added."""
        places = self._places(ids)
        found = (self._bits[places >> np.uint64(6)] >> (places & np.uint64(63))) & np.uint64(1)
        held: Mask = found.all(axis=0)
        return held

    def _places(self, ids: UInt64s) -> UInt64s:
        """Shape (4, n): the bits of each id, by double hashing."""
        one = _mixed(ids)
        two = _mixed(one) | np.uint64(1)
        steps = np.arange(_HASHES, dtype=np.uint64)[:, None]
        places: UInt64s = (one + steps * two) & self._mask
        return places


def _mixed(numbers: UInt64s) -> UInt64s:
    """The finalizer of splitmix64: every bit of a number changes half of the bits of the result."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed
