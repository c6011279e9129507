"""Bugs in what sinks commit."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.connectors.parts import part_sink
from workbench.connectors.parts.part_sink import PartSinkLogic
from workbench.connectors.tables.table_sink import _TableSinkLogic
from workbench.connectors.tables.tables import Tables
from workbench.durations import MAX_TIME
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.tasks.task import Task

Patch = pytest.MonkeyPatch


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
                self._tables.commit(self._spec.name, part.subtask, part.epoch, rows.table())
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


def restored_rows_are_not_shown(patch: Patch) -> None:
    patch.setattr(_TableSinkLogic, "restore", lambda self, snapshots: None)


def rows_are_committed_at_the_end_without_a_checkpoint(patch: Patch) -> None:
    finish = Task._finish

    def hasty(self: Task) -> None:
        for link in self.links:
            link.operator.notify_complete(10**9)
        finish(self)

    def on_watermark(self: Any, watermark_us: int, out: Any) -> None:
        if watermark_us == MAX_TIME:
            self.snapshot(self._log.committed + 1)
            self.notify_complete(10**9)

    patch.setattr(Task, "_finish", hasty)
    patch.setattr(_TableSinkLogic, "on_watermark", on_watermark)


def a_completion_is_not_said_again(patch: Patch) -> None:
    begin = Attempts._begin

    def mute(self: Any, execution: Any, settings: Any, manifest: Any) -> None:
        begin(self, execution, settings, None)

    patch.setattr(Attempts, "_begin", mute)
    patch.setattr(_TableSinkLogic, "_recover", lambda self, part, pending: part)


def a_sink_goes_on_behind_its_last_commit(patch: Patch) -> None:
    """The oldest checkpoint is resumed, and the sink does not mind."""
    manifests = DirectoryStorage.manifests
    patch.setattr(DirectoryStorage, "manifests", lambda self: manifests(self)[:1])
    patch.setattr(part_sink, "_parts", lambda folder: [])
