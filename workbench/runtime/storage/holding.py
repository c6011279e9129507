"""Ownership of a checkpoint directory: one process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from workbench.clock import Clock
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
    """A directory that this process has taken for itself.

    Attributes:
        files: in it.
        directory: the folder, if it is one of this machine.
        holder: this process.
        lease: by which it has it; empty: it has it by a lock.
        ended: the lease of another process that had ended when this one took the directory; empty: there was none.
    """

    files: Files
    directory: Path | None
    holder: Holder
    lease: str
    ended: str

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
        """Called before a checkpoint becomes complete, before its completion is announced, and before one is removed.

        Raises:
            CheckpointError: another process has taken the directory.
        """
        ...

    def release(self) -> None:
        """Let another process have it."""
        ...


class LocalHold:
    """A lock on a folder of this machine (see `FolderLock`).

    Args:
        folder: is made when it does not exist.

    Raises:
        UnreadableCheckpointError: the folder cannot be written.
        HeldError: another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self.directory: Path | None = folder.absolute()
        self.files: Files = LocalFiles(folder)
        self.holder = Holder.this_process()
        self.lease = self.ended = ""
        try:
            self._lock = FolderLock(folder.absolute(), LOCK, self.holder)
        except TakenError as taken:
            raise HeldError(str(folder), taken.holder) from None
        except OSError as error:
            raise UnreadableCheckpointError(
                f"the checkpoint directory {str(folder)!r} cannot be written ({error.strerror}): "
                "choose another checkpoint_dir or change its permissions"
            ) from error

    def settle(self) -> None:
        """Of two who want a lock one gets it."""

    def beat(self) -> None:
        """A lock needs no heartbeat, but a job that completes no checkpoint is to notice, too, that it has none."""
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
                f"while this job ran, and was taken by {taken.holder or 'another job'}: this job must not go on beside "
                "it"
            ) from None


def hold(location: str | Path, clock: Clock) -> Hold:
    """Take a checkpoint directory.

    Raises:
        CheckpointError: it cannot be written, or another process holds it.
    """
    files = open_files(location)
    return LocalHold(files.root) if isinstance(files, LocalFiles) else Lease(files, clock)
