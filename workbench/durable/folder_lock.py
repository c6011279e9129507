"""A folder of this machine that one job at a time has for itself: a checkpoint directory, or a sink's folder."""

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

from workbench.durable.disk import open_no_link, take_folder_durably
from workbench.durable.holder import Holder

_TEXT_MAX = 4_096


class TakenError(Exception):
    """Somebody else has the folder.

    Attributes:
        holder: who, if that is known.
    """

    def __init__(self, holder: Holder | None) -> None:
        super().__init__(str(holder or "another job"))
        self.holder = holder


class FolderLock:
    """A lock on a folder, which the system takes back when the process ends, however it ends.

    A process that is forked meanwhile, as by ``multiprocessing``, has no part in it.

    What is locked is a file, and people delete, rename and replace it, most often with its folder: then the system
    keeps nobody out. So the owner looks whether the file under its name is the one that it has locked. Where there is
    another one, another job has taken the folder; where there is none, it makes and locks a new one.

    Args:
        folder: is made when it does not exist; absolute.
        name: of the lock file in it, which also names the owner.
        holder: who that is.
        heir_of: a lease that has ended, and that this process has taken over. Who has the folder by it may still be
            there, and no longer counts: the file is replaced, as that process sees when it looks.

    Raises:
        TakenError: somebody else has it.
        OSError: the folder cannot be written or locked.
    """

    def __init__(self, folder: Path, name: str, holder: Holder, heir_of: str = "") -> None:
        self.folder = folder
        self.place = f"{folder}/{name}"
        self.holder = holder
        self._lock: FileIO | None = None
        self._lost: TakenError | None = None
        self._one = threading.Lock()  # heartbeats and checkpoints look one after the other
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
        """See that the file under the lock's name is the one that is locked.

        Raises:
            TakenError: it is another one.
            OSError: there is none, or it cannot be looked for.
        """
        with self._one:
            self._look()

    def keep(self) -> None:
        """Do so, and take the folder again where the file is gone.

        Raises:
            TakenError: somebody else has it.
            OSError: it cannot be looked for.
        """
        with self._one:
            try:
                self._look()
            except FileNotFoundError:
                self._take_again()

    def release(self) -> None:
        """Let another job have the folder."""
        if self._lock is not None:
            self._lock.truncate(0)  # shows readers that the lock is free
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing it would not do where another process has it open, too
            self.forget()

    def forget(self) -> None:
        """Release the lock here, and leave it to its other holders."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _locked(self, mode: str) -> FileIO:
        lock = self._opened(mode)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = TakenError(_named_in(lock))
            lock.close()
            raise taken from None
        except OSError:
            lock.close()
            raise
        return lock

    def _opened(self, mode: str) -> FileIO:
        take_folder_durably(self.folder)
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(self.place).st_mode):  # a link, a pipe: it came with the folder
                raise OSError(errno.EINVAL, "Not a regular file", self.place)
        return FileIO(self.place, mode, opener=open_no_link)

    def _name(self) -> None:
        """Write the owner to the lock file; the lock holds even if there is no space for that."""
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


def _named_in(lock: FileIO) -> Holder | None:
    try:
        return Holder.read(os.pread(lock.fileno(), _TEXT_MAX, 0).decode(errors="replace"))
    except OSError:
        return None


_LOCKS: WeakSet[FolderLock] = WeakSet()
"""Those of this process."""


def _forget_all() -> None:
    """In a forked process: the lock would stay taken until that one ends, however long after its parent."""
    for each in list(_LOCKS):
        each.forget()


os.register_at_fork(after_in_child=_forget_all)
