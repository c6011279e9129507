"""Where checkpoints are kept: in a directory, or in memory for jobs that need not outlive their process.

A checkpoint is a folder with one file for each task and a manifest. It is complete when its manifest exists: the
manifest is written last, under a temporary name, flushed, and renamed, and it holds a checksum of every file. What has
no manifest is the rest of a checkpoint that never completed.

A task's state may need files that lie elsewhere in the directory and that several checkpoints share, such as the
committed rows of a sink. The manifest lists them, and a file goes when no complete checkpoint or savepoint lists it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa

from workbench.connectors.checksum import RunningChecksum, agree
from workbench.connectors.part_files import sync_path, write_durably, write_pieces_durably
from workbench.errors import CheckpointError, CorruptCheckpointError
from workbench.runtime.encoding import Encoded
from workbench.runtime.manifest import MANIFEST, Manifest, StateFile, check_name, folder_of, read_manifest

__all__ = [
    "CheckpointStorage",
    "DirectoryStorage",
    "Manifest",
    "MemoryStorage",
    "StateFile",
    "check_name",
    "folder_of",
]

TAKEN_BACK = "taken-back.json"
SHARED = "tables"
"""The folder of the files that checkpoints share."""
_CHECKPOINT = re.compile(r"chk-([0-9]{8})")
_AT_ONCE = 1 << 20  # bytes of a file that are read for its checksum


class CheckpointStorage(Protocol):
    """Keeps the files of checkpoints; every method may be slow and is called off the data path."""

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        """Write one task's file durably."""
        ...

    def complete(self, place: str, manifest: Manifest) -> None:
        """Make the checkpoint complete, durably and at once."""
        ...

    def discard(self, place: str) -> None:
        """Remove a checkpoint or the rest of one."""
        ...

    def manifests(self) -> Sequence[Manifest]:
        """All complete checkpoints, oldest first; savepoints are not among them."""
        ...

    def savepoint(self, name: str) -> Manifest | None:
        """A complete savepoint."""
        ...

    def savepoints(self) -> Sequence[Manifest]:
        """All complete savepoints, oldest first."""
        ...

    def read(self, manifest: Manifest, file: StateFile) -> Any:
        """A file's bytes (a buffer, of which memory need not hold all), checked against its checksum."""
        ...

    def path_of(self, place: str) -> str:
        """Where a person finds it; empty in memory."""
        ...


