"""The end of a job: stopping it, canceling it, and waiting for it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from workbench.api.job.run import PATIENCE_S, Run
from workbench.arguments import true_or_false
from workbench.durations import Duration, parse_duration
from workbench.errors import JobError, WorkbenchError

if TYPE_CHECKING:
    from workbench.api.job.job import Job


def stop(run: Run, wait: bool, timeout: Duration) -> None:
    """End a job with a last checkpoint; see `Job.stop`."""
    seconds, over = _patience(wait, timeout), run.over
    if not over:
        run.check_process()
        run.master.call(lambda: run.master.stop())  # the master at that time
    _wait_for_end(run, seconds, PATIENCE_S)
    if seconds is not None and not over:
        _check_failed(run)


def cancel(run: Run, wait: bool, timeout: Duration) -> None:
    """Cancel a job; see `Job.cancel`."""
    seconds = _patience(wait, timeout)
    if not run.driver.ended.is_set():  # it may be over, with its last file still being written to a store that hangs
        run.check_process()
        run.driver.leave_stalled_behind()
        run.master.services.opening.give_up()
        run.master.call(lambda: run.master.cancel())  # as above
        _wait_for_end(run, seconds)


def wait(run: Run, timeout: Duration | None) -> str:
    """Wait for the end of a job, and return its last state; see `Job.wait`."""
    seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
    if not run.over:
        run.check_outside()
    if not run.driver.wait_for(run.driver.ended, seconds):
        raise JobError(f"the job {run.name!r} is still {run.state} after {timeout}{run.held_up()}")
    _check_failed(run)
    return run.state


def end_all(jobs: Iterable[Job], patience_s: float) -> bool:
    """Stop jobs, each with a final checkpoint, and wait for them together; False if they took too long."""
    ending = [job for job in jobs if not job.over]
    for job in ending:
        job.stop(wait=False)  # all at once
    until_s = time.monotonic() + patience_s
    for job in ending:
        with suppress(WorkbenchError):  # it failed while stopping, or has not ended yet
            job.wait(timeout=f"{max(0.0, until_s - time.monotonic()):.3f}s")
    return all(job.over for job in ending)


def mark_told(job: object) -> None:
    """The failure of a job has been shown to its user; does nothing for what only looks like a job."""
    run = getattr(job, "_runner", None) or getattr(job, "_run", None)
    if run is not None and hasattr(run, "told"):
        run.told = True


def untold_failure(job: Any) -> str:
    """The failure of a job that has not been shown yet, with the user's lines; empty: there is none."""
    if job.state != "FAILED":
        return ""
    run = job._runner if job.engine == "spark" else job._run
    if run.told:
        return ""
    if job.engine == "spark":
        return f"the job {job.name!r} failed on Spark: {run.failure}\n{run.trace.text}".rstrip()
    life = run.master.life
    return f"the job {job.name!r} failed: {life.fact} ({life.circumstance})\n{life.trace.text}".rstrip()


def _wait_for_end(run: Run, seconds: float | None, stalled_s: float = math.inf) -> None:
    """Wait until the job has ended, unless the job is waiting for the caller; None: do not wait. If a call in the job
    does not return, wait `stalled_s` at most, unless the call waits for a server, which has an end.

    Raises:
        JobError: it has not ended; names what it waits for.
    """
    if seconds is None or run.driver.within():
        return
    first = min(seconds, stalled_s)
    wait_for, ended = run.driver.wait_for, run.driver.ended
    if wait_for(ended, first):
        return
    waits = first < seconds and (run.waits_for_server() or not run.driver.stalled())
    if not waits or not wait_for(ended, seconds - first):
        raise JobError(f"the job {run.name!r} is still {run.state}, and will end as soon as it can{run.held_up()}")


def _check_failed(run: Run) -> None:
    if run.state == "FAILED":
        life = run.master.life
        run.told = True
        told = f"the job {run.name!r} failed: {life.fact} ({life.circumstance})"
        raise JobError(told, trace=life.trace.text) from life.trace.restore()


def _patience(wait: bool, timeout: Duration) -> float | None:
    """In seconds; None: do not wait."""
    seconds = parse_duration(timeout, "timeout") / 1e6
    return seconds if true_or_false(wait, "wait") else None
