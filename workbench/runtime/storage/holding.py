"""Who holds a checkpoint directory: one process at a time."""

from __future__ import annotations

import fcntl
import os
from io import FileIO
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from workbench.clock import Clock
from workbench.connectors.disk import open_no_link, take_folder_durably
from workbench.errors import UnreadableCheckpointError
from workbench.runtime.storage.files import Files, LocalFiles
from workbench.runtime.storage.holder import HeldError, Holder
from workbench.runtime.storage.lease import Lease
from workbench.runtime.storage.locations import open_files

LOCK = "lock"
"""The file of a directory on this machine that is locked, and that says who has locked it."""


class Hold(Protocol):
    """A directory that this process has taken for itself.

    Attributes:
        files: in it.
        directory: the folder, if it is one of this machine.
        holder: this process.
    """

    files: Files
    directory: Path | None
    holder: Holder

    def settle(self) -> None:
        """Asked once, before anything is done in the directory.

        Raises:
            HeldError: another process has taken it at the same moment.
        """
        ...

    def beat(self) -> None:
        """Called every few seconds as long as the job runs.

        Raises:
            CheckpointError: another process has taken the directory.
        """
        ...

    def check(self) -> None:
        """Asked before a checkpoint becomes complete, before anybody is told so, and before one is removed.

        Raises:
            CheckpointError: another process has taken the directory.
        """
        ...

    def release(self) -> None:
        """Let another process have it."""
        ...


class LocalHold:
    """A lock on a folder of this machine, which the system takes back when the process ends, however it ends.

    A process that is forked meanwhile, as by ``multiprocessing``, has no part in it.

    Args:
        folder: is made when it does not exist.

    Raises:
        UnreadableCheckpointError: the folder cannot be written.
        HeldError: another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self.directory: Path | None = folder.absolute()
        self.files: Files = LocalFiles(folder)
        self._lock: FileIO | None = None
        _HOLDS.add(self)
        try:
            take_folder_durably(self.directory)
            self._lock = FileIO(f"{folder}/{LOCK}", "a+", opener=open_no_link)
        except OSError as error:
            raise UnreadableCheckpointError(
                f"the checkpoint directory {str(folder)!r} cannot be written ({error.strerror}): "
                "choose another checkpoint_dir or change its permissions"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = Holder.read(self._lock.readall().decode())
            self._lock.close()
            raise HeldError(str(folder), holder) from None
        self.holder = Holder.this_process()
        self._lock.truncate(0)
        self._lock.write(self.holder.write().encode())

    def settle(self) -> None:
        """Of two who want a lock one gets it."""

    def beat(self) -> None:
        """A lock needs no heartbeat."""

    def check(self) -> None:
        """Nobody can take a lock away."""

    def release(self) -> None:
        if self._lock is not None:
            self._lock.truncate(0)  # nobody holds it any more, and whoever looks is to know
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing it would not do where another process has it open, too
            self.forget()

    def forget(self) -> None:
        """Have the lock no longer, and leave it to whoever has it besides."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


_HOLDS: WeakSet[LocalHold] = WeakSet()
"""Those of this process."""


def _forget_all() -> None:
    """In a forked process: the lock would stay taken until that one ends, however long after its parent."""
    for each in list(_HOLDS):
        each.forget()


os.register_at_fork(after_in_child=_forget_all)


def hold(location: str | Path, clock: Clock) -> Hold:
    """Take a checkpoint directory.

    Raises:
        CheckpointError: it cannot be written, or another process holds it.
    """
    files = open_files(location)
    return LocalHold(files.root) if isinstance(files, LocalFiles) else Lease(files, clock)
