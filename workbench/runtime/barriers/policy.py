"""Fault tolerance as a policy: what a task does with barriers is not the task's business.

The runtime calls a `TaskPolicy` at named points. Each barrier says in which mode its checkpoint is taken, so the mode
can change between two checkpoints; a file each has what an operator does in that mode:

================  ==============================================================================  ==================
exactly-once      a channel whose barrier has come is held back until the others' have (aligned)  ``aligned.py``
at-least-once     nothing is held back; what comes too early is in the state, and comes again     ``at_least_once.py``
unaligned         the barrier overtakes what is in flight, which becomes part of the checkpoint   ``unaligned.py``
stop-the-world    aligned, and the sources read nothing until the checkpoint is complete          here, `SourceBarriers`
================  ==============================================================================  ==================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.aligned import AlignedBarriers
from workbench.runtime.barriers.at_least_once import CountedBarriers
from workbench.runtime.barriers.snapshots import Arrival, Takes
from workbench.runtime.barriers.unaligned import UnalignedBarriers
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


class TaskPolicy(Protocol):
    """The points at which a task asks its fault-tolerance policy."""

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """A source was told to begin a checkpoint."""
        ...

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A barrier came in on a channel."""
        ...

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """A channel has ended; it will bring no barrier."""
        ...

    def on_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete."""
        ...

    def on_abort(self, checkpoint_id: int) -> None:
        """A checkpoint was given up."""
        ...


class SourceBarriers:
    """What a source does: it has nothing to align, and under stop-the-world it waits for the checkpoint (E9).

    Args:
        snapshots: takes them.
        hold: called with True when nothing more may be read, and with False when it may.
    """

    __slots__ = ("_held_for", "_hold", "_snapshots")

    def __init__(self, snapshots: Takes, hold: Callable[[bool], None]) -> None:
        self._snapshots = snapshots
        self._hold = hold
        self._held_for: int | None = None

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """Take the snapshot at once."""
        if not self._snapshots.wants(barrier.checkpoint_id):
            return
        self._snapshots.report(self._snapshots.take(barrier), Arrival(now_us - barrier.triggered_us))
        if barrier.mode == "stop-the-world":
            self._held_for = barrier.checkpoint_id
            self._hold(True)

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A source has no channels."""

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """A source has no channels."""

    def on_complete(self, checkpoint_id: int) -> None:
        """Read on, if this is what was waited for."""
        if self._held_for is not None and self._held_for <= checkpoint_id:
            self._held_for = None
            self._hold(False)

    def on_abort(self, checkpoint_id: int) -> None:
        """Read on, if this is what was waited for."""
        if self._held_for == checkpoint_id:
            self._held_for = None
            self._hold(False)


class OperatorBarriers:
    """What a task with inputs does: each barrier goes to the policy of its mode.

    Args:
        gate: the task's inputs.
        snapshots: takes its snapshots.
    """

    __slots__ = ("_aligned", "_counted", "_snapshots", "_unaligned")

    def __init__(self, gate: InputGate, snapshots: Takes) -> None:
        self._snapshots = snapshots
        self._aligned = AlignedBarriers(gate, snapshots)
        self._counted = CountedBarriers(gate, snapshots)
        self._unaligned = UnalignedBarriers(gate, snapshots)

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """Only sources are triggered."""

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Let the policy of its mode handle it; an aligned checkpoint goes over to unaligned with the first barrier
        that has overtaken."""
        checkpoint_id = barrier.checkpoint_id
        if self._unaligned.collects(checkpoint_id):
            self._unaligned.on_barrier(channel, barrier, now_us)
        elif not self._snapshots.wants(checkpoint_id):
            return  # this task has done its part, or the checkpoint was given up
        elif barrier.behind is not None:
            self._unaligned.begin(barrier, self._aligned.hand_over(checkpoint_id), now_us)
            self._unaligned.on_barrier(channel, barrier, now_us)
        elif barrier.mode == "at-least-once":
            self._counted.on_barrier(channel, barrier, now_us)
        else:
            self._unaligned.drop()
            self._aligned.on_barrier(channel, barrier, now_us)

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """The ended channel counts as if its barriers had come."""
        self._aligned.on_end(now_us)
        self._counted.on_end(now_us)
        self._unaligned.on_end(channel, now_us)

    def on_complete(self, checkpoint_id: int) -> None:
        """This task has done its part before."""

    def on_abort(self, checkpoint_id: int) -> None:
        """Forget what has come of it."""
        self._aligned.on_abort(checkpoint_id)
        self._counted.on_abort(checkpoint_id)
        self._unaligned.on_abort(checkpoint_id)
