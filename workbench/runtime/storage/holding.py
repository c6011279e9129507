"""Ownership of a checkpoint directory: one process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from workbench.arguments import option
from workbench.clock import SharedClock
from workbench.durable.folder_lock import FolderLock, TakenError
from workbench.durable.holder import Holder
from workbench.errors import CheckpointError, UnreadableCheckpointError, cannot_be_read
from workbench.runtime.storage.files import Files, LocalFiles
from workbench.runtime.storage.held import HeldError
from workbench.runtime.storage.lease import Lease
from workbench.runtime.storage.locations import open_files

LOCK = "lock"
"""The lock file of a directory on this machine, which also names the owner."""


class Hold(Protocol):
    """Ownership of a directory by this process.

    Attributes:
        files: the files in it.
        directory: the folder, if it is on this machine.
        holder: this process.
        lease: the lease by which it owns the directory; empty: it uses a lock.
        ended: the expired lease of another process that it replaced; empty: there was none.
    """

    files: Files
    directory: Path | None
    holder: Holder
    lease: str
    ended: str

    def settle(self) -> None:
        """Called once, before anything is changed in the directory.

        Raises:
            HeldError: another process acquired it at the same moment.
        """

    def beat(self) -> None:
        """Called every few seconds while the job runs.

        Raises:
            CheckpointError: another process has taken the directory.
        """

    def check(self) -> None:
        """Called before a checkpoint becomes complete, before its completion is announced, and before one is removed.

        Raises:
            CheckpointError: another process has taken the directory.
        """

    def release(self) -> None:
        """Release the directory, so that another process can own it."""


class LocalHold:
    """A lock on a folder of this machine (see `FolderLock`).

    Args:
        folder: created if it does not exist.

    Raises:
        UnreadableCheckpointError: the folder cannot be written.
        HeldError: another process owns it.
    """

    def __init__(self, folder: Path) -> None:
        self.directory: Path | None = folder.absolute()
        self.files: Files = LocalFiles(folder)
        self.holder = Holder.this_process()
        self.lease = self.ended = ""
        try:
            self._lock = FolderLock(folder.absolute(), LOCK, self.holder, private=True)
        except TakenError as taken:
            raise HeldError(str(folder), taken.holder) from None
        except OSError as error:
            raise UnreadableCheckpointError(
                f"the checkpoint directory {str(folder)!r} cannot be written ({error.strerror}): "
                f"choose another {option('checkpoint_dir', '')} or change its permissions"
            ) from error

    def settle(self) -> None:
        """There is nothing to settle: the system grants a lock to one process only."""

    def beat(self) -> None:
        """Check the lock: it needs no heartbeat, but a job that completes no checkpoint must also notice its loss."""
        with suppress(OSError), self._lost():
            self._lock.look()

    def check(self) -> None:
        try:
            with self._lost():
                self._lock.keep()
        except OSError as error:
            raise cannot_be_read("the checkpoint directory", self._lock.place, error) from error

    def release(self) -> None:
        self._lock.release()

    @contextmanager
    def _lost(self) -> Iterator[None]:
        try:
            yield
        except TakenError as taken:
            raise CheckpointError(
                f"the checkpoint directory {self.files.shown!r}, or the file {LOCK!r} in it, was deleted or replaced "
                f"while this job ran, and was taken by {taken.holder or 'another job'}: this job must not continue "
                "alongside it"
            ) from None


def hold(location: str | Path, clock: SharedClock) -> Hold:
    """Acquire a checkpoint directory.

    Raises:
        CheckpointError: it cannot be written, or another process owns it.
    """
    files = open_files(location)
    return LocalHold(files.root) if isinstance(files, LocalFiles) else Lease(files, clock)
