"""The interface of a checkpoint storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from workbench.operators.contract.base import Snapshot
from workbench.runtime.storage.encoding import Encoded
from workbench.runtime.storage.manifest import Manifest, StateFile


class CheckpointStorage(Protocol):
    """Keeps the files of checkpoints; every method may be slow and is called off the data path."""

    @property
    def incremental(self) -> bool:
        """Whether a large table of state is written as changes to its earlier version."""

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        """Write one task's file durably."""

    def complete(self, place: str, manifest: Manifest) -> None:
        """Make the checkpoint complete, atomically and durably."""

    def discard(self, place: str) -> None:
        """Remove a checkpoint, complete or not."""

    def manifests(self) -> Sequence[Manifest]:
        """All complete checkpoints, oldest first; savepoints are not among them."""

    def savepoint(self, name: str) -> Manifest | None:
        """A complete savepoint."""

    def savepoints(self) -> Sequence[Manifest]:
        """All complete savepoints, oldest first."""

    def latest(self) -> Manifest | None:
        """The checkpoint or savepoint from which the job resumes; None when it has none."""

    def highest_id(self) -> int:
        """The largest id of any checkpoint or savepoint; 0 when there is none."""

    def states(self, manifest: Manifest, file: StateFile) -> dict[str, Snapshot]:
        """A task's state by operator uid, verified by checksum; large tables may be left on disk until they are
        read."""

    def keep(self, name: str, content: bytes) -> None:
        """Write a small file next to the checkpoints, durably, replacing one of the same name."""

    def kept(self, name: str) -> bytes:
        """The content of such a file; empty where it does not exist or cannot be read."""

    def path_of(self, place: str) -> str:
        """Path or URI of a checkpoint with secrets masked; of all checkpoints for ``""``; empty in memory."""
