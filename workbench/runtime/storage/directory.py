"""Checkpoints in a separate directory, on any file system.

A checkpoint is a folder with one file for each task and a manifest. It is complete when its manifest exists: the
manifest is written last and atomically, and it holds a checksum of every file. A folder without a manifest is what
remains of a checkpoint that never completed.

A task's state may refer to files elsewhere in the directory that several checkpoints share: the committed rows of a
sink, and large tables of state, which are written whole once and then as changes (``state_parts``). The manifest lists
them, and a file is removed when no complete checkpoint or savepoint lists it. A savepoint contains all of its state and
its own copies of the other files that it needs, so its folder can be copied and restored anywhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.clock import BootClock, SharedClock
from workbench.durable.checksum import RunningChecksum
from workbench.durable.holder import Holder
from workbench.errors import (
    MISSING,
    CheckpointError,
    CorruptCheckpointError,
    UnreadableCheckpointError,
    cannot_be_read,
    told_by,
)
from workbench.operators.contract.base import Snapshot
from workbench.runtime.storage.encoding import Encoded
from workbench.runtime.storage.files import Files
from workbench.runtime.storage.going_back import TAKEN_BACK, GoneBack, latest_of, read_gone_back
from workbench.runtime.storage.holding import Hold, hold
from workbench.runtime.storage.locations import folder_in, looked_into
from workbench.runtime.storage.manifest import (
    CHECKPOINT,
    MANIFEST,
    SAVEPOINTS,
    SHARED,
    Manifest,
    StateFile,
    StatePart,
    check_name,
    folder_of,
)
from workbench.runtime.storage.reading import CheckpointReader
from workbench.runtime.storage.setting_aside import copy_aside, in_order
from workbench.runtime.storage.state_parts import StateParts

INCREMENTAL_ABOVE_BYTES = 1 << 20
"""Tables of state from this size on are written as changes; smaller ones are not worth separate files."""


class DirectoryStorage:
    """Keeps checkpoints in a separate directory, which one process at a time may own.

    Args:
        location: a path, or a URI such as ``s3://bucket/prefix``.
        incremental_above_bytes: see `INCREMENTAL_ABOVE_BYTES`; None: every checkpoint is written whole.
        clock: for a directory that is owned by a lease; None: the system's.

    Attributes:
        location: as it was passed.
        directory: the folder, if it is on this machine.

    Raises:
        CheckpointError: the directory cannot be written, or another process holds it.
    """

    def __init__(
        self,
        location: str | Path,
        *,
        incremental_above_bytes: int | None = INCREMENTAL_ABOVE_BYTES,
        clock: SharedClock | None = None,
    ) -> None:
        self.location = location
        self._hold: Hold = hold(location, clock or BootClock())
        self._files: Files = self._hold.files
        self.directory = self._hold.directory
        self._reader = CheckpointReader(self._files)
        self._before: tuple[()] | tuple[bytes | None] = ()
        self._brought_in: str | None = None
        self._known: dict[str, Manifest] = {}
        self._parts: StateParts | None = None
        if incremental_above_bytes is not None:
            self._parts = StateParts(self._write_part, incremental_above_bytes)
        self._in_use: dict[str, set[str]] = {}  # files of checkpoints that are still being written

    def close(self) -> None:
        """Release the directory, so that another job can own it."""
        self._hold.release()

    @property
    def incremental(self) -> bool:
        """Whether a large table of state is written as changes to its earlier version."""
        return self._parts is not None

    @property
    def holder(self) -> Holder:
        """This process, and since when it has owned the directory."""
        return self._hold.holder

    @property
    def leases(self) -> tuple[str, str]:
        """The lease by which this process owns the directory, and the expired lease that it replaced; empty: none."""
        return self._hold.lease, self._hold.ended

    def keep(self, name: str, content: bytes) -> None:
        """Write a small file next to the checkpoints, durably, replacing one of the same name.

        Raises:
            CheckpointError: another process has taken the directory.
        """
        self._hold.check()
        self._files.write(name, (content,))

    def kept(self, name: str) -> bytes:
        """The content of such a file; empty where it does not exist or cannot be read."""
        try:
            return self._reader.bytes_of(name) if self._files.exists(name) else b""
        except (OSError, CheckpointError):
            return b""

    def settle(self) -> None:
        """Make sure that this process owns the directory, some time after it was acquired and before anything is
        changed.

        Raises:
            HeldError: another process acquired it at the same moment.
        """
        self._hold.settle()

    def sync_names(self) -> None:
        """Make all names in the directory durable before anything is built on them: the process that owned the
        directory before may have been killed between creating a name and syncing it.

        Raises:
            UnreadableCheckpointError: the file system refuses to sync.
        """
        try:
            self._files.sync_names()
        except OSError as error:
            raise cannot_be_read("the checkpoint directory", self.shown, error) from error

    def beat(self) -> None:
        """Called every few seconds while the job runs.

        Raises:
            CheckpointError: another process has taken the directory.
        """
        self._hold.beat()

    def check(self) -> None:
        """Make sure that no other process has taken the directory.

        Raises:
            CheckpointError: another process has.
        """
        self._hold.check()

    # one checkpoint ----------------------------------------------------------------------------------------------

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        if self.directory is not None:  # elsewhere it takes long, and there are as many files as tasks
            self._hold.check()
        name = _file_name(task)
        parts: tuple[StatePart, ...] = ()
        new = 0
        if self._parts is not None and not _is_savepoint(place):
            state, parts, new = self._parts.take_out(place, task, f"{place}-{name}", state)
        written = self._write(f"{place}/{name}.arrow", state.pieces())
        self._in_use.setdefault(place, set()).update(state.files, (part.path for part in parts))
        return StateFile(
            task=task,
            file=f"{name}.arrow",
            size=written.size,
            checksum=written.checksum,
            needs=state.files,
            parts=parts,
            operators=state.operators,
            written=written.size + new,
        )

    def complete(self, place: str, manifest: Manifest) -> None:
        self._hold.check()
        if _is_savepoint(place):
            for path in manifest.needs:
                self._files.take(self._files, path, f"{place}/{path}")
            self._hold.check()
        self._files.write(f"{place}/{MANIFEST}", (manifest.to_json(),))
        self._hold.check()  # do not announce a checkpoint that completed while another process owned the directory
        self._in_use.pop(place, None)
        if self._parts is not None:
            self._parts.complete(place)

    def discard(self, place: str) -> None:
        self._hold.check()  # a process that has lost the directory leaves its files to the new owner
        path = f"{place}/{MANIFEST}"
        # If its folder could not be synced, a manifest exists although the checkpoint never completed.
        was_complete = place not in self._in_use and self._reader.is_complete(place)
        needed = set(self._manifest(place).needs) if was_complete else set()
        # Keep what the manifest needs until the manifest is durably gone: a crash could bring it back.
        self._in_use.setdefault(place, set()).update(needed)
        self._delete_durably(path)  # first, so that a partly deleted folder is never taken for a complete one
        self._files.delete_folder(place)
        self._known.pop(place, None)
        self._in_use.pop(place)
        if self._parts is not None:
            needed |= self._parts.give_up(place)
        if needed:  # what sinks added for an aborted checkpoint stays: the next one lists it again
            needless = needed - self._needed().union(*self._in_use.values())
            self._delete(needless)
            if self._parts is not None:
                self._parts.forget(needless)

    def states(self, manifest: Manifest, file: StateFile) -> dict[str, Snapshot]:
        return self._reader.states(manifest, file)

    def path_of(self, place: str) -> str:
        return self._files.path_of(place)

    # all checkpoints ---------------------------------------------------------------------------------------------

    def manifests(self) -> Sequence[Manifest]:
        return self._complete(self._checkpoints())

    def savepoint(self, name: str) -> Manifest | None:
        return self.complete_at(folder_of(0, check_name(name, "savepoint")))

    def savepoints(self) -> Sequence[Manifest]:
        return self._complete([folder_of(0, name) for name in self._folders(SAVEPOINTS)])

    @property
    def shown(self) -> str:
        """The directory, with secrets masked."""
        return self._files.shown

    def complete_at(self, place: str) -> Manifest | None:
        """The complete checkpoint or savepoint in a folder of this directory."""
        return next(iter(self._complete([place])), None)

    def place_of(self, location: str) -> str | None:
        """The folder's name in this directory that a path refers to, or None."""
        root, path = str(self._files.path_of("")).rstrip("/") + "/", location
        if self.directory is not None and "://" not in location:
            path = str(Path(location).expanduser().absolute())
        return path.removeprefix(root).strip("/") if path.startswith(root) else None

    def bring_in(self, source: Files, place: str) -> Manifest:
        """Copy a savepoint or checkpoint from another directory, which may be deleted afterwards.

        Raises:
            CorruptCheckpointError: it lacks a file.
            CheckpointError: a file cannot be read or written now.
        """
        manifest = CheckpointReader(source).manifest(place)
        savepoint = manifest.kind == "savepoint"
        target = folder_of(manifest.checkpoint_id, check_name(place, "savepoint") if savepoint else None)
        try:
            for file in manifest.files:
                self._files.take(source, f"{place}/{file.file}", f"{target}/{file.file}")
            for path in manifest.needs:
                self._files.take(source, f"{place}/{path}" if savepoint else path, path)
                if savepoint:
                    self._files.take(self._files, path, f"{target}/{path}")
        except OSError as error:
            kind = CorruptCheckpointError if isinstance(error, MISSING) else CheckpointError
            raise kind(
                f"{source.path_of(place)} cannot be copied to {self.shown!r}: {error.strerror or error}: "
                f"{error.filename or ''}"
            ) from error
        self._files.write(f"{target}/{MANIFEST}", (manifest.to_json(),))
        self._brought_in = target
        return replace(manifest, place=target)

    def latest(self) -> Manifest | None:
        """The checkpoint or savepoint from which the job resumes, see `latest_of`.

        Raises:
            CheckpointError: the job was reset to a savepoint that no longer exists.
        """
        return latest_of((*self.manifests(), *self.savepoints()), self._taken_back(), self.shown)

    def take_back(self, savepoint: Manifest, first_id: int) -> None:
        """Record durably that the job resumes from a savepoint, with checkpoints from `first_id` on."""
        self._before = (self._reader.bytes_of(TAKEN_BACK) if self._files.exists(TAKEN_BACK) else None,)
        self._files.write(TAKEN_BACK, (GoneBack(savepoint.place, first_id).to_json(),))

    def undo_take_back(self) -> None:
        """The job could not start from the savepoint: make it resume from where it would have before.

        Raises:
            CheckpointError: the change cannot be recorded now.
        """
        if self._before == (None,):
            self._delete_durably(TAKEN_BACK)
        elif self._before:
            self._files.write(TAKEN_BACK, self._before)
        self._before = ()
        if self._brought_in is not None:
            self.discard(self._brought_in)
            self._brought_in = None

    @property
    def unused(self) -> bool:
        """Whether the directory holds nothing that a job has written."""
        return not self._folders() and self._taken_back() is None

    def highest_id(self) -> int:
        """The largest id of any checkpoint, complete or not, or savepoint; 0 when there is none."""
        ids = [int(place[4:]) for place in self._checkpoints()]
        return max([*ids, *(manifest.checkpoint_id for manifest in self.savepoints())], default=0)

    def remove_incomplete(self) -> None:
        """Remove incomplete checkpoints, and shared files that no checkpoint needs; only while no job runs."""
        for place in self._checkpoints():
            if not self._reader.is_complete(place):
                self._files.delete_folder(place)
        if shared := {path for folder in SHARED for path in self._files.files(folder)}:
            self._delete(shared - self._needed())

    def remove_shared(self) -> None:
        """Remove all shared files: they remain from a run that completed no checkpoint."""
        for folder in SHARED:
            self._files.delete_folder(folder)

    def set_aside(self, *kept: str) -> str:
        """Move all complete checkpoints and savepoints to a folder of the directory, see ``setting_aside``; only while
        no job runs.

        Args:
            kept: names of small files next to the checkpoints that belong to them.

        Returns:
            The folder, as users write it.

        Raises:
            CheckpointError: they cannot be moved now, or another process has taken the directory.
        """
        complete = [*self.manifests(), *self.savepoints()]
        folder = copy_aside(self._files, complete, kept, self._hold.check)
        stale, counting = in_order(complete, self._taken_back())
        for manifest in stale:
            self.discard(manifest.place)
        self._delete_durably(TAKEN_BACK)
        for manifest in counting:
            self.discard(manifest.place)
        self.remove_shared()
        return folder_in(str(self.directory or self.location), folder)

    # internals ---------------------------------------------------------------------------------------------------

    def _checkpoints(self) -> list[str]:
        return [name for name in self._folders() if CHECKPOINT.fullmatch(name)]

    def _folders(self, path: str = "") -> Sequence[str]:
        with looked_into(self._files):
            return self._files.folders(path)

    def _complete(self, places: Iterable[str]) -> list[Manifest]:
        found = [self._manifest(place) for place in places if self._reader.is_complete(place)]
        return sorted(found, key=lambda manifest: manifest.checkpoint_id)

    def _manifest(self, place: str) -> Manifest:
        """The manifest of a complete checkpoint; read once, because no other process writes here."""
        if place not in self._known:
            self._known[place] = self._reader.manifest(place)
        return self._known[place]

    def _taken_back(self) -> GoneBack | None:
        shown = self._files.path_of(TAKEN_BACK)
        try:
            if not self._files.exists(TAKEN_BACK):
                return None
            return read_gone_back(self._reader.bytes_of(TAKEN_BACK), shown)
        except OSError as error:
            raise cannot_be_read("the checkpoint directory", shown, error) from error

    def _needed(self) -> set[str]:
        """Files outside of the checkpoints' folders that a complete checkpoint or savepoint needs."""
        return {path for manifest in (*self.manifests(), *self.savepoints()) for path in manifest.needs}

    def _delete_durably(self, path: str) -> None:
        try:
            self._files.delete_durably(path)
        except OSError as error:
            raise UnreadableCheckpointError(
                f"{self._files.path_of(path)} cannot be permanently removed now: {told_by(error)}; try again when the "
                "storage responds"
            ) from error

    def _delete(self, files: Iterable[str]) -> None:
        for file in files:
            self._files.delete(file)

    def _write_part(self, name: str, pieces: Iterable[Any]) -> StatePart:
        return self._write(f"state/{name}", pieces)

    def _write(self, path: str, pieces: Iterable[Any]) -> StatePart:
        running = RunningChecksum()
        self._files.write(path, running.over(pieces))
        return StatePart(path, running.size, running.text())


def _is_savepoint(place: str) -> bool:
    return place.startswith(f"{SAVEPOINTS}/")


@lru_cache(maxsize=1_024)
def _file_name(task: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", task).strip("-.")
    if re.fullmatch(r"[A-Za-z0-9_.-]+\[[0-9]+\]", task):  # the usual case; distinct tasks keep distinct names
        return safe
    return f"{safe[:60]}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"
