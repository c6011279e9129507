"""A folder on this machine that one job at a time owns: a checkpoint directory, or a sink's folder."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NoReturn
from weakref import WeakSet

from workbench.durable.disk import open_no_link, open_private, take_folder_durably
from workbench.durable.holder import Holder

_TEXT_MAX = 4_096
_LOOKS = 10
_LOOK_S = 0.01


class TakenError(Exception):
    """Another process or job owns the folder.

    Attributes:
        holder: the owner, if known.
    """

    def __init__(self, holder: Holder | None) -> None:
        super().__init__(str(holder or "another job"))
        self.holder = holder


class FolderLock:
    """A lock on a folder, which the system releases when the process ends, however it ends.

    A process that is forked later, for example by ``multiprocessing``, does not hold it.

    The lock is on a file. Users may delete, rename or replace this file, usually together with its folder; then the
    system no longer protects the folder. So the owner checks that the file with this name is the one that it has
    locked. If it is another file, another job has acquired the folder; if it is missing, the owner creates and locks a
    new one.

    Args:
        folder: created if it does not exist; absolute.
        name: of the lock file in it, which also names the owner.
        holder: the owner.
        private: whether only this user can use the folder and the file, where they are created.
        heir_of: an expired lease that this process has replaced. The owner of that lease may still be running, but has
            lost its rights: the lock file is replaced, which the old owner notices at its next check.

    Raises:
        TakenError: another process or job owns it.
        OSError: the folder cannot be written or locked.
    """

    def __init__(self, folder: Path, name: str, holder: Holder, heir_of: str = "", *, private: bool = False) -> None:
        self.folder = folder
        self._private = private
        self.place = f"{folder}/{name}"
        self.holder = holder
        self._lock: FileIO | None = None
        self._lost: TakenError | None = None
        self._one = threading.Lock()  # heartbeats and checkpoints check one at a time
        _LOCKS.add(self)
        try:
            self._lock = self._locked("a+")
        except TakenError as taken:
            if not heir_of or taken.holder is None or taken.holder.lease != heir_of:
                raise
            with suppress(FileNotFoundError):
                Path(self.place).unlink()
            try:
                self._lock = self._locked("x+")
            except FileExistsError:
                raise taken from None
        self._name()

    def look(self) -> None:
        """Check that the file under the lock's name is the locked one.

        Raises:
            TakenError: it is another file.
            OSError: it does not exist, or cannot be checked.
        """
        with self._one:
            self._look()

    def keep(self) -> None:
        """Check the lock, and lock the folder again if the file is gone.

        Raises:
            TakenError: another process or job owns it.
            OSError: it cannot be checked.
        """
        with self._one:
            try:
                self._look()
            except FileNotFoundError:
                self._take_again()

    def release(self) -> None:
        """Let another job own the folder."""
        if self._lock is not None:
            self._lock.truncate(0)  # shows readers that the lock is free
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing is not enough while another process has it open
            self.forget()

    def forget(self) -> None:
        """Close the lock file here without releasing the lock of other holders."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _locked(self, mode: str) -> FileIO:
        lock = self._opened(mode)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = TakenError(_owner_of(lock))
            lock.close()
            raise taken from None
        except OSError:
            lock.close()
            raise
        return lock

    def _opened(self, mode: str) -> FileIO:
        take_folder_durably(self.folder, private=self._private)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(self.place).st_mode):  # a link or a pipe that came with the folder
                raise OSError(errno.EINVAL, "Not a regular file", self.place)
        return FileIO(self.place, mode, opener=open_private if self._private else open_no_link)

    def _name(self) -> None:
        """Write the owner to the lock file; the lock is valid even if the disk is full."""
        assert self._lock is not None
        try:
            self._lock.truncate(0)
            self._lock.write(self.holder.write().encode())
        except OSError:
            pass

    def _look(self) -> None:
        if self._lost is not None:
            raise TakenError(self._lost.holder)
        if self._lock is not None and not os.path.samestat(os.lstat(self.place), os.fstat(self._lock.fileno())):
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
            with FileIO(self.place, opener=open_no_link) as lock:
                holder = _named_in(lock)
        except OSError:
            holder = None
        self._lost = TakenError(holder)
        raise self._lost


def _owner_of(lock: FileIO) -> Holder | None:
    """The owner named in a file that another process has locked, and may not have written yet."""
    for _ in range(_LOOKS):
        if (holder := _named_in(lock)) is not None:
            return holder
        threading.Event().wait(_LOOK_S)
    return None


def _named_in(lock: FileIO) -> Holder | None:
    try:
        return Holder.read(os.pread(lock.fileno(), _TEXT_MAX, 0).decode(errors="replace"))
    except OSError:
        return None


_LOCKS: WeakSet[FolderLock] = WeakSet()
"""The locks of this process."""


def _forget_all() -> None:
    """Release the locks in a forked process, which would otherwise hold them even after the end of its parent."""
    for each in list(_LOCKS):
        each.forget()


os.register_at_fork(after_in_child=_forget_all)
