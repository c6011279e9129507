"""Barriers without alignment: no channel is blocked, and the snapshot is taken when the last barrier has arrived.

Latency does not suffer from the slowest channel. But records that a faster channel delivers behind its barrier are
already in the snapshot. After a failure their sender resumes from the barrier and sends them again, so they take effect
twice. Each snapshot counts these records.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.snapshots import Arrival, Takes
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


@dataclass(slots=True)
class _Counting:
    """The barriers of one checkpoint that have arrived; for each channel, how many records it had delivered by then."""

    barrier: CheckpointBarrier
    first_us: int
    records_in: int
    bytes_in: int
    received: dict[InputChannel, int] = field(default_factory=dict)
    counted: int = 0
    """How many channels at the front have delivered their barrier, or never will."""


class CountedBarriers:
    """Barriers that are only counted, for one task; several checkpoints may be in progress.

    Where the positions of sources have a clock of their own, the records that a restore repeats are counted from the
    last barrier with new positions: everything behind that barrier is read again.

    Args:
        gate: the task's inputs.
        snapshots: takes its snapshots.
    """

    __slots__ = ("_counting", "_gate", "_since", "_snapshots")

    def __init__(self, gate: InputGate, snapshots: Takes) -> None:
        self._gate = gate
        self._snapshots = snapshots
        self._counting: dict[int, _Counting] = {}
        self._since: dict[InputChannel, int] = {}

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Record the barrier, and take the snapshot when it was the last."""
        counting = self._counting.get(barrier.checkpoint_id)
        if counting is None:
            counting = _Counting(barrier, now_us, self._snapshots.records_in, self._gate.bytes_received)
            self._counting[barrier.checkpoint_id] = counting
        elif counting.barrier.offsets and not barrier.offsets:
            counting.barrier = (
                barrier  # not every source saved new positions, so the receivers count from the older ones
            )
        if barrier.offsets is None:
            counting.received[channel] = channel.channel.records_received
        else:
            if barrier.offsets:
                self._since[channel] = channel.channel.records_received
            counting.received[channel] = self._since.get(channel, 0)
        self._complete(now_us)

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """An ended channel delivers no further barriers."""
        self._complete(now_us)

    def on_abort(self, checkpoint_id: int) -> None:
        """Forget the checkpoint."""
        self._counting.pop(checkpoint_id, None)

    def _complete(self, now_us: int) -> None:
        for checkpoint_id, counting in sorted(self._counting.items()):
            channels = self._gate.channels
            while counting.counted < len(channels) and (
                channels[counting.counted] in counting.received or channels[counting.counted].finished
            ):
                counting.counted += 1
            if counting.counted < len(channels):
                return  # no later one can be complete: each channel delivers barriers in order
            del self._counting[checkpoint_id]
            if not self._snapshots.wants(checkpoint_id):
                continue
            early = sum(channel.channel.records_received - before for channel, before in counting.received.items())
            arrival = Arrival(
                start_delay_us=counting.first_us - counting.barrier.triggered_us,
                alignment_us=now_us - counting.first_us,
                processed=self._snapshots.records_in - counting.records_in,
                early=early,
                processed_bytes=self._gate.bytes_received - counting.bytes_in,
            )
            self._snapshots.report(self._snapshots.take(counting.barrier), arrival)


AT_LEAST_ONCE = FaultTolerance(
    name="at-least-once",
    title="at least once",
    help="nothing waits for a barrier, and some records are counted twice after a failure",
    barriers=CountedBarriers,
    guarantee="at-least-once",
    aligned=False,
)
