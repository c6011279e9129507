"""A sink's folder, which one job at a time writes to: two would each find the other's rows among its own."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from workbench.durable.folder_lock import FolderLock, TakenError
from workbench.durable.holder import Holder
from workbench.errors import SinkError

LOCK = ".workbench-lock"
"""Hidden, so that whatever reads the folder passes it over."""


class SinkFolder:
    """A folder that a job has taken for one of its sinks, from its start until it ends.

    Args:
        folder: absolute; is made when it does not exist.
        job: its name.
        lease: by which it has its checkpoint directory, if by one.
        ended: the lease that had ended when it took that directory: the job that had it no longer counts.

    Raises:
        SinkError: another job has it, or it cannot be written.
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
                f"cannot create the folder {folder} and a lock in it: {error.strerror}; choose a folder that can be "
                "written"
            ) from error

    def keep(self) -> None:
        """Called every few seconds as long as the job runs. Where the folder is gone the sink itself says so.

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
                        f"job ran, and was taken by {taken.holder or 'another job'}: this job must not go on beside it"
                    ) from None

    def release(self) -> None:
        """Let another job have it."""
        with suppress(OSError):  # the disk is full or gone, and closing it sets it free, too
            self._lock.release()
        self._lock.forget()
