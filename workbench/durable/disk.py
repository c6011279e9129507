"""What writing durably asks of a disk, in one place, so that a simulation can let it fail or cut its power.

What a file holds survives a power failure once the file is synced, its name once the folder is in which it stands, and
a new folder's name likewise: a file in a folder that is not durable is not durable. What was deleted may be back after
a power failure, until the folder is synced in which it stood.

A process may be killed between giving a name and syncing it. The next one finds the name, and nothing tells whether it
is durable. So a process that starts to write where others may have written first syncs what is there:
`take_folder_durably`, and ``LocalFiles.sync_names`` for a checkpoint directory with everything in it.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from io import FileIO
from typing import Any


class Disk:
    """The system's files."""

    def write(self, file: FileIO, path: str, data: Any) -> None:
        """Append bytes (any buffer) to a file that will be `path`."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[file.write(rest) :]  # a system takes two gigabytes at a time

    def sync(self, file: FileIO, path: str) -> None:
        """Make what was written to a file that will be `path` survive a power failure."""
        os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in whose place nothing may be missing at any moment."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which nothing else has."""
        os.link(source, target)

    def make_folder(self, folder: str) -> None:
        """Create a folder in one that exists."""
        os.mkdir(folder)

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it; what cannot be deleted stays."""
        shutil.rmtree(folder, ignore_errors=True)

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder, and that others are gone from it, survive a power failure."""
        sync_path(folder)


class UnsyncedFolderError(OSError):
    """The names in a folder, which is its `filename`, could not be made durable."""


DISK: ContextVar[Disk] = ContextVar("DISK", default=Disk())  # noqa: B039  it has no state
"""The disk in use; a thread that was told nothing has the system's."""


def open_no_link(path: str, flags: int) -> int:
    """Open a file itself, for `FileIO`: what is written is not to land where a link in its place leads."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def sync_path(path: str | os.PathLike[str]) -> None:
    """Make a file's content, or the names in a folder, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder_durably(folder: str | os.PathLike[str]) -> None:
    """Create a folder and the parents that it lacks, so that all of them survive a power failure.

    Each folder in which one is created is synced before anything is put into the new one. Of a folder that exists
    nothing but that is asked: `take_folder_durably` asks more.

    Raises:
        UnsyncedFolderError: one above it cannot be synced.
        OSError: it cannot be created.
    """
    path = os.fspath(folder)
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path) or "."
    if parent != path:
        make_folder_durably(parent)
    try:
        DISK.get().make_folder(path)
    except FileExistsError:  # somebody else creates it at this moment, and may not have synced its parent yet
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    try:
        _sync_folder(parent)
    except OSError:
        with suppress(OSError):
            os.rmdir(path)  # or the next one would find it, and take it for durable
        raise


def take_folder_durably(folder: str | os.PathLike[str]) -> None:
    """Create a folder and the parents that it lacks, or take one that exists, so that it survives a power failure.

    Whoever created one that exists may have been killed before its name was synced, so all folders above it are, up to
    the root of their file system.

    Raises:
        UnsyncedFolderError: one above it cannot be synced.
        OSError: it cannot be created.
    """
    path = os.path.abspath(folder)
    make_folder_durably(path)
    for above in _folders_above(path):
        with suppress(PermissionError):  # in a folder that may not be opened none was created
            _sync_folder(above)


def _folders_above(path: str) -> Iterator[str]:
    """The folders above one, up to the root of its file system. So `os.path.ismount` would tell, which follows a path
    from its beginning for each of them; a link lies where its name is."""
    while (parent := os.path.dirname(path)) != path and os.lstat(path).st_dev == os.stat(parent).st_dev:
        yield parent
        path = parent


def _sync_folder(folder: str) -> None:
    """Sync it so that an error, of which the system tells no place, says that and where."""
    try:
        DISK.get().sync_folder(folder)
    except PermissionError:
        raise
    except OSError as error:
        raise UnsyncedFolderError(error.errno, error.strerror, folder) from error
