"""The latency markers that have reached a task, and the travel times that they stand for."""

from __future__ import annotations

import numpy as np

from workbench.elements import Int64s, LatencyMarker

KEPT = 1_024
"""The newest markers that a task keeps: those of a few seconds, from several sources."""
_FIRST = 64
"""The room that a task has for markers at first."""
EACH = 8
"""Travel times that one marker stands for: those of records that became due while the source rested before it."""
_TURNS = 732
"""Multiples of it spread evenly over a thousand."""
_SHARES = 2 * np.arange(EACH) + 1


class KeptMarkers:
    """The newest markers of one task; only its own thread adds any.

    Attributes:
        count: how many have come.

    Example:
        >>> markers = KeptMarkers()
        >>> markers.add(5_000, marked_us=4_000, rested_us=8_000)
        >>> arrived_us, travelled_us, rested_us = markers.newest()
        >>> spread(travelled_us, rested_us).tolist()
        [[1500, 2500, 3500, 4500, 5500, 6500, 7500, 8500]]
    """

    def __init__(self) -> None:
        self.count = 0
        self._kept = np.empty((3, _FIRST), np.int64)  # arrived, travelled, rested; grows up to `KEPT`

    def add(self, now_us: int, marked_us: int, rested_us: int) -> None:
        """A marker has come.

        Args:
            now_us: processing time.
            marked_us: when it was sent.
            rested_us: how long its source had rested before.
        """
        if self.count == self._kept.shape[1] < KEPT:
            self._kept = np.concatenate((self._kept, self._kept), axis=1)
        self._kept[:, self.count % KEPT] = now_us, now_us - marked_us, rested_us
        self.count += 1

    def newest(self) -> tuple[Int64s, Int64s, Int64s]:
        """When each arrived, how long it travelled, and how long its source had rested before.

        Returns:
            Three arrays of shape (n,), microseconds, oldest first.
        """
        count = self.count  # before the array, which may have grown since
        arrived, travelled, rested = self._kept[:, np.arange(max(0, count - KEPT), count) % KEPT]
        return arrived, travelled, rested


def marker_after(rested_us: int, records: int, now_us: int, source: str, turn: int) -> LatencyMarker:
    """The marker of a source that reads again after a rest.

    The first of the records became due when the rest began and the others at equal distances since, the last of them
    half a distance ago on average. Of a few records the marker stands for one; of more for all of them, spread evenly.

    Args:
        rested_us: how long the source rested, microseconds; 0: not at all.
        records: that it has read since; 0: the first one may have become due at any time, and so all are spread evenly.
        now_us: processing time.
        source: the name of the task.
        turn: of a few records, decides for which one it stands.

    Example:
        >>> [marker_after(6_000, 2, 9_000, "read[0]", turn).marked_us for turn in (0, 1)]
        [3000, 7000]
        >>> marker_after(6_000, 60, 9_000, "read[0]", 0)
        LatencyMarker(marked_us=9000, source='read[0]', rested_us=6050)
    """
    if not rested_us or not records or records >= EACH:
        spread_us = rested_us * 2 * records // (2 * records - 1) if records else rested_us
        return LatencyMarker(now_us, source, spread_us)
    place = turn * _TURNS % 1_000 * records // 1_000
    return LatencyMarker(now_us - rested_us + 2 * place * rested_us // (2 * records - 1), source)


def spread(travelled_us: Int64s, rested_us: Int64s) -> Int64s:
    """How long records took that became due with each marker: they spread evenly over the source's rest before it.

    Args:
        travelled_us, rested_us: of the markers, shape (n,).

    Returns:
        The travel times, shape (n, `EACH`), the shortest first.
    """
    # The times of one marker stand an eighth of its rest apart. Those of the next one stand between them, so that a
    # percentile of many equal rests is none of eight values.
    between = (np.arange(len(rested_us)) * 618 + 500) % 1_000 - 500
    shares = _SHARES * 500 + between[:, None]
    times: Int64s = travelled_us[:, None] + rested_us[:, None] * shares // (1_000 * EACH)
    return times
