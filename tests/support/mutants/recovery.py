"""Bugs in what an attempt goes on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.connectors.contract.block_reader import BlockReader
from workbench.connectors.parts import part_files
from workbench.drivers.faults.faulty_disk import ProbedDisk
from workbench.durable import disk
from workbench.durable.disk import DISK
from workbench.durations import NO_TIME
from workbench.errors import CorruptCheckpointError
from workbench.operators.process import process_logic
from workbench.operators.windows import tumbling as window_tumbling
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.deployment import deploying
from workbench.runtime.storage import DirectoryStorage, files, reading
from workbench.runtime.storage.files import LocalFiles
from workbench.runtime.storage.reading import CheckpointReader
from workbench.runtime.tasks.source_task import SourceTask

Patch = pytest.MonkeyPatch


def recovery_does_not_wait_for_a_manifest_on_its_way(patch: Patch) -> None:
    patch.setattr(CheckpointCoordinator, "settled", True)


def source_position_is_not_restored(patch: Patch) -> None:
    patch.setattr(BlockReader, "restore", lambda self, snapshots: None)


def source_position_is_that_of_the_last_poll(patch: Patch) -> None:
    restore = BlockReader.restore

    def skipping(self: BlockReader, snapshots: Any) -> None:
        restore(self, snapshots)
        self._positions = {split: position + (position > 0) for split, position in self._positions.items()}

    patch.setattr(BlockReader, "restore", skipping)


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
        self._entries.fired[:] = False
        self._unfired_start = NO_TIME

    patch.setattr(window_tumbling.TumblingAggregate, "restore", forgetful)


def window_forgets_its_watermark(patch: Patch) -> None:
    snapshot = window_tumbling.TumblingAggregate.snapshot

    def forgetful(self: Any, checkpoint_id: int) -> Any:
        groups = self._context.max_parallelism
        return {**snapshot(self, checkpoint_id), "watermarks": [[0, groups, NO_TIME, groups]]}

    patch.setattr(window_tumbling.TumblingAggregate, "snapshot", forgetful)


def the_oldest_checkpoint_is_resumed(patch: Patch) -> None:
    manifests = DirectoryStorage.manifests
    patch.setattr(DirectoryStorage, "manifests", lambda self: manifests(self)[:1])


def in_flight_records_are_not_sent_again(patch: Patch) -> None:
    patch.setattr(deploying, "sends_of", lambda vertex, links, outputs, pieces: [])


def in_flight_records_of_the_first_subtask_are_lost(patch: Patch) -> None:
    plan = deploying.plan_resends

    def careless(graph: Any, pieces: Any) -> Any:
        return plan(graph, [piece for piece in pieces if piece.flow.sender != 0])

    patch.setattr(deploying, "plan_resends", careless)


def timers_are_not_restored(patch: Patch) -> None:
    owned = process_logic.owned_table

    def careless(snapshots: Any, name: str, *rest: Any) -> Any:
        return None if name == "event_timers" else owned(snapshots, name, *rest)

    patch.setattr(process_logic, "owned_table", careless)


def the_watermark_generator_is_not_restored(patch: Patch) -> None:
    patch.setattr(SourceTask, "restore_watermarks", lambda self, snapshots: None)


def checksums_are_not_looked_at(patch: Patch) -> None:
    patch.setattr(reading, "agree", lambda found, expected, what: True)
    patch.setattr(part_files, "matches", lambda data, expected, what: True)


def an_unreadable_checkpoint_is_passed_over(patch: Patch) -> None:
    states = CheckpointReader.states

    def lenient(self: CheckpointReader, manifest: Any, file: Any) -> Any:
        try:
            return states(self, manifest, file)
        except CorruptCheckpointError:
            return {}

    patch.setattr(CheckpointReader, "states", lenient)


def files_are_written_in_place(patch: Patch) -> None:
    def write(path: Any, pieces: Any) -> None:
        with open(path, "wb") as file:
            for piece in pieces:
                DISK.get().write(file, path, piece)

    patch.setattr(files, "write_pieces_durably", write)


def shared_files_go_with_the_first_checkpoint(patch: Patch) -> None:
    patch.setattr(DirectoryStorage, "_needed", lambda self: set())


def the_newest_checkpoint_is_removed(patch: Patch) -> None:
    def retain(self: CheckpointCoordinator, settings: Any) -> None:
        while len(self._retained) > settings.retained_checkpoints:
            place = self._retained.pop()
            self._background.submit(lambda place=place: self._storage.discard(place), lambda result: None)

    patch.setattr(CheckpointCoordinator, "retain", retain)


def files_are_not_synced(patch: Patch) -> None:
    patch.setattr(ProbedDisk, "sync", lambda self, file, path: None)


def folders_are_not_synced(patch: Patch) -> None:
    patch.setattr(ProbedDisk, "sync_folder", lambda self, folder: None)


def new_folders_are_not_synced(patch: Patch) -> None:
    def make(folder: Any, *, private: bool = False) -> None:
        for each in (*reversed(Path(folder).parents), Path(folder)):
            if not each.is_dir():
                DISK.get().make_folder(str(each))

    for module in (part_files, files, disk):
        patch.setattr(module, "make_folder_durably", make)


def names_of_killed_processes_are_not_synced(patch: Patch) -> None:
    patch.setattr(LocalFiles, "sync_names", lambda self: None)


def deletions_are_not_synced(patch: Patch) -> None:
    patch.setattr(LocalFiles, "delete_durably", LocalFiles.delete)


def the_manifest_of_a_checkpoint_goes_last(patch: Patch) -> None:
    def discard(self: DirectoryStorage, place: str) -> None:
        manifest = self.complete_at(place)
        for file in () if manifest is None else manifest.files:
            self._files.delete(f"{place}/{file.file}")
        real(self, place)

    real = DirectoryStorage.discard
    patch.setattr(DirectoryStorage, "discard", discard)


def a_checkpoint_that_failed_takes_files_of_the_next_one(patch: Patch) -> None:
    real = DirectoryStorage.discard

    def discard(self: DirectoryStorage, place: str) -> None:
        self._in_use.pop(place, None)
        real(self, place)

    patch.setattr(DirectoryStorage, "discard", discard)
