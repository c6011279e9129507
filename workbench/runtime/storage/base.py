"""What a checkpoint storage does, wherever it keeps its files."""

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
        """Whether large tables of state are written by what has changed in them."""
        ...

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

    def latest(self) -> Manifest | None:
        """The checkpoint or savepoint from which the job goes on; None when it has none."""
        ...

    def highest_id(self) -> int:
        """The largest id of any checkpoint or savepoint; 0 when there is none."""
        ...

    def states(self, manifest: Manifest, file: StateFile) -> dict[str, Snapshot]:
        """A task's state by operator uid, checked against the checksums; memory need not hold all of it."""
        ...

    def path_of(self, place: str) -> str:
        """Where a person finds it, secrets hidden; of ``""`` where all checkpoints are; empty in memory."""
        ...
