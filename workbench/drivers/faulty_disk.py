"""A disk that tells how far a file is, so that it can fail in the middle of one, and that can lose its power."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Any

from workbench.connectors.disk import Disk
from workbench.drivers.probes import Probe


@dataclass(frozen=True, slots=True)
class _Name:
    """A change of the names in a folder that was not synced since.

    Attributes:
        folder: in which the name stands.
        undo: brings back what was before.
    """

    folder: str
    undo: Callable[[], None]


class ProbedDisk(Disk):
    """Writes as any disk does, and tells `probe` when half of a piece is written, before a flush, before a rename
    and before the names in a folder are synced.

    It remembers what was not synced: the content of files, and names in folders. Deletions count as durable at once.

    Args:
        probe: is told; what it raises happens there.
        loses_power: whether it ever will; what it would take away is remembered only then.
    """

    def __init__(self, probe: Probe, *, loses_power: bool) -> None:
        self._probe = probe
        self._loses_power = loses_power
        self._contents: set[str] = set()
        self._names: list[_Name] = []

    def write(self, file: FileIO, path: str, data: Any) -> None:
        content = memoryview(data)
        half = len(content) // 2
        if self._loses_power:
            self._contents.add(str(file.name))
        super().write(file, path, content[:half])
        self._probe.reached("mid-file", path, half)
        super().write(file, path, content[half:])

    def sync(self, file: FileIO, path: str) -> None:
        self._probe.reached("fsync", path, 0)
        super().sync(file, path)
        self._contents.discard(str(file.name))

    def rename(self, source: str, target: str) -> None:
        self._probe.reached("rename", target, 0)
        if not self._loses_power:
            super().rename(source, target)
            return
        before = _content(target)
        super().rename(source, target)
        self._contents.discard(target)
        if source in self._contents:
            self._contents.remove(source)
            self._contents.add(target)
        self._changed(target, lambda: self._rename_back(source, target, before))

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        self._changed(target, lambda: _remove(target))

    def make_folder(self, folder: str) -> None:
        super().make_folder(folder)
        self._changed(folder, lambda: _remove(folder))

    def sync_folder(self, folder: str) -> None:
        self._probe.reached("folder sync", folder, 0)
        super().sync_folder(folder)
        self._names = [name for name in self._names if name.folder != folder]

    def lose_power(self) -> None:
        """Take away everything that was not synced: the process that wrote it is no more."""
        for path in sorted(self._contents):
            if os.path.exists(path):
                _replace(path, b"")
        self._contents.clear()
        for name in reversed(self._names):
            name.undo()
        self._names.clear()

    def _changed(self, path: str, undo: Callable[[], None]) -> None:
        if self._loses_power:
            self._names.append(_Name(os.path.dirname(path), undo))

    def _rename_back(self, source: str, target: str, before: bytes | None) -> None:
        if os.path.exists(target):  # it may have been deleted since
            os.replace(target, source)
        if before is not None:
            _replace(target, before)


def _content(path: str) -> bytes | None:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


def _replace(path: str, content: bytes) -> None:
    """Another file in the place of one that may still be mapped by what is left of the process."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    with open(path, "wb") as file:
        file.write(content)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
