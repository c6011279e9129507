"""The timestamps that records carry from the source to the sink, and the latencies computed from them."""

from __future__ import annotations

import time
from collections import deque
from threading import Lock

import numpy as np

from workbench.elements import Int64s

LONGEST_US = 4_000_000
FOLD_AT = 1_024
SAMPLE = 61
"""At full speed one of this many records is measured."""

Percentiles = tuple[float | None, float | None, float | None]


def now_us() -> int:
    """The machine's time, microseconds since 1970."""
    return time.time_ns() // 1_000


class Stamps:
    """The creation time of each record; every subtask of the source has its own schedule.

    At full speed a record is created when it is requested. At a rate it is due at its own time, which may be before the
    source gets to it: a source that falls behind adds to the latency. The schedule is derived from the source's
        requests, because it never requests a record before it is due.

    Args:
        rate: records per second of each subtask, None for full speed.
    """

    def __init__(self, rate: float | None) -> None:
        self._gap_us = None if rate is None else 1e6 / rate
        self._ramp: Int64s = np.empty(0, np.int64)
        self._schedules: dict[int, tuple[int, float]] = {}

    def restart(self) -> None:
        """Restart the schedules: delays of the warm-up do not count."""
        self._schedules = {}

    def next(self, count: int, subtask: int = 0) -> Int64s:
        """Shape (count,): timestamps for the next records of a subtask, microseconds since 1970."""
        now = now_us()
        gap_us = self._gap_us
        if gap_us is None:
            return np.full(count, now)
        schedules = self._schedules
        emitted, begin_us = schedules.get(subtask, (0, float(now)))
        begin_us = min(begin_us, now - (emitted + count - 1) * gap_us)
        schedules[subtask] = emitted + count, begin_us
        if count > len(self._ramp):
            self._ramp = (np.arange(2 * count) * gap_us).astype(np.int64)
        stamps: Int64s = self._ramp[:count] + int(begin_us + emitted * gap_us)
        return stamps


class Latencies:
    """A histogram of latencies, with one bucket per microsecond; filled by the threads of the sinks."""

    def __init__(self, sample: int) -> None:
        self._sample = sample
        self._fresh: deque[Int64s] = deque()
        self._counts: Int64s = np.zeros(LONGEST_US + 1, np.int64)
        self._from_us = 2**63 - 1
        self._lock = Lock()

    def start(self) -> None:
        """Measure records created from now on."""
        self._from_us = now_us()

    def arrived(self, stamps: Int64s) -> None:
        """Records with these timestamps, in order, have reached the sink."""
        if stamps[-1] >= self._from_us:
            chosen = stamps[:: self._sample]
            self._fresh.append(now_us() - chosen[chosen >= self._from_us])
            if len(self._fresh) >= FOLD_AT:
                self._fold()

    def _fold(self) -> None:
        with self._lock:
            fresh = [self._fresh.popleft() for _ in range(len(self._fresh))]
            if fresh:
                np.add.at(self._counts, np.clip(np.concatenate(fresh), 0, LONGEST_US), 1)

    def percentiles_ms(self) -> Percentiles:
        """The latencies that 50, 90 and 99 % of the records stay below, in milliseconds."""
        self._fold()
        total = int(self._counts.sum())
        if not total:
            return None, None, None
        below = np.searchsorted(np.cumsum(self._counts), [0.5 * total, 0.9 * total, 0.99 * total])
        p50, p90, p99 = (below / 1_000).round(3).tolist()
        return p50, p90, p99
