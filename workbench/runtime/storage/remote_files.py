"""Files on any remote file system that Arrow supports: object stores, HDFS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import fs

from workbench.durable.checksum import RunningChecksum
from workbench.errors import CheckpointError
from workbench.runtime.storage.files import ANY_SIZE, Files, check_size

_AT_ONCE = 4 << 20
_WHOLE_AT_ONCE = ("s3", "gcs", "abfs")
"""Object stores: an object appears when its last byte is written, and renaming would copy it."""


class RemoteFiles:
    """Files below a folder of a file system.

    Args:
        system: Arrow's file system.
        root: the folder on it, for an object store the bucket and a prefix.
        shown: the root with credentials masked.
    """

    def __init__(self, system: fs.FileSystem, root: str, shown: str) -> None:
        self.shown = shown
        self._system = system
        self._root = root
        self._has_folders = system.type_name not in _WHOLE_AT_ONCE

    def write(self, path: str, pieces: Iterable[Any]) -> None:
        target = self._path(path)
        draft = f"{target}.tmp" if self._has_folders else target
        if self._has_folders:
            self._system.create_dir(target.rpartition("/")[0], recursive=True)
        try:
            with self._system.open_output_stream(draft) as file:
                for piece in pieces:
                    file.write(piece)
        except BaseException:
            self.delete(path if draft == target else f"{path}.tmp")  # closing has created an object
            raise
        if self._has_folders:
            self._system.move(draft, target)

    def read(self, path: str, running: RunningChecksum, most: int = ANY_SIZE) -> Any:
        with self._system.open_input_file(self._path(path)) as file:
            check_size(file.size(), most, path)
            pieces = list(running.over(iter(lambda: file.read_buffer(_AT_ONCE), b"")))
        return pieces[0] if len(pieces) == 1 else pa.py_buffer(b"".join(pieces))

    def exists(self, path: str) -> bool:
        return bool(self._system.get_file_info(self._path(path)).type == fs.FileType.File)

    def folders(self, path: str = "") -> Sequence[str]:
        return sorted(item.base_name for item in self._items(path) if item.type == fs.FileType.Directory)

    def files(self, path: str) -> Sequence[str]:
        items = self._items(path, recursive=True)
        return [item.path[len(self._root) + 1 :] for item in items if item.type == fs.FileType.File]

    def _items(self, path: str, *, recursive: bool = False) -> Sequence[fs.FileInfo]:
        selector = fs.FileSelector(self._path(path), recursive=recursive, allow_not_found=True)
        found: Sequence[fs.FileInfo] = self._system.get_file_info(selector)
        return found

    def delete(self, path: str) -> None:
        if self.exists(path):
            with suppress(FileNotFoundError):  # a process that is being replaced cleans up at the same time
                self._system.delete_file(self._path(path))

    def delete_durably(self, path: str) -> None:
        self.delete(path)

    def delete_folder(self, path: str) -> None:
        if self._system.get_file_info(self._path(path)).type == fs.FileType.Directory:
            with suppress(FileNotFoundError):
                self._system.delete_dir(self._path(path))

    def take(self, source: Files, path: str, to: str) -> None:
        if source is self and not self._has_folders:
            self._system.copy_file(self._path(path), self._path(to))
        else:
            self.write(to, (source.read(path, RunningChecksum()),))

    def sync_names(self) -> None:
        """Does nothing: what a remote file system has acknowledged is durable."""

    def path_of(self, path: str) -> str:
        self._path(path)
        return f"{self.shown}/{path}" if path else self.shown

    def _path(self, path: str) -> str:
        if path.startswith("/") or ".." in path.split("/"):
            raise CheckpointError(f"{path!r} is outside of the checkpoint directory")
        return f"{self._root}/{path}" if path else self._root
