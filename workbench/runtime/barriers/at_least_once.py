"""Barriers without alignment: nothing is held back, and the snapshot is taken when the last barrier has come.

Latency does not suffer from the slowest channel. But what a faster channel brings behind its barrier is in the snapshot
already, and after a failure its sender, which goes on from the barrier, sends it again: its effect is there twice. How
many records that are is counted with each snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.snapshots import Arrival, Takes
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


@dataclass(slots=True)
class _Counting:
    """The barriers of one checkpoint that have come; for each channel, how many records it had brought by then."""

    barrier: CheckpointBarrier
    first_us: int
    records_in: int
    bytes_in: int
    received: dict[InputChannel, int] = field(default_factory=dict)
    counted: int = 0
    """So many channels at the front have brought theirs, or never will."""


class CountedBarriers:
    """Barriers that are only counted, for one task; several checkpoints may be under way.

    Args:
        gate: the task's inputs.
        snapshots: takes its snapshots.
    """

    __slots__ = ("_counting", "_gate", "_snapshots")

    def __init__(self, gate: InputGate, snapshots: Takes) -> None:
        self._gate = gate
        self._snapshots = snapshots
        self._counting: dict[int, _Counting] = {}

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Note that it has come, and snapshot when it was the last."""
        counting = self._counting.get(barrier.checkpoint_id)
        if counting is None:
            counting = _Counting(barrier, now_us, self._snapshots.records_in, self._gate.bytes_received)
            self._counting[barrier.checkpoint_id] = counting
        counting.received[channel] = channel.channel.records_received
        self._complete(now_us)

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """The ended channel will bring none."""
        self._complete(now_us)

    def on_abort(self, checkpoint_id: int) -> None:
        """Forget it."""
        self._counting.pop(checkpoint_id, None)

    def _complete(self, now_us: int) -> None:
        for checkpoint_id, counting in sorted(self._counting.items()):
            channels = self._gate.channels
            while counting.counted < len(channels) and (
                channels[counting.counted] in counting.received or channels[counting.counted].finished
            ):
                counting.counted += 1
            if counting.counted < len(channels):
                return  # no later one can be complete: channels bring barriers in their order
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
    help="nothing waits for a barrier, and some records count twice after a failure",
    barriers=CountedBarriers,
    guarantee="at-least-once",
    aligned=False,
)
