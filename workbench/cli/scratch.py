"""A temporary folder for the duration of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

import workbench as wb

PATIENCE = "10s"


@contextmanager
def scratch_folder(prefix: str) -> Iterator[str]:
    """A new folder that is removed at the end.

    Jobs that were started inside the block and still run, for example after an interrupt, are canceled first, because
    they would write to the folder while it is removed. Other jobs of the process continue.
    """
    others = {id(job) for job in wb.jobs().values()}
    with TemporaryDirectory(prefix=prefix) as folder:
        try:
            yield folder
        finally:
            running = [job for job in wb.jobs().values() if id(job) not in others and not job.over]
            for job in running:
                job.cancel(wait=False)
            for job in running:
                with suppress(wb.errors.JobError):  # canceling takes longer
                    job.wait(PATIENCE)
