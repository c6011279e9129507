"""Read-only access to complete checkpoints at any location; nothing is locked or changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from workbench.durable.checksum import RunningChecksum, agree
from workbench.errors import MISSING, CorruptCheckpointError, cannot_be_read
from workbench.from_arrow import Unfolding
from workbench.operators.contract.base import Snapshot
from workbench.runtime.storage.encoding import decode
from workbench.runtime.storage.files import Files
from workbench.runtime.storage.going_back import TAKEN_BACK, latest_of, read_gone_back
from workbench.runtime.storage.manifest import (
    CHECKPOINT,
    MANIFEST,
    SAVEPOINTS,
    Manifest,
    StateFile,
    folder_of,
    read_manifest,
    unreadable,
)
from workbench.runtime.storage.state_parts import read_parts

SMALL_MAX = 1 << 26
"""Bytes of a manifest, or of another file that is not state; the largest have a thousandth of that."""


class CheckpointReader:
    """Reads the checkpoints below a root.

    Args:
        files: of the root.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def bytes_of(self, path: str) -> bytes:
        """The content of a small file; raises an OSError."""
        return bytes(memoryview(self._files.read(path, RunningChecksum(), SMALL_MAX)))

    def is_complete(self, place: str) -> bool:
        """Whether a folder holds a complete checkpoint.

        Raises:
            UnreadableCheckpointError: the system cannot tell now. The checkpoint may be complete: treating it as
            incomplete would resume from an older one, and remove it.
        """
        path = f"{place}/{MANIFEST}"
        try:
            return self._files.exists(path)
        except OSError as error:
            raise cannot_be_read("the checkpoint", self._files.path_of(path), error) from error

    def manifest(self, place: str) -> Manifest:
        """The manifest of the checkpoint in a folder.

        Raises:
            CorruptCheckpointError: it is missing or differs from what was written.
            UnreadableCheckpointError: the system cannot read it now.
            CheckpointError: another version wrote it.
        """
        path = f"{place}/{MANIFEST}"
        shown = self._files.path_of(path)
        try:
            return read_manifest(self.bytes_of(path), place, shown)
        except MISSING as error:
            raise unreadable(shown, error.strerror or error) from error
        except OSError as error:
            raise cannot_be_read("the checkpoint", shown, error) from error

    def latest(self) -> Manifest | None:
        """The checkpoint or savepoint from which a job would resume, see `latest_of`; raises an OSError.

        Raises:
            CheckpointError: one of them is damaged, or the job was reset to one that no longer exists.
        """
        files = self._files
        places = [place for place in files.folders() if CHECKPOINT.fullmatch(place)]
        places += [folder_of(0, name) for name in files.folders(SAVEPOINTS)]
        manifests = [self.manifest(place) for place in places if self.is_complete(place)]
        back = None
        if files.exists(TAKEN_BACK):
            back = read_gone_back(self.bytes_of(TAKEN_BACK), files.path_of(TAKEN_BACK))
        return latest_of(manifests, back, files.shown)

    def states(self, manifest: Manifest, file: StateFile) -> dict[str, Snapshot]:
        """A task's state by operator uid; large tables may be left on disk until they are read.

        Raises:
            CorruptCheckpointError: a file is missing, torn or altered.
            UnreadableCheckpointError: the system cannot read one now.
        """
        parts = {part.path: part for part in file.parts}

        def part(path: str) -> Any:
            if path not in parts:
                raise ValueError(f"it needs {path!r} twice, or its manifest does not list that")
            listed = parts.pop(path)  # each is a part of one table
            return self._checked(manifest, path, listed.size, listed.checksum)

        def table(paths: Sequence[str], unfolding: Unfolding) -> pa.Table:
            if not paths:
                raise ValueError("a table of it is missing from its files")
            return read_parts([part(path) for path in paths], paths[-1], unfolding)

        data = self._checked(manifest, f"{manifest.place}/{file.file}", file.size, file.checksum)
        return decode(data, file.file, table)

    def _checked(self, manifest: Manifest, path: str, size: int, checksum: str) -> Any:
        running = RunningChecksum()
        shown = self._files.path_of(path)
        try:
            data = self._files.read(path, running, size)
        except MISSING as error:
            raise CorruptCheckpointError(
                f"checkpoint {manifest.checkpoint_id} cannot be restored: {shown} cannot be read "
                f"({error.strerror or error})"
            ) from error
        except OSError as error:
            raise cannot_be_read(f"checkpoint {manifest.checkpoint_id}", shown, error) from error
        if running.size != size or not agree(running.text(), checksum, shown):
            raise CorruptCheckpointError(
                f"checkpoint {manifest.checkpoint_id} cannot be restored: {shown} does not match its checksum; to "
                "continue from an earlier checkpoint, delete this one's folder yourself"
            )
        return data
