"""Who holds a checkpoint directory: one process at a time."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NoReturn, Protocol
from weakref import WeakSet

from workbench.clock import Clock
from workbench.connectors.disk import open_no_link, take_folder_durably
from workbench.errors import CheckpointError, UnreadableCheckpointError, cannot_be_read
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

    What is locked is a file, and people delete, rename and replace it, most often with its folder: then the system
    keeps nobody out. So the owner looks whether the file under its name is the one that it has locked. Where there is
    another one, another process has taken the folder; where there is none, it makes and locks a new one.

    Args:
        folder: is made when it does not exist.

    Raises:
        UnreadableCheckpointError: the folder cannot be written.
        HeldError: another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self.directory: Path | None = folder.absolute()
        self.files: Files = LocalFiles(folder)
        self._place = f"{self.directory}/{LOCK}"
        self._lock: FileIO | None = None
        self._lost = ""
        self._one = threading.Lock()  # heartbeats and checkpoints look one after the other
        _HOLDS.add(self)
        self.holder = Holder.this_process()
        try:
            self._lock = self._opened("a+")
        except OSError as error:
            raise UnreadableCheckpointError(
                f"the checkpoint directory {str(folder)!r} cannot be written ({error.strerror}): "
                "choose another checkpoint_dir or change its permissions"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _named_in(self._lock)
            self._lock.close()
            raise HeldError(str(folder), holder) from None
        self._name()

    def settle(self) -> None:
        """Of two who want a lock one gets it."""

    def beat(self) -> None:
        """A lock needs no heartbeat, but a job that completes no checkpoint is to notice, too, that it has none."""
        with suppress(OSError), self._one:
            self._look()

    def check(self) -> None:
        with self._one:
            try:
                self._look()
            except FileNotFoundError:
                self._take_again()
            except OSError as error:
                raise cannot_be_read("the checkpoint directory", self._place, error) from error

    def release(self) -> None:
        if self._lock is not None:
            self._lock.truncate(0)  # nobody holds it any more, and whoever looks is to know
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing it would not do where another process has it open, too
            self.forget()

    def _opened(self, mode: str) -> FileIO:
        assert self.directory is not None
        take_folder_durably(self.directory)
        return FileIO(self._place, mode, opener=open_no_link)

    def _name(self) -> None:
        """Say in the locked file who has locked it; it is locked also where there is no space for that."""
        assert self._lock is not None
        with suppress(OSError):
            self._lock.truncate(0)
            self._lock.write(self.holder.write().encode())

    def _look(self) -> None:
        """See that the file under the lock's name is the one that is locked; raises an OSError where there is none."""
        if self._lost:
            raise CheckpointError(self._lost)
        if self._lock is not None and not os.path.samestat(os.lstat(self._place), os.fstat(self._lock.fileno())):
            self._lose()

    def _take_again(self) -> None:
        try:
            lock = self._opened("x+")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileExistsError, BlockingIOError):
            self._lose()
        self.forget()
        self._lock = lock
        self._name()

    def _lose(self) -> NoReturn:
        try:
            with FileIO(self._place, opener=open_no_link) as lock:
                holder = _named_in(lock)
        except OSError:
            holder = None
        self._lost = (
            f"the checkpoint directory {self.files.shown!r}, or the file {LOCK!r} in it, was deleted or replaced while "
            f"this job ran, and was taken by {holder or 'another job'}: this job must not go on beside it"
        )
        raise CheckpointError(self._lost)

    def forget(self) -> None:
        """Have the lock no longer, and leave it to whoever has it besides."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _named_in(lock: FileIO) -> Holder | None:
    lock.seek(0)
    return Holder.read(lock.readall().decode())


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
