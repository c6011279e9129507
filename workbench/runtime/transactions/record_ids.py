"""Which records a task has processed already: a Bloom filter first, then the store."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.elements import Mask
from workbench.runtime.transactions.bloom import BloomFilter, UInt64s
from workbench.runtime.transactions.store import Store

_CAPACITY = 16_384


class RecordIds:
    """The ids of one task's input.

    Args:
        range: name of the task.
        store: holds the ids that are durable.
        taken: those of its channels when it starts: runs of first id and number.

    Attributes:
        duplicates: records and other elements that arrived again.
        false_positives: new ones that the filter took for known ones, until the store was read.
        lookups: how often the store was read.
    """

    __slots__ = ("_filter", "_in_hand", "_range", "_salts", "_store", "duplicates", "false_positives", "lookups")

    def __init__(self, range: str, store: Store, taken: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self._range = range
        self._store = store
        self._salts = {channel: _salt(channel) for channel in taken}
        self._in_hand: list[tuple[str, int, int]] = []
        self.duplicates = self.false_positives = self.lookups = 0
        self._fill(taken)

    def _fill(self, taken: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        known = sum(count for runs in taken.values() for _, count in runs)
        self._filter = BloomFilter(max(_CAPACITY, 2 * known))
        for channel, runs in taken.items():
            for first, count in runs:
                self._filter.add(self._ids(channel, first, count))

    def fresh(self, channel: str, first: int, count: int) -> list[tuple[int, int]]:
        """The runs of these ids that have not come before, first id and number; from now on they have."""
        ids = self._ids(channel, first, count)
        may = self._filter.may_hold(ids)
        runs = [(first, count)]
        if may.any():
            runs = self._looked_up(channel, first, count, may)
        self._in_hand += [(channel, begin, length) for begin, length in runs]
        if runs:
            self._filter.add(ids)
        return runs

    def _looked_up(self, channel: str, first: int, count: int, may: Mask) -> list[tuple[int, int]]:
        self.lookups += 1
        known = np.zeros(count, np.bool_)
        in_hand = [(begin, length) for own, begin, length in self._in_hand if own == channel]
        for begin, length in (*self._store.taken(self._range, channel), *in_hand):
            known[max(begin - first, 0) : max(begin + length - first, 0)] = True
        self.duplicates += int(known.sum())
        self.false_positives += int((may & ~known).sum())
        edges = np.flatnonzero(np.diff(np.concatenate([[True], known, [True]]).astype(np.int8)))
        return [(first + int(begin), int(end - begin)) for begin, end in edges.reshape(-1, 2)]

    def durable(self, in_hand: Sequence[tuple[str, int, int]]) -> None:
        """Note that all received elements are durable, except these runs, which wait to be processed.

        A full filter is built anew from the ids that the store still holds.
        """
        self._in_hand = list(in_hand)
        if self._filter.full:
            self.lookups += len(self._salts)
            self._fill({channel: self._store.taken(self._range, channel) for channel in self._salts})
            for channel, first, count in in_hand:
                self._filter.add(self._ids(channel, first, count))

    def _ids(self, channel: str, first: int, count: int) -> UInt64s:
        salt = self._salts.get(channel)
        if salt is None:
            salt = self._salts[channel] = _salt(channel)
        return np.arange(first, first + count, dtype=np.uint64) ^ salt


def _salt(channel: str) -> np.uint64:
    """Makes the ids of a channel unique among those of all channels."""
    return np.uint64(zlib.crc32(channel.encode()) << 32)
