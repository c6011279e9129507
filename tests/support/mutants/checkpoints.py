"""Bugs in how checkpoints are taken and made complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.operators.aggregates.aggregate import _RollingAggregate
from workbench.runtime.barriers.aligned import AlignedBarriers
from workbench.runtime.barriers.snapshots import Arrival
from workbench.runtime.barriers.unaligned import UnalignedBarriers
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.input_gate import InputGate
from workbench.runtime.messages.messages import Complete
from workbench.runtime.tasks.source_task import SourceTask

Patch = pytest.MonkeyPatch


def blocked_channels_are_polled(patch: Patch) -> None:
    poll = InputGate.poll

    def eager(self: InputGate) -> Any:
        blocked = [channel.blocked for channel in self.channels]
        for channel in self.channels:
            channel.blocked = False
        polled = poll(self)
        for channel, was in zip(self.channels, blocked, strict=True):
            channel.blocked = was
        return polled

    patch.setattr(InputGate, "poll", eager)


def snapshot_at_the_first_barrier(patch: Patch) -> None:
    def complete(self: AlignedBarriers, now_us: int) -> None:
        barrier: Any = self._aligning
        self._snapshots.report(self._snapshots.take(barrier), Arrival(0))
        self._release()

    patch.setattr(AlignedBarriers, "_complete_if_aligned", complete)


def aborted_alignment_is_not_released(patch: Patch) -> None:
    patch.setattr(AlignedBarriers, "on_abort", lambda self, checkpoint_id: None)


def commit_before_the_checkpoint_is_durable(patch: Patch) -> None:
    make_complete = CheckpointCoordinator._make_complete

    def hasty(self: CheckpointCoordinator, record: Any, now_us: Callable[[], int]) -> None:
        if self._attempt is not None:
            self._attempt.tell(Complete(record.checkpoint_id))
        make_complete(self, record, now_us)

    patch.setattr(CheckpointCoordinator, "_make_complete", hasty)


def checkpoint_without_the_last_state(patch: Patch) -> None:
    snapshot_taken = CheckpointCoordinator.snapshot_taken

    def impatient(self: CheckpointCoordinator, report: Any, now_us: Callable[[], int]) -> None:
        record = self.in_progress.get(report.barrier.checkpoint_id)
        if record is not None and not record.completing and len(record.acknowledgements) == len(record.tasks) - 1:
            self._make_complete(record, now_us)
        snapshot_taken(self, report, now_us)

    patch.setattr(CheckpointCoordinator, "snapshot_taken", impatient)


def no_checkpoint_at_the_end(patch: Patch) -> None:
    def drain(self: SourceTask) -> None:
        self.drained = True
        self.root.on_watermark(2**63 - 1)
        self._finish()

    patch.setattr(SourceTask, "_drain", drain)


def states_count_before_they_are_written(patch: Patch) -> None:
    make_complete = CheckpointCoordinator._make_complete

    def once(self: CheckpointCoordinator, record: Any, now_us: Callable[[], int]) -> None:
        if not record.completing:
            make_complete(self, record, now_us)

    patch.setattr(CheckpointCoordinator, "_make_complete", once)
    patch.setattr(CheckpointRecord, "acknowledged", property(lambda self: len(self.acknowledgements)))


def overtaken_buffers_are_not_kept(patch: Patch) -> None:
    on_barrier = UnalignedBarriers.on_barrier

    def forgetful(self: Any, channel: Any, barrier: Any, now_us: int) -> None:
        if self._collecting is not None:
            self._collecting.found.clear()
        on_barrier(self, channel, barrier, now_us)

    patch.setattr(UnalignedBarriers, "on_barrier", forgetful)


def an_overtaking_barrier_takes_no_buffers_along(patch: Patch) -> None:
    patch.setattr(Channel, "oldest", lambda self, count: [])


def snapshots_share_the_state(patch: Patch) -> None:
    """A checkpoint that is written in the background must not see what comes after its barrier."""
    snapshot = _RollingAggregate.snapshot

    def lazy(self: Any, checkpoint_id: int) -> Any:
        return {name: (lambda name=name: snapshot(self, checkpoint_id)[name]) for name in snapshot(self, checkpoint_id)}

    patch.setattr(_RollingAggregate, "snapshot", lazy)
