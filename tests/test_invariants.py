"""The checker must be able to fail: each test plants one bug in the runtime, and simulations have to find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.connectors.block_reader import BlockReader
from workbench.connectors.part_sink import PartSinkLogic
from workbench.connectors.table_sink import _TableSinkLogic
from workbench.connectors.tables import Tables
from workbench.durations import NO_TIME
from workbench.elements import CheckpointBarrier, Records
from workbench.operators import window_tumbling
from workbench.operators.watermarks import Marks
from workbench.runtime.aligned import AlignedBarriers
from workbench.runtime.channel import Channel
from workbench.runtime.coordinator import CheckpointCoordinator
from workbench.runtime.input_gate import InputGate, WatermarkValve
from workbench.runtime.output import EdgeOutput, OutputPool
from workbench.runtime.snapshots import Arrival
from workbench.runtime.source_task import SourceTask
from workbench.runtime.storage import DirectoryStorage
from workbench.testing import simulate

Patch = pytest.MonkeyPatch
SEEDS = 600  # most bugs show within ten; the rest leaves room for changes that deal other cards


def barrier_overtakes_partial_buffers(patch: Patch) -> None:
    def emit_event(self: EdgeOutput, element: Any) -> None:
        for partial in self.partials:
            partial.channel.push(element)
            partial.ship()

    patch.setattr(EdgeOutput, "emit_event", emit_event)


def partial_buffers_are_lost_at_a_barrier(patch: Patch) -> None:
    emit_event = EdgeOutput.emit_event

    def forgetful(self: EdgeOutput, element: Any) -> None:
        if isinstance(element, CheckpointBarrier):
            for partial in self.partials:
                partial.parts, partial.rows = [], 0
        emit_event(self, element)

    patch.setattr(EdgeOutput, "emit_event", forgetful)


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
            self._attempt.complete(record.checkpoint_id)
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


def recovery_does_not_wait_for_a_manifest_on_its_way(patch: Patch) -> None:
    patch.setattr(CheckpointCoordinator, "settled", True)


def no_checkpoint_at_the_end(patch: Patch) -> None:
    def drain(self: SourceTask) -> None:
        self.drained = True
        self._emit_watermark(2**63 - 1)
        self._finish()

    patch.setattr(SourceTask, "_drain", drain)


def source_position_is_not_restored(patch: Patch) -> None:
    patch.setattr(BlockReader, "restore", lambda self, snapshots: None)


def source_position_is_that_of_the_last_poll(patch: Patch) -> None:
    restore = BlockReader.restore

    def skipping(self: BlockReader, snapshots: Any) -> None:
        restore(self, snapshots)
        self._positions = {split: position + (position > 0) for split, position in self._positions.items()}

    patch.setattr(BlockReader, "restore", skipping)


def source_forgets_how_far_event_time_was(patch: Patch) -> None:
    observe = SourceTask._observe

    def forgetful(self: SourceTask, records: Records, split: str, now_us: int) -> Marks:
        marks = observe(self, records, split, now_us)
        if records.timestamps is not None:  # as if nulls and disorder were never there
            generator: Any = self.splits[split].generator
            generator.largest_us = max(generator.largest_us, int(records.timestamps[0]) + 10**6)
        return marks

    patch.setattr(SourceTask, "_observe", forgetful)


def one_key_group_is_not_restored(patch: Patch) -> None:
    owned_groups = window_tumbling.owned_groups

    def skipping(*args: Any) -> Any:
        groups = owned_groups(*args)
        return None if groups is None else groups.slice(1)

    patch.setattr(window_tumbling, "owned_groups", skipping)


def fired_windows_fire_again_after_recovery(patch: Patch) -> None:
    restore = window_tumbling.TumblingAggregate.restore

    def forgetful(self: Any, snapshots: Any) -> None:
        restore(self, snapshots)
        self._fired[:] = False
        self._unfired_start = NO_TIME

    patch.setattr(window_tumbling.TumblingAggregate, "restore", forgetful)


def window_forgets_its_watermark(patch: Patch) -> None:
    snapshot = window_tumbling.TumblingAggregate.snapshot

    def forgetful(self: Any, checkpoint_id: int) -> Any:
        return {**snapshot(self, checkpoint_id), "watermark": NO_TIME}

    patch.setattr(window_tumbling.TumblingAggregate, "snapshot", forgetful)


def watermark_is_the_maximum(patch: Patch) -> None:
    def advance(self: WatermarkValve) -> int | None:
        furthest = max(channel.watermark_us for channel in self._channels)
        if furthest <= self.output_us:
            return None
        self.output_us = furthest
        return furthest

    patch.setattr(WatermarkValve, "advance", advance)


def watermark_overtakes_partial_buffers(patch: Patch) -> None:
    def emit_watermark(self: EdgeOutput, watermark: Any) -> None:
        for partial in self.partials:
            partial.channel.push(watermark)

    patch.setattr(EdgeOutput, "emit_watermark", emit_watermark)


def epochs_are_committed_twice(patch: Patch) -> None:
    commit = Tables.commit

    def careless(self: Tables, name: str, subtask: int, epoch: int, table: Any) -> None:
        self._entry(name).epochs[subtask] = 0
        commit(self, name, subtask, epoch, table)

    patch.setattr(Tables, "commit", careless)
    patch.setattr(Tables, "last_epoch", lambda self, name, subtask=None: 0)


def only_the_newest_epoch_is_committed(patch: Patch) -> None:
    def notify_complete(self: Any, checkpoint_id: int) -> None:
        for part, rows in self._uncommitted:
            if part.epoch == checkpoint_id:
                self._tables.commit(self._spec.name, part.subtask, part.epoch, rows)
        self._uncommitted = []

    patch.setattr(_TableSinkLogic, "notify_complete", notify_complete)


def files_are_committed_without_a_checkpoint(patch: Patch) -> None:
    snapshot = PartSinkLogic.snapshot

    def hasty(self: Any, checkpoint_id: int) -> Any:
        pieces = snapshot(self, checkpoint_id)
        for pending in self._pending:
            pending.file.write()
        self._commit(self._pending)
        return pieces

    patch.setattr(PartSinkLogic, "snapshot", hasty)


def files_are_not_committed_by_a_restore(patch: Patch) -> None:
    def restore(self: Any, snapshots: Any) -> None:
        self._epoch = max(int(snapshot["checkpoint"]) for snapshot in snapshots) + 1
        self._begun = True

    patch.setattr(PartSinkLogic, "restore", restore)


def the_oldest_checkpoint_is_resumed(patch: Patch) -> None:
    manifests = DirectoryStorage.manifests
    patch.setattr(DirectoryStorage, "manifests", lambda self: manifests(self)[:1])


def restored_rows_are_not_shown(patch: Patch) -> None:
    patch.setattr(_TableSinkLogic, "restore", lambda self, snapshots: None)


def a_push_does_not_wake_the_receiver(patch: Patch) -> None:
    def push(self: Channel, element: Any) -> None:
        if type(element) is Records:
            self.buffers_sent += 1
            self.records_sent += element.batch.num_rows
        self.elements.append(element)

    patch.setattr(Channel, "push", push)


def a_poll_does_not_wake_the_sender(patch: Patch) -> None:
    def poll(self: Channel) -> Any:
        if not self.elements:
            return None
        element = self.elements.popleft()
        if type(element) is Records:
            self.buffers_received += 1
            self.records_received += element.batch.num_rows
        return element

    patch.setattr(Channel, "poll", poll)


def the_newest_element_comes_first(patch: Patch) -> None:
    def poll(self: Channel) -> Any:
        self.elements.rotate(1)
        element = self.elements.popleft()
        if type(element) is Records:
            self.buffers_received += 1
            self.records_received += element.batch.num_rows
        self.sender.wake()
        return element

    patch.setattr(Channel, "poll", poll)


def a_full_pool_does_not_stop_the_task(patch: Patch) -> None:
    patch.setattr(OutputPool, "has_room", True)


def rebalance_forgets_the_remainder(patch: Patch) -> None:
    rebalance = EdgeOutput._rebalance

    def rounded(self: EdgeOutput, records: Records) -> None:
        rebalance(self, records.slice(0, len(records) - (len(records) > 2)))

    patch.setattr(EdgeOutput, "_rebalance", rounded)


MUTANTS = [
    barrier_overtakes_partial_buffers,
    partial_buffers_are_lost_at_a_barrier,
    blocked_channels_are_polled,
    snapshot_at_the_first_barrier,
    aborted_alignment_is_not_released,
    commit_before_the_checkpoint_is_durable,
    checkpoint_without_the_last_state,
    recovery_does_not_wait_for_a_manifest_on_its_way,
    no_checkpoint_at_the_end,
    source_position_is_not_restored,
    source_position_is_that_of_the_last_poll,
    source_forgets_how_far_event_time_was,
    one_key_group_is_not_restored,
    fired_windows_fire_again_after_recovery,
    pytest.param(
        window_forgets_its_watermark, marks=pytest.mark.slow
    ),  # only a record that is late right after a crash
    watermark_is_the_maximum,
    watermark_overtakes_partial_buffers,
    epochs_are_committed_twice,
    only_the_newest_epoch_is_committed,
    files_are_committed_without_a_checkpoint,
    files_are_not_committed_by_a_restore,
    the_oldest_checkpoint_is_resumed,
    restored_rows_are_not_shown,
    a_push_does_not_wake_the_receiver,
    a_poll_does_not_wake_the_sender,
    the_newest_element_comes_first,
    a_full_pool_does_not_stop_the_task,
    rebalance_forgets_the_remainder,
]


WHERE = {
    recovery_does_not_wait_for_a_manifest_on_its_way: "filtered",
    fired_windows_fire_again_after_recovery: "late",
    window_forgets_its_watermark: "late",
    epochs_are_committed_twice: "latest",
    only_the_newest_epoch_is_committed: "latest",
    files_are_committed_without_a_checkpoint: "late",
    files_are_not_committed_by_a_restore: "late",
    rebalance_forgets_the_remainder: "rebalanced",
}
"""Bugs that show in one pipeline sooner than in others, or there alone."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_bug_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    pipelines = [WHERE[mutant]] if mutant in WHERE else None
    mutant(monkeypatch)
    results = (simulate(seed, pipelines=pipelines) for seed in range(SEEDS))
    assert any(not result.ok for result in results)
