"""Fault tolerance as a policy: what a task does with barriers is not the task's business.

The runtime calls a `TaskPolicy` at named points; `AlignedBarriers` is the asynchronous barrier snapshot algorithm with
aligned, exactly-once semantics (F2-9 to F2-15): a channel whose barrier has come is held back until the barriers of all
others have come, then the state is copied and the barrier goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workbench.elements import CheckpointBarrier
from workbench.runtime.input_gate import InputChannel, InputGate


class TaskPolicy(Protocol):
    """The points at which a task asks its fault-tolerance policy."""

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """A source was told to begin a checkpoint."""
        ...

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A barrier came in on a channel."""
        ...

    def on_end(self, now_us: int) -> None:
        """A channel has ended; it will bring no barrier."""
        ...

    def on_abort(self, checkpoint_id: int) -> None:
        """A checkpoint was given up."""
        ...


TakeSnapshot = Callable[[CheckpointBarrier, int, int], None]
"""Called with the barrier, the start delay and the alignment time, both in microseconds."""


class AlignedBarriers:
    """Aligned barriers for one task.

    Args:
        gate: the task's inputs; none for a source.
        take_snapshot: copies the task's state and forwards the barrier.
    """

    __slots__ = ("_aligning", "_first_us", "_gate", "_last_id", "_take_snapshot")

    def __init__(self, gate: InputGate | None, take_snapshot: TakeSnapshot) -> None:
        self._gate = gate
        self._take_snapshot = take_snapshot
        self._aligning: CheckpointBarrier | None = None
        self._first_us = 0
        self._last_id = 0

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """A source has nothing to align."""
        if barrier.checkpoint_id > self._last_id:
            self._last_id = barrier.checkpoint_id
            self._take_snapshot(barrier, now_us - barrier.triggered_us, 0)

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """Hold the channel back, and snapshot when the last barrier has come."""
        if barrier.checkpoint_id <= self._last_id:
            return  # of a checkpoint that was given up
        if self._aligning is None or barrier.checkpoint_id > self._aligning.checkpoint_id:
            self._release()
            self._aligning = barrier
            self._first_us = now_us
        elif barrier.checkpoint_id < self._aligning.checkpoint_id:
            return
        channel.blocked = True
        self._complete_if_aligned(now_us)

    def on_end(self, now_us: int) -> None:
        """The ended channel counts as aligned."""
        if self._aligning is not None:
            self._complete_if_aligned(now_us)

    def on_abort(self, checkpoint_id: int) -> None:
        """Let the held channels go on."""
        self._last_id = max(self._last_id, checkpoint_id)
        if self._aligning is not None and self._aligning.checkpoint_id <= checkpoint_id:
            self._release()

    def _complete_if_aligned(self, now_us: int) -> None:
        assert self._gate is not None
        barrier = self._aligning
        assert barrier is not None
        if all(channel.blocked or channel.finished for channel in self._gate.channels):
            self._last_id = barrier.checkpoint_id
            self._take_snapshot(barrier, self._first_us - barrier.triggered_us, now_us - self._first_us)
            self._release()

    def _release(self) -> None:
        self._aligning = None
        if self._gate is not None:
            for channel in self._gate.channels:
                channel.blocked = False
