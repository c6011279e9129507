"""A folder for as long as a command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

import workbench as wb

PATIENCE = "10s"


@contextmanager
def scratch_folder(prefix: str) -> Iterator[str]:
    """A new folder that is removed in the end.

    Jobs that were started meanwhile and still run, as after an interrupt, are canceled first: they would write to it
    while it is removed. Those of a notebook around it go on.
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
                with suppress(wb.errors.JobError):  # it takes longer
                    job.wait(PATIENCE)
