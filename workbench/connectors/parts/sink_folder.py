"""A sink's folder, which one job at a time may use: two jobs would each find the other's rows among its own."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from workbench.durable.folder_lock import FolderLock, TakenError
from workbench.durable.holder import Holder
from workbench.errors import SinkError

LOCK = ".workbench-lock"
"""Hidden, so that readers of the folder ignore it."""


class SinkFolder:
    """A folder that a job owns for one of its sinks, from its start to its end.

    Args:
        folder: absolute; created if it does not exist.
        job: its name.
        lease: the lease by which it owns its checkpoint directory, if any.
        ended: the expired lease that it replaced: the job that had it no longer counts.

    Raises:
        SinkError: another job owns it, or it cannot be written.
    """

    def __init__(self, folder: Path, job: str, lease: str = "", ended: str = "") -> None:
        self._folder = folder
        try:
            self._lock = FolderLock(Path(os.path.realpath(folder)), LOCK, Holder.this_process(job, lease), ended)
        except TakenError as taken:
            raise SinkError(
                f"the folder {folder} is written to by {taken.holder or 'another job'}: end that job, or choose "
                "another path for the sink"
            ) from None
        except OSError as error:
            raise SinkError(
                f"cannot create the folder {folder} and a lock in it: {error.strerror}; choose a writable folder"
            ) from error

    def keep(self) -> None:
        """Called every few seconds while the job runs. If the folder is gone, the sink itself reports it.

        Raises:
            SinkError: another job has taken the folder.
        """
        with suppress(OSError):
            if self._lock.folder.is_dir():
                try:
                    self._lock.keep()
                except TakenError as taken:
                    raise SinkError(
                        f"the folder {self._folder}, or the file {LOCK!r} in it, was deleted or replaced while this "
                        f"job ran, and was taken by {taken.holder or 'another job'}: this job must not continue "
                        "alongside it"
                    ) from None

    def release(self) -> None:
        """Let another job own it."""
        with suppress(OSError):  # the disk is full or gone; closing the lock file releases it, too
            self._lock.release()
        self._lock.forget()
