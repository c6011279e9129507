"""The latency markers that have reached a task, and the travel times that they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.elements import Int64s, LatencyMarker

KEPT = 1_024
"""The newest markers that a task keeps: those of a few seconds, from several sources."""
_FIRST = 64
"""The room that a task has for markers at first."""
EACH_US = 2_500
"""The time of a source for which one travel time stands: a marker that stands for more of it has more of them."""
FEW = 8
"""Of fewer records that a source has read after a rest, a marker stands for a single one."""
_TURNS = 732
"""Multiples of it spread evenly over a thousand."""


class KeptMarkers:
    """The newest markers of one task; only its own thread adds any.

    Attributes:
        count: how many have come.

    Example:
        >>> markers = KeptMarkers()
        >>> markers.add(5_000, LatencyMarker(4_000, "read[0]", rested_us=8_000, covers_us=10_000))
        >>> arrived_us, took_us = spread(*markers.newest())
        >>> took_us.tolist()
        [2000, 4000, 6000, 8000]
    """

    def __init__(self) -> None:
        self.count = 0
        self._kept = np.empty((4, _FIRST), np.int64)  # arrived, travelled, rested, covers; grows up to `KEPT`

    def add(self, now_us: int, marker: LatencyMarker) -> None:
        """A marker has come, at a processing time."""
        if self.count == self._kept.shape[1] < KEPT:
            self._kept = np.concatenate((self._kept, self._kept), axis=1)
        self._kept[:, self.count % KEPT] = now_us, now_us - marker.marked_us, marker.rested_us, marker.covers_us
        self.count += 1

    def newest(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """When each arrived, how long it travelled, how long its source had rested, and for how much of its time it
        stands.

        Returns:
            Four arrays of shape (n,), microseconds, oldest first.
        """
        count = self.count  # before the array, which may have grown since
        arrived, travelled, rested, covers = self._kept[:, np.arange(max(0, count - KEPT), count) % KEPT]
        return arrived, travelled, rested, covers


def markers_after(
    rested_us: int, records: int, now_us: int, source: str, turn: int, covers_us: int, count: int
) -> Iterator[LatencyMarker]:
    """The markers of a source that reads again after a rest.

    The first of the records became due when the rest began and the others at equal distances since, the last of them
    half a distance ago on average. Of a few records each marker stands for one, and they spread evenly over them; of
    more, each stands for all of them, on a channel of its own.

    Args:
        rested_us: how long the source rested, microseconds; 0: not at all.
        records: that it has read since; 0: the first one may have become due at any time, and so all are spread evenly.
        now_us: processing time.
        source: the name of the task.
        turn: of a few records, decides for which ones they stand.
        covers_us: the time for which all of them stand.
        count: of the markers; of a few records no more than those.

    Example:
        >>> for marker in markers_after(6_000, 2, 9_000, "read[0]", 0, 6_000, 2):
        ...     print(marker.marked_us, marker.covers_us)
        3000 3000
        7000 3000
        >>> [*markers_after(6_000, 60, 9_000, "read[0]", 0, 6_000, 1)]
        [LatencyMarker(marked_us=9000, source='read[0]', rested_us=6050, covers_us=6000)]
    """
    if not rested_us or not records or records >= FEW:
        spread_us = rested_us * 2 * records // (2 * records - 1) if records else rested_us
        for _ in range(count):
            yield LatencyMarker(now_us, source, spread_us, covers_us // count)
        return
    for part in range(count):
        place = (1_000 * part + turn * _TURNS % 1_000) * records // (1_000 * count)
        marked_us = now_us - rested_us + 2 * place * rested_us // (2 * records - 1)
        yield LatencyMarker(marked_us, source, covers_us=covers_us // count)


def spread(arrived_us: Int64s, travelled_us: Int64s, rested_us: Int64s, covers_us: Int64s) -> tuple[Int64s, Int64s]:
    """How long records took that became due with each marker: they spread evenly over the source's rest before it.

    Args:
        arrived_us, travelled_us, rested_us, covers_us: of the markers, shape (n,).

    Returns:
        When they arrived and how long they took, shape (m,): for each marker as many as `EACH_US` are in the time for
        which it stands.
    """
    ends: Int64s = (np.cumsum(covers_us) + EACH_US - 1) // EACH_US
    counts: Int64s = ends.copy()
    counts[1:] -= ends[:-1]
    of = np.repeat(np.arange(len(ends)), counts)
    place: Int64s = np.arange(len(of)) - (ends - counts)[of]
    # The times of one marker stand at equal distances in its rest. Those of the next one stand between them, so that a
    # percentile of many equal rests is none of a few values.
    between: Int64s = (np.arange(len(ends)) * 618 + 500) % 1_000
    rests: Int64s = rested_us[of] * (1_000 * place + between[of]) // (1_000 * counts[of])
    times: Int64s = travelled_us[of] + rests
    arrived: Int64s = arrived_us[of]
    return arrived, times