class MemoryStorage:
    """Keeps checkpoints in this process: tasks recover from them, the process does not."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._manifests: dict[str, Manifest] = {}

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        pieces = self._files[place, task] = tuple(state.pieces)
        return StateFile(task, task, sum(map(len, pieces)), "")

    def complete(self, place: str, manifest: Manifest) -> None:
        self._manifests[place] = manifest

    def discard(self, place: str) -> None:
        self._manifests.pop(place, None)
        for key in [key for key in self._files if key[0] == place]:
            del self._files[key]

    def manifests(self) -> Sequence[Manifest]:
        found = [manifest for place, manifest in self._manifests.items() if place.startswith("chk-")]
        return sorted(found, key=lambda manifest: manifest.checkpoint_id)

    def savepoint(self, name: str) -> Manifest | None:
        return self._manifests.get(f"savepoints/{name}")

    def savepoints(self) -> Sequence[Manifest]:
        found = [manifest for place, manifest in self._manifests.items() if place.startswith("savepoints/")]
        return sorted(found, key=lambda manifest: manifest.checkpoint_id)

    def read(self, manifest: Manifest, file: StateFile) -> Any:
        return b"".join(self._files[manifest.place, file.task])

    def path_of(self, place: str) -> str:
        return ""


class DirectoryStorage:
    """Keeps checkpoints in a directory of its own, which one process at a time may hold.

    Raises:
        CheckpointError: the directory cannot be written, or another process holds it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._before: tuple[()] | tuple[bytes | None] = ()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] | None = (self.directory / "lock").open("w")
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint directory {str(directory)!r} cannot be written ({error.strerror}): "
                "choose another checkpoint_dir or change its permissions"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise CheckpointError(
                f"the checkpoint directory {str(directory)!r} is in use by another job: stop that job or choose another"
            ) from None

    def close(self) -> None:
        """Let another job have the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        folder = self._folder(place)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{_file_name(task)}.arrow"
        running = RunningChecksum()
        write_pieces_durably(folder / name, running.over(state.pieces))
        return StateFile(task, name, running.size, running.text(), state.files)

    def complete(self, place: str, manifest: Manifest) -> None:
        folder = self._folder(place)
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(folder / MANIFEST, manifest.to_json())
        sync_path(folder.parent)

    def discard(self, place: str) -> None:
        folder = self._folder(place)
        path = folder / MANIFEST
        needed = read_manifest(path, place).needs if path.exists() else frozenset()
        path.unlink(missing_ok=True)  # first, so that half a folder is never taken for a whole
        shutil.rmtree(folder, ignore_errors=True)
        if needed:  # what is on its way to a checkpoint that is not yet complete is listed by the latest one, or new
            self._delete(needed - self._needed())

    def manifests(self) -> Sequence[Manifest]:
        found = [self._manifest(folder) for folder in self._folders() if (folder / MANIFEST).exists()]
        return sorted(found, key=lambda manifest: manifest.checkpoint_id)

    def savepoint(self, name: str) -> Manifest | None:
        folder = self._folder(f"savepoints/{check_name(name, 'savepoint')}")
        return self._manifest(folder) if (folder / MANIFEST).exists() else None

    def savepoints(self) -> Sequence[Manifest]:
        """All complete savepoints, oldest first."""
        found = [self._manifest(path.parent) for path in self.directory.glob(f"savepoints/*/{MANIFEST}")]
        return sorted(found, key=lambda manifest: manifest.checkpoint_id)

    def latest(self) -> Manifest | None:
        """The checkpoint or savepoint from which the job goes on; None when it has none.

        A savepoint commits to the sinks like any checkpoint, so a job never goes on behind one; but what a job did
        before it was taken back to an earlier savepoint no longer counts.

        Raises:
            CheckpointError: it was taken back to a savepoint that is gone.
        """
        complete = [*self.manifests(), *self.savepoints()]
        record = self.directory / TAKEN_BACK
        if record.exists():
            back = json.loads(record.read_bytes())
            complete = [m for m in complete if m.checkpoint_id >= back["first_id"] or m.place == back["place"]]
            if not complete:
                raise CheckpointError(
                    f"the job in {str(self.directory)!r} was taken back to {back['place']}, which is gone: bring it "
                    "back, restore another savepoint, or choose another checkpoint_dir"
                )
        return max(complete, key=lambda manifest: manifest.checkpoint_id, default=None)

    def take_back(self, savepoint: Manifest, first_id: int) -> None:
        """Remember durably that the job goes on from a savepoint, with checkpoints from `first_id` on."""
        record = self.directory / TAKEN_BACK
        self._before = (record.read_bytes() if record.exists() else None,)
        write_durably(record, json.dumps({"place": savepoint.place, "first_id": first_id}).encode())

    def undo_take_back(self) -> None:
        """The job could not start from the savepoint: it goes on from where it would have before."""
        if self._before == (None,):
            (self.directory / TAKEN_BACK).unlink()
        elif self._before:
            write_durably(self.directory / TAKEN_BACK, self._before[0])
        self._before = ()

    def highest_id(self) -> int:
        """The largest id of any checkpoint, complete or not, or savepoint; 0 when there is none."""
        ids = [int(folder.name[4:]) for folder in self._folders()]
        return max([*ids, *(manifest.checkpoint_id for manifest in self.savepoints())], default=0)

    def remove_incomplete(self) -> None:
        """Remove what never completed, and shared files that no checkpoint needs; while no job runs."""
        for folder in self._folders():
            if not (folder / MANIFEST).exists():
                shutil.rmtree(folder, ignore_errors=True)
        shared = (path for path in (self.directory / SHARED).rglob("*") if path.is_file())
        self._delete({str(path.relative_to(self.directory)) for path in shared} - self._needed())

    def read(self, manifest: Manifest, file: StateFile) -> Any:
        path = self._folder(manifest.place) / file.file
        running = RunningChecksum()
        try:
            with path.open("rb") as content:  # read, not mapped, so that what the disk cannot read is an error
                for _ in running.over(iter(lambda: content.read(_AT_ONCE), b"")):
                    pass
            data = _mapped(path)
        except OSError as error:
            raise CorruptCheckpointError(
                f"checkpoint {manifest.checkpoint_id} cannot be restored: {path} cannot be read ({error.strerror})"
            ) from error
        if running.size != file.size or not agree(running.text(), file.checksum, str(path)):
            raise CorruptCheckpointError(
                f"checkpoint {manifest.checkpoint_id} cannot be restored: {path} does not match its checksum; "
                "to go on from an earlier checkpoint, delete this one's folder yourself"
            )
        return data

    def path_of(self, place: str) -> str:
        return str(self._folder(place))

    def _folder(self, place: str) -> Path:
        folder = (self.directory / place).resolve()
        if not folder.is_relative_to(self.directory.resolve()):
            raise CheckpointError(f"{place!r} is outside of the checkpoint directory")
        return folder

    def _folders(self) -> list[Path]:
        return sorted(folder for folder in self.directory.iterdir() if _CHECKPOINT.fullmatch(folder.name))

    def _manifest(self, folder: Path) -> Manifest:
        return read_manifest(folder / MANIFEST, str(folder.resolve().relative_to(self.directory.resolve())))

    def _needed(self) -> set[str]:
        """Files outside of the checkpoints' folders that some complete checkpoint or savepoint needs."""
        return {path for manifest in (*self.manifests(), *self.savepoints()) for path in manifest.needs}

    def _delete(self, files: Iterable[str]) -> None:
        for file in files:
            self._folder(file).unlink(missing_ok=True)


def _mapped(path: Path) -> pa.Buffer:
    """A file's bytes, which the system reads when they are looked at and may forget again."""
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def _file_name(task: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", task).strip("-.")
    if re.fullmatch(r"[A-Za-z0-9_.-]+\[[0-9]+\]", task):  # the usual case; distinct tasks keep distinct names
        return safe
    return f"{safe[:60]}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"
