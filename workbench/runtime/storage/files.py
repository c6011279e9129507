"""The operations that a checkpoint directory needs from a file system, and the local implementation."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from workbench.connectors.parts.part_files import write_pieces_durably
from workbench.durable.checksum import RunningChecksum
from workbench.durable.disk import DISK, make_folder_durably
from workbench.errors import MISSING, CheckpointError

_AT_ONCE = 1 << 20  # bytes read at a time for the checksum
ANY_SIZE = 2**63 - 1
"""For files whose size is not recorded."""


class Files(Protocol):
    """Files below a root, by paths such as ``chk-00000001/manifest.json``; failures raise an OSError.

    Attributes:
        shown: the root with credentials masked.
    """

    shown: str

    def write(self, path: str, pieces: Iterable[Any]) -> None:
        """Write consecutive buffers, durably; the file then exists as a whole or not at all."""

    def read(self, path: str, running: RunningChecksum, most: int = ANY_SIZE) -> Any:
        """A file's bytes (a buffer, which may be mapped instead of loaded); updates the checksum `running`.

        Raises:
            FileNotFoundError: the file does not exist, is not a regular file, or is larger than `most` bytes; then
            nothing is read.
        """

    def exists(self, path: str) -> bool:
        """Whether the file exists; raises an OSError where the system does not say."""

    def folders(self, path: str = "") -> Sequence[str]:
        """Names of the folders in a folder, sorted; none where it does not exist."""

    def files(self, path: str) -> Sequence[str]:
        """Paths of all files below a folder, at any depth; none where it does not exist."""

    def delete(self, path: str) -> None:
        """Delete a file, if it exists; after a power failure it may reappear."""

    def delete_durably(self, path: str) -> None:
        """Delete a file, if it exists, for good."""

    def delete_folder(self, path: str) -> None:
        """Delete a folder with its content; what cannot be deleted stays, and after a power failure any of it may
        reappear."""

    def take(self, source: Files, path: str, to: str) -> None:
        """Copy or link a file of `source`, which may be `self`, to another path, durably; neither is ever changed."""

    def sync_names(self) -> None:
        """Make the names of all files and folders durable: the process that created them may have been killed before it
        did."""

    def path_of(self, path: str) -> str:
        """Path or URI of a file, for users.

        Raises:
            CheckpointError: it is outside of the root.
        """


def check_size(size: int, most: int, path: str) -> None:
    """Raise a FileNotFoundError if a file is larger than any valid file in its place."""
    if size > most:
        raise FileNotFoundError(errno.EFBIG, f"it has {size:,} bytes, more than the maximum of {most:,}", path)


@contextmanager
def _regular(path: str) -> Iterator[BinaryIO]:
    """Open a regular file for reading; a pipe would block, and a device might do anything."""
    if stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as content:
            if stat.S_ISREG(os.fstat(content.fileno()).st_mode):
                yield content
                return
    raise FileNotFoundError(errno.ENOENT, "it is not a file", path)


class LocalFiles:
    """Files in a folder on this machine.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.shown = str(root)
        self._root = str(self.root)

    def write(self, path: str, pieces: Iterable[Any]) -> None:
        target = self.path_of(path)
        make_folder_durably(os.path.dirname(target), private=True)
        write_pieces_durably(target, pieces)

    def read(self, path: str, running: RunningChecksum, most: int = ANY_SIZE) -> Any:
        source = self.path_of(path)
        with _regular(source) as content:  # read, not mapped, so that a disk error raises an exception
            check_size(os.fstat(content.fileno()).st_size, most, source)
            for _ in running.over(iter(lambda: content.read(_AT_ONCE), b"")):
                pass
        with pa.memory_map(os.fsencode(source)) as file:  # the system loads pages on access, and may drop them again
            return file.read_buffer()

    def exists(self, path: str) -> bool:
        try:
            os.stat(self.path_of(path))
        except MISSING:
            return False
        return True

    def folders(self, path: str = "") -> Sequence[str]:
        try:
            with os.scandir(self.path_of(path)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except MISSING:
            return ()

    def files(self, path: str) -> Sequence[str]:
        below = len(self._root) + 1
        return [
            f"{folder[below:]}/{name}"
            for folder, _, names in os.walk(self.path_of(path))
            for name in names
            if os.path.isfile(f"{folder}/{name}")
        ]

    def delete(self, path: str) -> None:
        DISK.get().delete(self.path_of(path))

    def delete_durably(self, path: str) -> None:
        place = self.path_of(path)
        disk = DISK.get()
        disk.delete(place)
        with suppress(FileNotFoundError):  # without a folder nothing can reappear
            disk.sync_folder(os.path.dirname(place))

    def delete_folder(self, path: str) -> None:
        DISK.get().delete_folder(self.path_of(path))

    def take(self, source: Files, path: str, to: str) -> None:
        if not isinstance(source, LocalFiles):
            self.write(to, (source.read(path, RunningChecksum()),))
            return
        old, new = source.path_of(path), self.path_of(to)
        with _regular(old):
            pass
        folder = os.path.dirname(new)
        make_folder_durably(folder, private=True)
        self.delete(to)
        disk = DISK.get()
        try:
            disk.link(old, new)
        except FileNotFoundError:
            raise
        except OSError:  # another disk, or one without hard links
            with _regular(old) as content:
                write_pieces_durably(new, iter(lambda: content.read(_AT_ONCE), b""))
        disk.sync_folder(folder)

    def sync_names(self) -> None:
        disk = DISK.get()
        for folder, _, _ in os.walk(self._root):
            disk.sync_folder(folder)

    def path_of(self, path: str) -> str:
        if not path:
            return self._root
        if not self._is_inside(path):
            raise CheckpointError(f"{path!r} is outside of the checkpoint directory")
        return f"{self._root}/{path}"

    def _is_inside(self, path: str) -> bool:
        """Whether a path stays inside the root: a plain one does; only a path with links is resolved, which is slow."""
        names = path.split("/")
        if names[0] and ".." not in names:
            place = self._root
            for name in names:
                place = f"{place}/{name}"
                if os.path.islink(place):
                    break
            else:
                return True
        return Path(os.path.realpath(f"{self._root}/{path}")).is_relative_to(os.path.realpath(self._root))
