"""Unaligned barriers: exactly once without waiting for in-flight records.

A barrier overtakes the records on its channel, and the task copies its state when the first barrier arrives, without
waiting for the other channels. So checkpoints are fast even under backpressure. What the barriers have overtaken is
part of the checkpoint:

* on each channel, the buffers that the sender sent before the barrier and that the task had not received at its
snapshot, with the watermarks between them. Where the barrier has arrived, they are in the queue and are taken from
there at once. Where it has not, the task keeps processing the channel and logs what it receives until the barrier
arrives.
* what the senders had not shipped; they report it themselves (``snapshots.py``).

The running job shares these buffers; they are not copied. Each barrier carries the number of buffers sent before it,
so finding the in-flight buffers takes a subtraction and no search (I1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.elements import CheckpointBarrier, Element
from workbench.runtime.barriers.aligned import Begun
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.snapshots import Arrival, Copied, Takes
from workbench.runtime.exchange.in_flight import InFlight, between
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


@dataclass(slots=True)
class _Collecting:
    """A checkpoint whose state is copied while some of its barriers have not arrived."""

    copied: Copied
    first_us: int
    records_in: int
    bytes_in: int
    waiting: list[InputChannel]
    found: list[InFlight] = field(default_factory=list)


class UnalignedBarriers:
    """Unaligned barriers for one task.

    Args:
        gate: the task's inputs.
        snapshots: takes its snapshots.
    """

    __slots__ = ("_collecting", "_gate", "_snapshots")

    def __init__(self, gate: InputGate, snapshots: Takes) -> None:
        self._gate = gate
        self._snapshots = snapshots
        self._collecting: _Collecting | None = None

    def collects(self, checkpoint_id: int) -> bool:
        """Whether barriers of this checkpoint are still expected."""
        return self._collecting is not None and self._collecting.copied.barrier.checkpoint_id == checkpoint_id

    def begin(self, barrier: CheckpointBarrier, begun: Begun | None, now_us: int) -> None:
        """Take the snapshot, and log what arrives from now on.

        Args:
            barrier: the first barrier that has overtaken records.
            begun: the alignment that it ends; channels that had aligned by then have nothing in flight.
            now_us: processing time.
        """
        self.drop()
        if begun is None:
            begun = Begun(now_us, self._snapshots.records_in, self._gate.bytes_received, ())
        waiting = [c for c in self._gate.channels if not c.finished and c not in begun.arrived]
        copied = self._snapshots.take(barrier)
        for channel in waiting:
            channel.log = []
        self._collecting = _Collecting(copied, begun.first_us, begun.records_in, begun.bytes_in, waiting)

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Take what the barrier has overtaken, and report the snapshot when it was the last."""
        collecting = self._collecting
        assert collecting is not None
        if channel in collecting.waiting:
            elements = channel.log or []
            if barrier.behind is not None:
                before = barrier.behind - channel.channel.buffers_received
                elements += channel.channel.oldest(before, barrier.watermark_us)
            self._keep(channel, elements, collecting)
            self._no_longer(channel, collecting)
        self._report_if_whole(now_us)

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """The ended channel delivers no barrier; what it has delivered since the snapshot was in flight."""
        collecting = self._collecting
        if collecting is not None and channel in collecting.waiting:
            self._keep(channel, channel.log or [], collecting)
            self._no_longer(channel, collecting)
            self._report_if_whole(now_us)

    def on_abort(self, checkpoint_id: int) -> None:
        """Stop logging for the checkpoint."""
        if self.collects(checkpoint_id):
            self.drop()

    def drop(self) -> None:
        """Discard what was collected: the checkpoint no longer needs it."""
        if self._collecting is not None:
            for channel in self._collecting.waiting:
                channel.log = None
            self._collecting = None

    def _keep(self, channel: InputChannel, elements: Sequence[Element], collecting: _Collecting) -> None:
        piece = between(channel.channel.flow, elements)
        if piece is not None:
            collecting.found.append(piece)

    def _no_longer(self, channel: InputChannel, collecting: _Collecting) -> None:
        channel.log = None
        collecting.waiting.remove(channel)

    def _report_if_whole(self, now_us: int) -> None:
        collecting = self._collecting
        if collecting is None or collecting.waiting:
            return
        self._collecting = None
        barrier = collecting.copied.barrier
        arrival = Arrival(
            start_delay_us=collecting.first_us - barrier.triggered_us,
            alignment_us=now_us - collecting.first_us,
            processed=self._snapshots.records_in - collecting.records_in,
            in_flight=tuple(collecting.found),
            processed_bytes=self._gate.bytes_received - collecting.bytes_in,
        )
        self._snapshots.report(collecting.copied, arrival)


UNALIGNED = FaultTolerance(
    name="unaligned",
    title="unaligned",
    help="exactly once, with barriers that overtake in-flight records, which become part of the checkpoint",
    aligned=False,
    overtakes=True,
    one_at_a_time="each of them would store the in-flight records",
)
