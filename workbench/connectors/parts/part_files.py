"""Files that a sink writes once, durably, and lists in its snapshot.

The order is: temporary name, fsync, rename, fsync of the directory; the checksum goes into the snapshot. So a reader of
the folder finds a complete file or none.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from workbench.connectors.contract.saved_files import is_there
from workbench.durable.checksum import checksum, matches
from workbench.durable.disk import (
    DISK,
    UnsyncedFolderError,
    make_folder_durably,
    open_no_link,
    open_private,
    take_folder_durably,
)
from workbench.errors import CorruptCheckpointError, SinkError, cannot_be_read, remedy


def make_folder(folder: Path, *, private: bool = False) -> None:
    """Create a sink's folder and its parents, durably.

    Args:
        folder: may exist.
        private: as for `make_folder_durably`.

    Raises:
        SinkError: it cannot be created, or one above it cannot be synced.
    """
    with _refused(folder):
        make_folder_durably(folder, private=private)


def take_folder(folder: Path) -> None:
    """Do so when a sink is opened, and make the names of existing folders durable.

    Raises:
        SinkError: it cannot be created, or one above it cannot be synced.
    """
    with _refused(folder):
        take_folder_durably(folder)


@contextmanager
def _refused(folder: Path) -> Iterator[None]:
    try:
        yield
    except UnsyncedFolderError as error:
        raise SinkError(
            f"cannot sync {error.filename}, so a power failure could lose the folder {folder}: {error.strerror}; fix "
            "the disk or choose another folder"
        ) from error
    except OSError as error:
        raise SinkError(f"cannot create the folder {folder}: {error.strerror}; choose a writable folder") from error


def write_durably(path: Path, data: Any, *, shared: bool = False) -> None:
    """Write bytes (any buffer) so that `path` holds all of them or does not exist, even after a crash.

    Args:
        path: of the file.
        data: its bytes.
        shared: whether the umask decides who can read it, as for the output of a sink; otherwise only its owner can.

    Raises:
        SinkError: the file cannot be written (no space, no permission, disk error).
    """
    write_pieces_durably(path, (data,), shared=shared)


def write_pieces_durably(path: str | Path, pieces: Iterable[Any], *, shared: bool = False) -> None:
    """Do the same for consecutive buffers, each of which is released before the next is taken.

    Raises:
        SinkError: the file cannot be written (no space, no permission, disk error).
    """
    place = os.fspath(path)
    temporary = place + ".tmp"
    begun = False
    try:
        disk = DISK.get()
        with FileIO(
            temporary, "w", opener=open_no_link if shared else open_private
        ) as file:  # pieces are large, or there is only one: buffering gains nothing
            begun = True
            for piece in pieces:
                disk.write(file, place, piece)
            disk.sync(file, place)
        disk.rename(temporary, place)
        disk.sync_folder(os.path.dirname(place) or ".")
    except OSError as error:
        if begun:  # release its space, which may be scarce
            with suppress(OSError):
                os.unlink(temporary)
        why = error.strerror or error
        raise SinkError(f"cannot write {path}: {why}; {_advice(error)} or choose another folder") from error


def _advice(error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "its folder existed when the job started: bring it back"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return "make its folder writable again"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return remedy(error)
    return "free some space"


def read_verified(path: Path, expected: str) -> bytes:
    """The content of a file that a snapshot lists with this checksum.

    Raises:
        CorruptCheckpointError: it is missing or a link, or its bytes differ from what was written.
        UnreadableCheckpointError: the system cannot read it now.
    """
    if not is_there(path):
        raise CorruptCheckpointError(
            f"{path}, which the checkpoint needs, cannot be read: {os.strerror(errno.ENOENT)};"
            " bring it back or restore another checkpoint"
        )
    try:
        with FileIO(path, opener=open_no_link) as file:
            data = file.readall()
    except OSError as error:
        raise cannot_be_read("a file that the checkpoint needs", path, error) from error
    if not matches(data, expected, str(path)):
        raise CorruptCheckpointError(
            f"{path} does not match its checksum in the checkpoint; bring it back or restore another checkpoint"
        )
    return data


class PartFile:
    """A file that is encoded and written at most once, by the first thread that requests it.

    Several checkpoints may list the same file while none is complete, and each of their writers must know that it is on
    disk before it acknowledges; hence the lock, which no task ever waits for.

    Args:
        path: of the file.
        encode: creates its bytes (any buffer); released, with its rows, as soon as they are on disk.
        shared: as for `write_durably`.
    """

    __slots__ = ("_checksum", "_encode", "_lock", "_shared", "path")

    def __init__(self, path: Path, encode: Callable[[], Any], *, shared: bool = False) -> None:
        self.path = path
        self._shared = shared
        self._encode: Callable[[], Any] | None = encode
        self._lock = threading.Lock()
        self._checksum = ""

    @classmethod
    def written(cls, path: Path, checksum: str) -> PartFile:
        """A file that is already on disk."""
        part = cls(path, bytes)
        part._encode = None
        part._checksum = checksum
        return part

    def write(self) -> str:
        """Write the file unless it is written already; return its checksum.

        Raises:
            SinkError: it cannot be written; the next call tries again.
        """
        with self._lock:
            if self._encode is not None:
                data = memoryview(self._encode())
                write_durably(self.path, data, shared=self._shared)
                self._checksum = checksum(data)
                self._encode = None
            return self._checksum
