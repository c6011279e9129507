"""The interface between a task and its fault-tolerance policy, which decides what to do with barriers.

The runtime calls a `TaskPolicy` at named points. Each barrier names the policy of its checkpoint (``policies.py``), so
the policy can change between two checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.aligned import AlignedBarriers
from workbench.runtime.barriers.fault_tolerance import BarrierHandler
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.barriers.snapshots import Arrival, Takes
from workbench.runtime.barriers.unaligned import UnalignedBarriers
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


class TaskPolicy(Protocol):
    """The points at which a task calls its fault-tolerance policy."""

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """A source was asked to start a checkpoint."""

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A barrier has arrived on a channel."""

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """A channel has ended; no barrier will arrive on it."""

    def on_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete."""

    def on_abort(self, checkpoint_id: int) -> None:
        """A checkpoint was aborted."""


class SourceBarriers:
    """The policy of a source: it has nothing to align, and stops reading during a checkpoint if its mode requires it.

    Args:
        snapshots: takes the snapshots.
        hold: called with True to stop reading, and with False to resume it.
    """

    __slots__ = ("_held_for", "_hold", "_snapshots")

    def __init__(self, snapshots: Takes, hold: Callable[[bool], None]) -> None:
        self._snapshots = snapshots
        self._hold = hold
        self._held_for: int | None = None

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """Take the snapshot immediately."""
        if not self._snapshots.wants(barrier.checkpoint_id):
            return
        snapshots = self._snapshots
        if barrier.offsets is False and snapshots.saved_at is None:  # the first barrier was aborted before it came here
            barrier = replace(barrier, offsets=True)
        copied = snapshots.take(barrier)
        again = 0 if barrier.offsets is None else snapshots.records_in - (snapshots.saved_at or 0)
        snapshots.report(copied, Arrival(now_us - barrier.triggered_us, early=again))
        if policy_of(barrier.mode).stops_sources:
            self._held_for = barrier.checkpoint_id
            self._hold(True)

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A source has no channels."""

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """A source has no channels."""

    def on_complete(self, checkpoint_id: int) -> None:
        """Resume reading if the source was waiting for this checkpoint."""
        if self._held_for is not None and self._held_for <= checkpoint_id:
            self._held_for = None
            self._hold(False)

    def on_abort(self, checkpoint_id: int) -> None:
        """Resume reading if the source was waiting for this checkpoint."""
        if self._held_for == checkpoint_id:
            self._held_for = None
            self._hold(False)


class OperatorBarriers:
    """The policy of a task with inputs: a barrier goes to the handler of its mode, or to the handler of unaligned
    barriers once it has overtaken records.

    Args:
        gate: the task's inputs.
        snapshots: takes its snapshots.
    """

    __slots__ = ("_aligned", "_gate", "_handlers", "_snapshots", "_unaligned")

    def __init__(self, gate: InputGate, snapshots: Takes) -> None:
        self._gate = gate
        self._snapshots = snapshots
        self._aligned = AlignedBarriers(gate, snapshots)
        self._unaligned = UnalignedBarriers(gate, snapshots)
        self._handlers: dict[Callable[[InputGate, Takes], BarrierHandler], BarrierHandler] = {
            AlignedBarriers: self._aligned
        }

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """Does nothing: only sources are triggered."""

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Pass the barrier to its handler; a checkpoint becomes unaligned with the first barrier that overtakes
        records."""
        checkpoint_id = barrier.checkpoint_id
        if self._unaligned.collects(checkpoint_id):
            self._unaligned.on_barrier(channel, barrier, now_us)
        elif not self._snapshots.wants(checkpoint_id):
            return  # this task has taken its snapshot, or the checkpoint was aborted
        elif barrier.behind is not None:
            self._unaligned.begin(barrier, self._aligned.hand_over(checkpoint_id), now_us)
            self._unaligned.on_barrier(channel, barrier, now_us)
        else:
            self._unaligned.drop()
            makes = policy_of(barrier.mode).barriers or AlignedBarriers
            if makes not in self._handlers:
                self._handlers[makes] = makes(self._gate, self._snapshots)
            self._handlers[makes].on_barrier(channel, barrier, now_us)

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """Treat the ended channel as if its barriers had arrived."""
        for handler in (*self._handlers.values(), self._unaligned):
            handler.on_end(channel, now_us)

    def on_complete(self, checkpoint_id: int) -> None:
        """Does nothing: this task has already taken its snapshot."""

    def on_abort(self, checkpoint_id: int) -> None:
        """Discard what was collected for the checkpoint."""
        for handler in (*self._handlers.values(), self._unaligned):
            handler.on_abort(checkpoint_id)
