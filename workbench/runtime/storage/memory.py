"""Checkpoints in this process, for jobs that need not outlive it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.operators.contract.base import Snapshot
from workbench.runtime.storage.encoding import Encoded, decode
from workbench.runtime.storage.manifest import Manifest, StateFile

_SAVEPOINTS = "savepoints/"


class MemoryStorage:
    """Keeps checkpoints in memory: tasks can recover from them, a new process cannot."""

    incremental = False

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._manifests: dict[str, Manifest] = {}
        self._kept: dict[str, bytes] = {}

    def write(self, place: str, task: str, state: Encoded) -> StateFile:
        pieces = self._files[place, task] = tuple(state.pieces())
        size = sum(map(len, pieces))
        return StateFile(task, task, size, "", operators=state.operators, written=size)

    def complete(self, place: str, manifest: Manifest) -> None:
        self._manifests[place] = manifest

    def discard(self, place: str) -> None:
        self._manifests.pop(place, None)
        for key in [key for key in self._files if key[0] == place]:
            del self._files[key]

    def manifests(self) -> Sequence[Manifest]:
        return self._in_order(savepoints=False)

    def savepoint(self, name: str) -> Manifest | None:
        return self._manifests.get(_SAVEPOINTS + name)

    def savepoints(self) -> Sequence[Manifest]:
        return self._in_order(savepoints=True)

    def latest(self) -> Manifest | None:
        complete = [*self.manifests(), *self.savepoints()]
        return max(complete, key=lambda manifest: manifest.checkpoint_id, default=None)

    def highest_id(self) -> int:
        latest = self.latest()
        return 0 if latest is None else latest.checkpoint_id

    def _in_order(self, *, savepoints: bool) -> Sequence[Manifest]:
        items = self._manifests.copy().items()
        found = [manifest for place, manifest in items if place.startswith(_SAVEPOINTS) == savepoints]
        return sorted(found, key=lambda manifest: manifest.checkpoint_id)

    def states(self, manifest: Manifest, file: StateFile) -> dict[str, Snapshot]:
        return decode(b"".join(self._files[manifest.place, file.task]), file.task)

    def keep(self, name: str, content: bytes) -> None:
        self._kept[name] = content

    def kept(self, name: str) -> bytes:
        return self._kept.get(name, b"")

    def path_of(self, place: str) -> str:
        return ""
