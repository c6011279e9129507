"""The inputs: blocks of a million events that a source repeats from the first row on.

So the exact result for any emitted events follows from the block. Other systems are measured on the same blocks: the
numbers are drawn from one generator in a fixed order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.elements import Int64s

BLOCK = 1_000_000
SEED = 7
WIDTH = 100
"""Bytes of a text event."""
CHUNK_MAX = 1_048_576
"""No source requests more rows at once; the block is extended by this many, so that every chunk is one slice."""
FOLD_AT = 4_096

ADS, CAMPAIGNS = 1_000, 100
TYPES = ("view", "click", "purchase")
BLOCK_MS = WINDOW_MS = 10_000
"""A block of ads spans ten seconds of event time, the length of a window."""
DELAY_MS = 1_000
BASE_MS = 1_700_000_000_000 // WINDOW_MS * WINDOW_MS


@dataclass(frozen=True, slots=True)
class Events:
    """All blocks.

    Attributes:
        text: shape (BLOCK, WIDTH), ASCII; about one row in a hundred holds "error" and three digits.
        values: below 1,000, uniform.
        keys: by their number, 10,000 (uniform) or a million (each once).
        ads, types: of the ad events; a type is an index into TYPES.
        times_ms: their event times, at most 999 ms out of order.
    """

    text: npt.NDArray[np.uint8]
    values: Int64s
    keys: dict[int, Int64s]
    ads: Int64s
    types: Int64s
    times_ms: Int64s

    def keyed(self, keys: int) -> Int64s:
        """A column of a number of keys, all equally frequent, except `keys`."""
        found = self.keys.get(keys)
        return self.keys[BLOCK] % keys if found is None else found


@cache
def events() -> Events:
    """The blocks; drawn once, in about a second."""
    rng = np.random.default_rng(SEED)
    text = rng.integers(97, 123, (BLOCK, WIDTH), dtype=np.uint8)
    text[:, 7::8] = 32
    hit = rng.random(BLOCK) < 0.01
    decoy = ~hit & (rng.random(BLOCK) < 0.02)  # the word without a number
    at = rng.integers(0, WIDTH - 9, BLOCK)
    for row in np.flatnonzero(hit):
        text[row, at[row] : at[row] + 9] = np.frombuffer(b"error %03d" % rng.integers(1_000), np.uint8)
    for row in np.flatnonzero(decoy):
        text[row, at[row] : at[row] + 9] = np.frombuffer(b"error abc", np.uint8)
    values = rng.integers(0, 1_000, BLOCK)
    keys = {10_000: rng.integers(0, 10_000, BLOCK), BLOCK: rng.permutation(BLOCK)}
    ramp = np.arange(BLOCK) * BLOCK_MS // BLOCK
    times_ms = BASE_MS + DELAY_MS + ramp - rng.integers(0, DELAY_MS, BLOCK)
    ads = rng.integers(0, ADS, BLOCK)
    return Events(text, values, keys, ads, rng.integers(0, len(TYPES), BLOCK), times_ms)


def continued(column: Int64s, shift: int = 0) -> Int64s:
    """A column of the block, over and over, `shift` larger each time."""
    repetition, row = np.divmod(np.arange(BLOCK + CHUNK_MAX), BLOCK)
    rows: Int64s = column[row] + repetition * shift
    return rows


def continued_text() -> pa.Array:
    """The text events as strings, over and over."""
    text = events().text
    offsets = np.arange(BLOCK + CHUNK_MAX + 1, dtype=np.int32) * WIDTH
    data = np.resize(text, (BLOCK + CHUNK_MAX, WIDTH))
    return pa.StringArray.from_buffers(BLOCK + CHUNK_MAX, pa.py_buffer(offsets), pa.py_buffer(data))


class Emitted:
    """The emitted events, by number (event n is row n modulo BLOCK), each once; written by several threads."""

    def __init__(self) -> None:
        self._fresh: deque[tuple[int, int]] = deque()
        self._ranges: Int64s = np.empty((0, 2), np.int64)
        self._lock = Lock()

    def add(self, first: int, count: int) -> None:
        """Events [first, first + count) were emitted."""
        self._fresh.append((first, first + count))
        if len(self._fresh) >= FOLD_AT:
            self.ranges()

    def ranges(self) -> Int64s:
        """Shape (k, 2): begins and ends of the runs of events, in order; few, because readers stay close together."""
        with self._lock:
            fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
            runs = np.concatenate([self._ranges, np.array(fresh, np.int64).reshape(-1, 2)])
            runs = runs[np.argsort(runs[:, 0])]
            first = np.ones(len(runs), np.bool_)
            first[1:] = runs[1:, 0] != runs[:-1, 1]
            last = np.roll(first, -1)
            self._ranges = np.stack([runs[first, 0], runs[last, 1]], axis=1)
            return self._ranges

    @property
    def count(self) -> int:
        """The number of these events."""
        runs = self.ranges()
        return int((runs[:, 1] - runs[:, 0]).sum())

    def repetitions(self) -> list[tuple[int, int, int, int]]:
        """(repetition, number of equal ones, begin, end): rows [begin, end) of the block were emitted in these
        repetitions.

        Whole repetitions in a row are one item.
        """
        parts: list[tuple[int, int, int, int]] = []
        for begin, end in self.ranges().tolist():
            while begin < end:
                repetition, row = divmod(begin, BLOCK)
                alike = (end - begin) // BLOCK if row == 0 else 0
                stop = BLOCK if alike else min(BLOCK, row + end - begin)
                parts.append((repetition, max(alike, 1), row, stop))
                begin += max(alike, 1) * (stop - row)
        return parts

    def times(self) -> Int64s:
        """Shape (BLOCK,): how often each row was emitted."""
        times = np.zeros(BLOCK, np.int64)
        for _, alike, begin, end in self.repetitions():
            times[begin:end] += alike
        return times
