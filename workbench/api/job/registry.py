"""The jobs of this process, by name."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from workbench.api.job.script_end import attend
from workbench.arguments import option, verb
from workbench.errors import JobError, unknown

if TYPE_CHECKING:
    from workbench.api.job.job import Job

_jobs: dict[str, Job] = {}
_taking = threading.Lock()
REPLACE_PATIENCE_S = 30.0
"""How long the last checkpoint of a replaced job may take."""


def _begin_anew() -> None:
    """Start empty in a forked process: its parent's jobs run there."""
    global _taking
    _jobs.clear()
    _taking = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def jobs() -> dict[str, Job]:
    """All jobs of this process, in the order of their start; an ended job stays until its name is used again.

    Jobs on Spark are among them: ``job.engine`` is ``"spark"``, and what Spark does not have raises a JobError.

    Example:
        >>> "no such job" in jobs()
        False
    """
    return _jobs.copy()


def job(name: str) -> Job:
    """The job of that name.

    Args:
        name: the name that it runs under.

    Raises:
        JobError: there is none; the error lists all names.

    Example:
        >>> job("no such job")
        Traceback (most recent call last):
        ...
        workbench.errors.JobError: unknown job 'no such job': ...
    """
    found = _jobs.get(name)
    if found is None:
        raise JobError(unknown("job", name, _jobs.copy()))
    return found


def check_free(name: str) -> None:
    """Reject a name that a running job has.

    Raises:
        JobError: such a job runs.
    """
    found = _jobs.get(name)
    if found is not None and not found.over:
        raise JobError(
            f"a job {name!r} is {found.state}: stop it first ({verb('stop', name)}), let this run stop it "
            f"({option('replace')}), or choose another name"
        )


def make_room(job: Job) -> None:
    """Stop a job that another one replaces; does nothing if it has ended.

    Raises:
        JobError: it has not stopped in time.
    """
    try:
        job.stop(timeout=f"{REPLACE_PATIENCE_S:g}s")
    except JobError as error:
        if job.over and (job.engine == "spark" or job._run.driver.ended.is_set()):
            return  # it failed while it was stopping, so the name is free
        raise JobError(f"{error.message}; {verb('cancel', job.name)} ends it without a final checkpoint") from None


def register(job: Job) -> None:
    """Register a job; it replaces an ended one of the same name.

    Raises:
        JobError: another job has started under this name in the meantime, on another thread.
    """
    with _taking:
        check_free(job.name)
        _jobs.pop(job.name, None)
        _jobs[job.name] = job
    attend(jobs)


def forget(job: Job) -> None:
    """Remove a job that could not be started, or that should not be found, so that its name is free."""
    if _jobs.get(job.name) is job:
        del _jobs[job.name]
