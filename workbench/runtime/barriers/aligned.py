"""Aligned barriers: the asynchronous barrier snapshot algorithm, exactly once (F2-9 to F2-15).

A channel is blocked once its barrier has arrived. When the barriers of all channels have arrived, the task copies its
state and forwards the barrier. The snapshot therefore holds the effect of every record before the barriers and of no
record behind them.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.snapshots import Arrival, Takes
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


@dataclass(frozen=True, slots=True)
class Begun:
    """An alignment that has begun.

    Attributes:
        first_us: when the first barrier arrived.
        records_in, bytes_in: what the task had received by then.
        arrived: channels whose barrier has arrived.
    """

    first_us: int
    records_in: int
    bytes_in: int
    arrived: tuple[InputChannel, ...]


class AlignedBarriers:
    """Aligned barriers for one task.

    Args:
        gate: the task's inputs.
        snapshots: takes its snapshots.
    """

    __slots__ = ("_aligned", "_aligning", "_bytes_in", "_first_us", "_gate", "_records_in", "_snapshots")

    def __init__(self, gate: InputGate, snapshots: Takes) -> None:
        self._gate = gate
        self._snapshots = snapshots
        self._aligning: CheckpointBarrier | None = None
        self._aligned = 0  # channels at the front that are aligned; none of them is checked again before the release
        self._first_us = 0
        self._records_in = self._bytes_in = 0

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Block the channel, and take the snapshot when the last barrier has arrived."""
        if self._aligning is None or barrier.checkpoint_id > self._aligning.checkpoint_id:
            self._release()  # of an older checkpoint, which was aborted: otherwise its barrier would have come first
            self._aligning = barrier
            self._first_us = now_us
            self._records_in = self._snapshots.records_in
            self._bytes_in = self._gate.bytes_received
        elif barrier.checkpoint_id < self._aligning.checkpoint_id:
            return
        channel.blocked_us = now_us
        channel.blocked = True
        self._complete_if_aligned(now_us)

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """The ended channel counts as aligned."""
        if self._aligning is not None:
            self._complete_if_aligned(now_us)

    def on_abort(self, checkpoint_id: int) -> None:
        """Unblock the blocked channels."""
        if self._aligning is not None and self._aligning.checkpoint_id == checkpoint_id:
            self._release()

    def hand_over(self, checkpoint_id: int) -> Begun | None:
        """Stop aligning and unblock the channels; returns the alignment begun for this checkpoint, if any."""
        begun: Begun | None = None
        if self._aligning is not None and self._aligning.checkpoint_id == checkpoint_id:
            arrived = tuple(channel for channel in self._gate.channels if channel.blocked)
            begun = Begun(self._first_us, self._records_in, self._bytes_in, arrived)
        self._release()
        return begun

    def _complete_if_aligned(self, now_us: int) -> None:
        barrier = self._aligning
        assert barrier is not None
        channels = self._gate.channels
        while self._aligned < len(channels) and (channels[self._aligned].blocked or channels[self._aligned].finished):
            self._aligned += 1
        if self._aligned == len(channels):
            snapshots = self._snapshots
            arrival = Arrival(
                start_delay_us=self._first_us - barrier.triggered_us,
                alignment_us=now_us - self._first_us,
                processed=snapshots.records_in - self._records_in,
                processed_bytes=self._gate.bytes_received - self._bytes_in,
            )
            snapshots.report(snapshots.take(barrier), arrival)
            self._release()

    def _release(self) -> None:
        if self._aligning is not None:
            self._aligning = None
            self._aligned = 0
            for channel in self._gate.channels:
                channel.blocked = False


EXACTLY_ONCE = FaultTolerance(
    name="exactly-once",
    title="aligned",
    help="barriers are aligned: a channel whose barrier has arrived waits for the other barriers",
    switches=True,
)
STOP_THE_WORLD = FaultTolerance(
    name="stop-the-world",
    title="stop the world",
    help="aligned, and the sources read nothing while a checkpoint is taken (E9)",
    stops_sources=True,
    one_at_a_time="the sources stand still until one is complete",
)
