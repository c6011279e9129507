"""The operations of durable writes, in one place, so that a simulation can let them fail or cut the power.

A file's content survives a power failure once the file is synced, its name once its folder is synced, and a new
folder's
name likewise: a file in a folder that is not durable is not durable. A deleted file may reappear after a power failure
until its folder is synced.

A process may be killed between creating a name and syncing it. The next process finds the name, but cannot know whether
it is durable. So a process that starts to write where others may have written first syncs what exists:
`take_folder_durably`, and ``LocalFiles.sync_names`` for a checkpoint directory with all of its content.
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
    """The system's file operations."""

    def write(self, file: FileIO, path: str, data: Any) -> None:
        """Append bytes (any buffer) to a file that will be `path`."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[file.write(rest) :]  # the system accepts two gigabytes at a time

    def sync(self, file: FileIO, path: str) -> None:
        """Make the content written to a file that will be `path` survive a power failure."""
        os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        """Rename a file atomically: `target` exists at every moment."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which must not exist."""
        os.link(source, target)

    def make_folder(self, folder: str) -> None:
        """Create a folder in an existing one."""
        os.mkdir(folder)

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its content; what cannot be deleted stays."""
        shutil.rmtree(folder, ignore_errors=True)

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder, and deletions from it, survive a power failure."""
        sync_path(folder)


class UnsyncedFolderError(OSError):
    """The names in a folder, its `filename`, could not be made durable."""


DISK: ContextVar[Disk] = ContextVar("DISK", default=Disk())  # noqa: B039  it has no state
"""The disk in use; by default the system's."""


def open_no_link(path: str, flags: int) -> int:
    """Open a file itself, for `FileIO`, and never the target of a link in its place."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def sync_path(path: str | os.PathLike[str]) -> None:
    """Make a file's content, or the names in a folder, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder_durably(folder: str | os.PathLike[str]) -> None:
    """Create a folder and its missing parents, so that all of them survive a power failure.

    Each folder in which one is created is synced before anything is put into the new one. An existing folder is not
    synced: `take_folder_durably` does that.

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
    except FileExistsError:  # another process is creating it, and may not have synced its parent yet
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    try:
        _sync_folder(parent)
    except OSError:
        with suppress(OSError):
            os.rmdir(path)  # otherwise the next process would find it, and take it for durable
        raise


def take_folder_durably(folder: str | os.PathLike[str]) -> None:
    """Create a folder and its missing parents, or use an existing one, so that it survives a power failure.

    The process that created an existing one may have been killed before its name was synced, so all folders above it
    are synced, up to the root of their file system.

    Raises:
        UnsyncedFolderError: one above it cannot be synced.
        OSError: it cannot be created.
    """
    path = os.path.abspath(folder)
    make_folder_durably(path)
    for above in _folders_above(path):
        with suppress(PermissionError):  # nothing was created in a folder that may not be opened
            _sync_folder(above)


def _folders_above(path: str) -> Iterator[str]:
    """The folders above one, up to the root of its file system, as `os.path.ismount` would determine it, which resolves
    a path from its beginning for each of them; a link is in the folder of its name."""
    while (parent := os.path.dirname(path)) != path and os.lstat(path).st_dev == os.stat(parent).st_dev:
        yield parent
        path = parent


def _sync_folder(folder: str) -> None:
    """Sync a folder; an error, for which the system gives no path, names it."""
    try:
        DISK.get().sync_folder(folder)
    except PermissionError:
        raise
    except OSError as error:
        raise UnsyncedFolderError(error.errno, error.strerror, folder) from error
