"""The operations of durable writes, in one place, so that a simulation can make them fail or cut the power.

The content of a file survives a power failure once the file is synced; its name, once its folder is synced. This also
applies to the name of a new folder: a file in a folder that is not durable is not durable either. Until its folder is
synced, a deleted file may reappear after a power failure.

A process may be killed between creating a name and syncing it. The next process finds the name, but cannot know whether
it is durable. So a process that starts to write in an existing folder first syncs what exists: `take_folder_durably`,
and ``LocalFiles.sync_names`` for a checkpoint directory with all of its content.
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
        """Append bytes (any buffer) to a file that will be named `path`."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[file.write(rest) :]  # the system accepts at most two gigabytes per call

    def sync(self, file: FileIO, path: str) -> None:
        """Make the content of a file that will be named `path` survive a power failure."""
        os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        """Rename a file atomically: `target` exists at every moment."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which must not exist."""
        os.link(source, target)

    def make_folder(self, folder: str, mode: int = 0o777) -> None:
        """Create a folder in an existing one, with the permissions of `mode` that the umask leaves."""
        os.mkdir(folder, mode)

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its content; files that cannot be deleted remain."""
        shutil.rmtree(folder, ignore_errors=True)

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder, and deletions from it, survive a power failure."""
        sync_path(folder)


class UnsyncedFolderError(OSError):
    """The names in a folder (`filename`) could not be made durable."""


PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
_OF_OTHERS = 0o077

DISK: ContextVar[Disk] = ContextVar("DISK", default=Disk())  # noqa: B039  it has no state
"""The disk in use; by default the system's."""


def open_no_link(path: str, flags: int) -> int:
    """Open a file for `FileIO`; a symbolic link is refused, not followed. A new file has the mode of the umask."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def open_private(path: str, flags: int) -> int:
    """Do the same for writing a file that only its owner can read, even if one is there that others can read."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW, PRIVATE_FILE)
    if os.fstat(descriptor).st_mode & _OF_OTHERS:
        with suppress(OSError):  # some file systems have no modes
            os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def sync_path(path: str | os.PathLike[str]) -> None:
    """Make a file's content, or the names in a folder, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder_durably(folder: str | os.PathLike[str], *, private: bool = False) -> None:
    """Create a folder and its missing parents, so that all of them survive a power failure.

    The parent of a new folder is synced before anything is created in the new folder. An existing folder is not synced:
    `take_folder_durably` does that.

    Args:
        folder: an existing one keeps its mode.
        private: whether only its owner can use what is created; otherwise the umask decides.

    Raises:
        UnsyncedFolderError: a parent folder cannot be synced.
        OSError: it cannot be created.
    """
    path = os.fspath(folder)
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path) or "."
    if parent != path:
        make_folder_durably(parent, private=private)
    try:
        DISK.get().make_folder(path, PRIVATE_FOLDER if private else 0o777)
    except FileExistsError:  # another process is creating it, and may not have synced its parent yet
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    try:
        _sync_folder(parent)
    except OSError:
        with suppress(OSError):
            os.rmdir(path)  # otherwise the next process would find it and assume that it is durable
        raise


def take_folder_durably(folder: str | os.PathLike[str], *, private: bool = False) -> None:
    """Create a folder and its missing parents, or use an existing one, so that it survives a power failure.

    The process that created an existing folder may have been killed before syncing its name, so all parent folders are
    synced, up to the root of their file system.

    Args:
        folder: an existing one keeps its mode.
        private: whether only its owner can use it, if it is created; the umask decides about its parents.

    Raises:
        UnsyncedFolderError: a parent folder cannot be synced.
        OSError: it cannot be created.
    """
    path = os.path.abspath(folder)
    make_folder_durably(os.path.dirname(path))
    make_folder_durably(path, private=private)
    for above in _folders_above(path):
        with suppress(PermissionError):  # nothing was created in a folder that may not be opened
            _sync_folder(above)


def _folders_above(path: str) -> Iterator[str]:
    """The parents of a folder, up to the root of its file system.

    `os.path.ismount` would find the same root, but resolves the whole path for each folder. The parent of a link is the
    folder that contains the link.
    """
    while (parent := os.path.dirname(path)) != path and os.lstat(path).st_dev == os.stat(parent).st_dev:
        yield parent
        path = parent


def _sync_folder(folder: str) -> None:
    """Sync a folder; an error names it, because the system's error has no path."""
    try:
        DISK.get().sync_folder(folder)
    except PermissionError:
        raise
    except OSError as error:
        raise UnsyncedFolderError(error.errno, error.strerror, folder) from error
