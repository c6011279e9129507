"""A disk that reports the progress of writes, so that they can fail midway, and that can lose power."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from random import Random
from typing import Any

from workbench.drivers.contract.probes import Probe
from workbench.durable.disk import Disk

_COMES_BACK = 0.5
"""The probability that a deleted file whose folder was not synced reappears after a power failure."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A name that was given to a file or folder, in a folder that was not synced since.

    Attributes:
        path: with that name.
        undo: restores the previous state.
    """

    path: str
    undo: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Deleted:
    """A file or folder that was deleted, in a folder that was not synced since.

    Attributes:
        path: its former path.
        files: the files that were deleted with it, by path, with the content that would survive.
    """

    path: str
    files: Mapping[str, bytes]


class ProbedDisk(Disk):
    """Writes like any disk, and reports to `probe` when half of a piece is written, before a sync, before a rename,
    before a file gets a second name and before it loses the first one, and before the names in a folder are synced.

    It tracks what was not synced: the content of files, names in folders, and deletions. On a power failure, unsynced
    content and names are lost. Some of the deleted files reappear and others do not, as on a disk that wrote only some
    blocks of a folder.

    Args:
        probe: receives the reports; what it raises is raised at that point.
        chance: decides which deleted files reappear after a power failure; None: the power never fails, and nothing is
            tracked.
    """

    def __init__(self, probe: Probe, chance: Random | None) -> None:
        self._probe = probe
        self._chance = chance
        self._contents: set[str] = set()
        self._names: list[_Given | _Deleted] = []
        self._linked: dict[str, str] = {}  # by its first name: the second name of a file

    def write(self, file: FileIO, path: str, data: Any) -> None:
        content = memoryview(data)
        half = len(content) // 2
        if self._chance is not None:
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
        if self._chance is None:
            super().rename(source, target)
            return
        before = self._durable(target)
        super().rename(source, target)
        self._contents.discard(target)
        if source in self._contents:
            self._contents.remove(source)
            self._contents.add(target)
        self._given(target, lambda: _rename_back(source, target, before))

    def link(self, source: str, target: str) -> None:
        self._probe.reached("link", target, 0)
        super().link(source, target)
        self._linked[source] = target
        self._given(target, lambda: _remove(target))

    def make_folder(self, folder: str, mode: int = 0o777) -> None:
        super().make_folder(folder, mode)
        self._given(folder, lambda: _remove(folder))

    def delete(self, path: str) -> None:
        if path in self._linked:
            self._probe.reached("unlink", path, 0)
        before = None if self._chance is None else self._durable(path)
        super().delete(path)
        if before is not None:
            self._contents.discard(path)
            self._names.append(_Deleted(path, {path: before}))

    def delete_folder(self, folder: str) -> None:
        if self._chance is None:
            super().delete_folder(folder)
            return
        inside = f"{folder}{os.sep}"
        files: dict[str, bytes] = {}
        for name in self._names:  # earlier deletions in it reappear together with it, or not at all
            if isinstance(name, _Deleted) and name.path.startswith(inside):
                files |= name.files
        for path in _files_in(folder):
            files[path] = self._durable(path) or b""
        super().delete_folder(folder)
        self._contents = {path for path in self._contents if not path.startswith(inside)}
        self._names = [name for name in self._names if not name.path.startswith(inside)]
        self._names.append(_Deleted(folder, files))

    def sync_folder(self, folder: str) -> None:
        self._probe.reached("folder sync", folder, 0)
        super().sync_folder(folder)
        self._names = [name for name in self._names if os.path.dirname(name.path) != folder]

    def lose_power(self) -> None:
        """Undo everything that was not synced: the process that wrote it is dead."""
        assert self._chance is not None
        for path in sorted(self._contents):
            if os.path.exists(path):
                _replace(path, b"")
        self._contents.clear()
        deleted = {path for name in self._names if isinstance(name, _Deleted) for path in name.files}
        back = {path for path in sorted(deleted) if self._chance.random() < _COMES_BACK}
        for name in reversed(self._names):
            if isinstance(name, _Given):
                name.undo()
            else:
                for path, content in name.files.items():
                    if path in back:
                        self._bring_back(path, content)
        self._names.clear()

    def _bring_back(self, path: str, content: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        second = self._linked.get(path)
        if second is not None and _content(second) == content:  # the same file must not exist twice
            with suppress(FileNotFoundError):
                os.unlink(path)
            os.link(second, path)
        else:
            _replace(path, content)

    def _given(self, path: str, undo: Callable[[], None]) -> None:
        if self._chance is not None:
            self._names.append(_Given(path, undo))

    def _durable(self, path: str) -> bytes | None:
        """The content of a file after a power failure; None if there is none."""
        return _content(path) if path not in self._contents else b""


def _content(path: str) -> bytes | None:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


def _files_in(folder: str) -> list[str]:
    return [f"{below}{os.sep}{name}" for below, _, names in os.walk(folder) for name in names]


def _replace(path: str, content: bytes) -> None:
    """Replace a file that may still be mapped by remains of the process."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    with open(path, "wb") as file:
        file.write(content)


def _rename_back(source: str, target: str, before: bytes | None) -> None:
    if os.path.exists(target):  # it may have been deleted since
        os.replace(target, source)
    if before is not None:
        _replace(target, before)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
