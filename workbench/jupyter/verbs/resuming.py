"""``%stream resume``: continues a paused job, or a job of an earlier kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import workbench as wb
from workbench.api.kept.job_record import Cell
from workbench.api.running.found_jobs import FoundJob
from workbench.errors import JobError, unknown
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.verbs.verb import default_job
from workbench.printable import printable

RUN = "--run"
"""Makes ``%stream resume`` run the cell that it shows."""

Offer = Callable[[FoundJob, Cell, bool], Any]
"""Shows the cell of a found job, and runs it if requested."""


def show_cell(job: FoundJob, cell: Cell, run: bool) -> Any:
    """The cell, for a caller that cannot run it."""
    return Advice(printable(str(cell)))


def resume(words: Sequence[str], offer: Offer) -> Any:
    """``%stream resume``: continue a paused job, or a job of an earlier kernel from its latest checkpoint.

    The cell of a found job may come from someone else, with the directory: it is shown, and run only on request.

    Raises:
        JobError: no such job, several candidates, or a job that this kernel cannot continue.
    """
    jobs = wb.jobs()
    run = RUN in words
    words = [word for word in words if word != RUN]
    if len(words) > 1:
        raise JobError(f"%stream resume takes [NAME] [{RUN}], not {len(words)} words")
    here = {name: job for name, job in jobs.items() if not job.over}
    if (words and words[0] in here) or (here and not words):
        job = here[words[0]] if words else default_job("resume", here)
        return job.resume()
    left = wb.found_jobs()
    found = {job.name: job for job in left if job.resumable}
    if not words and len(found) != 1:
        if found:
            raise JobError(f"name the job to resume, '%stream resume NAME', from {', '.join(found)}")
        raise JobError("there is no job to resume: no job is paused here, and earlier kernels left none behind")
    name = words[0] if words else next(iter(found))
    if name not in found:
        for job in left:
            if job.name == name:
                raise JobError(f"{name!r} cannot be resumed: {job.facts[1]} ({job.facts[-1]})")
        raise JobError(unknown("job to resume", name, [*here, *found]))
    job = found[name]
    if job.record.cell is None:
        return Advice(f"{name!r} was started by Python: run its program again, with\n    pipeline.{job.call}")
    return offer(job, job.record.cell, run)
