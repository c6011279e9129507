"""How a job ends: it is stopped, it is canceled, and somebody waits for its end."""

from __future__ import annotations

import math

from workbench.api.job.run import PATIENCE_S, Run
from workbench.arguments import true_or_false
from workbench.durations import Duration, parse_duration
from workbench.errors import JobError


def stop(run: Run, wait: bool, timeout: Duration) -> None:
    """End a job with a last checkpoint; see `Job.stop`."""
    seconds, over = _patience(wait, timeout), run.over
    if not over:
        run.check_process()
        run.master.call(lambda: run.master.stop())  # whoever is the master then
    _wait_for_end(run, seconds, PATIENCE_S)
    if seconds is not None and not over:
        _check_failed(run)


def cancel(run: Run, wait: bool, timeout: Duration) -> None:
    """End a job at once; see `Job.cancel`."""
    seconds = _patience(wait, timeout)
    if not run.driver.ended.is_set():  # it may be over, and its last file be on the way to a store that hangs
        run.check_process()
        run.driver.leave_stalled_behind()
        run.master.call(lambda: run.master.cancel())  # as above
        _wait_for_end(run, seconds)


def wait(run: Run, timeout: Duration | None) -> str:
    """Wait for the end of a job, and tell its last state; see `Job.wait`."""
    seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
    if not run.over:
        run.check_outside()
    if not run.driver.wait_for(run.driver.ended, seconds):
        raise JobError(f"the job {run.name!r} is still {run.state} after {timeout}{run.held_up()}")
    _check_failed(run)
    return run.state


def _wait_for_end(run: Run, seconds: float | None, stalled_s: float = math.inf) -> None:
    """Wait for what has been asked for, unless the job waits for the caller; None: not at all. For a call that does
    not return it waits `stalled_s` at most.

    Raises:
        JobError: it has not ended; says what it waits for.
    """
    if seconds is None or run.driver.within():
        return
    first = min(seconds, stalled_s)
    wait_for, ended = run.driver.wait_for, run.driver.ended
    if not wait_for(ended, first) and (
        first == seconds or run.driver.stalled() or not wait_for(ended, seconds - first)
    ):
        raise JobError(f"the job {run.name!r} is still {run.state}, and ends when it can{run.held_up()}")


def _check_failed(run: Run) -> None:
    if run.state == "FAILED":
        life = run.master.life
        raise JobError(f"the job {run.name!r} failed: {life.fact} ({life.circumstance})")


def _patience(wait: bool, timeout: Duration) -> float | None:
    """In seconds; None: nobody waits."""
    seconds = parse_duration(timeout, "timeout") / 1e6
    return seconds if true_or_false(wait, "wait") else None
