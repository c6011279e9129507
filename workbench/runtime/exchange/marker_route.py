"""Which channel of an output a latency marker takes, and for which records it stands there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.elements import LatencyMarker
from workbench.runtime.exchange.pending_buffer import PendingBuffer

_AFTER_REST = 6
"""So many markers may follow one rest."""
_TURN = 1_146
"""Thousandths of a channel from one marker to the next: each channel is skipped now and then, so that every other
marker goes to another one of two channels at times, and at times to the same."""


class MarkerRoute:
    """The channels that the latency markers of one output take, one after another.

    Args:
        pending: the pending buffers of the output.

    Attributes:
        lag_us: of a marker that is sent now and happens to be in a buffer, how late the records before it were read;
            None: it is at the end of a rest, or another task's.
    """

    __slots__ = ("_pending", "_rows_before", "lag_us")

    def __init__(self, pending: Sequence[PendingBuffer]) -> None:
        self._pending = pending
        self.lag_us: int | None = None
        self._rows_before: dict[int, int] = {}  # by the turn of a marker, those of its channel before the rest

    def begin_rest(self, turn: int) -> None:
        """The source rests; the markers from that `turn` on will tell of the records that become due meanwhile."""
        pending = self._pending
        self._rows_before = {
            each: pending[each * _TURN // 1_000 % len(pending)].rows_ever for each in range(turn, turn + _AFTER_REST)
        }

    def end_rest(self) -> None:
        """The next markers tell of no rest."""
        self._rows_before = {}

    def of(self, marker: LatencyMarker, turn: int) -> tuple[PendingBuffer, LatencyMarker | None, LatencyMarker | None]:
        """Where a marker goes.

        The records that became due while the source rested may have filled a buffer, which is shipped, and the others
        wait for the next one. Then there is a marker for the ones and another one for the others.

        Args:
            marker: to be sent.
            turn: its number; chooses the channel.

        Returns:
            The pending buffer of the channel, the marker of records that are shipped, and that of records that wait.
        """
        pending = self._pending[turn * _TURN // 1_000 % len(self._pending)]
        rows_ever = pending.rows_ever
        added = rows_ever - self._rows_before.get(turn, rows_ever)
        if added <= pending.rows:
            return pending, None, marker
        waits = pending.rows / added
        later_us, covers_us = int(marker.rested_us * waits), int(marker.covers_us * waits)
        shipped = LatencyMarker(
            marker.marked_us - later_us, marker.source, marker.rested_us - later_us, marker.covers_us - covers_us
        )
        return pending, shipped, replace(marker, rested_us=later_us, covers_us=covers_us) if pending.rows else None
