"""The end of a script: it waits for the jobs that come to an end by themselves, and stops the others.

A job runs on threads that do not keep the process alive. So a thread that does is started with the first job, and waits
for the end of the script: threads can still be started then, as a restart needs, but not any more when functions
registered with ``atexit`` run (Python 3.12; before 3.12.3 not at this time either). Ctrl-C interrupts the interpreter's
own wait for this thread, and the process ends as if the script had been killed: a resumed job loses nothing.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from workbench.api.job.endings import end_all
from workbench.errors import WorkbenchError
from workbench.front_ends import is_script

if TYPE_CHECKING:
    from workbench.api.job.job import Job

PATIENCE_S = 60.0
"""How long stopped jobs may take for their last checkpoint."""
SILENCE_S = 1.0
"""How long the script waits without saying so."""
_LOOK_S = 0.05

_log = logging.getLogger("workbench.job")
_attending: list[threading.Thread] = []
_starting = threading.Lock()


def _begin_anew() -> None:
    """In a forked process, which has neither the thread nor the jobs."""
    global _starting
    _attending.clear()
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


def attend(jobs: Callable[[], Mapping[str, Job]]) -> None:
    """Wait for these jobs at the end of the script; does nothing if there is no script, or on a second call."""
    with _starting:
        if _attending or not is_script():
            return
        import concurrent.futures.thread  # noqa: F401  a module that registers itself cannot be imported later

        thread = threading.Thread(target=_attend, args=(jobs,), name="workbench-script-end")
        _attending.append(thread)
        thread.start()


def running(jobs: Iterable[Job]) -> list[Job]:
    """The jobs that go on by themselves: not those that a person steps, or that have ended."""
    return [job for job in jobs if job.live and not has_ended(job)]


def has_ended(job: Any) -> bool:
    """Whether a job is over, and everything that it had to write is written."""
    return bool(job.over if job.engine == "spark" else job._run.driver.ended.is_set())


def endless(job: Any) -> str:
    """Why a job does not end by itself, as the end of a sentence; empty: it does."""
    if job.state == "SUSPENDED":
        return "it is suspended"
    logical = job._run.graph.logical if job.engine == "spark" else job._run.master.logical
    if not logical.bounded:
        return "its source has no end"
    if job.engine != "spark" and job._run.master.paused:
        return "it is paused"
    if job.engine != "spark" and job._run.master.held_open:
        return "its at_end is 'hold'"
    return ""


def _attend(jobs: Callable[[], Mapping[str, Job]]) -> None:
    threading.main_thread().join()
    if getattr(sys, "last_value", None) is not None:
        return  # the script has failed, and its user waits for nothing more
    names = sorted(job.name for job in running(jobs().values()))
    if not names:
        return
    sys.unraisablehook = _interrupted(sys.unraisablehook, names)
    say_at_s = time.monotonic() + SILENCE_S
    while left := running(jobs().values()):
        _end_endless(left)
        if time.monotonic() >= say_at_s:
            say_at_s = float("inf")
            _log.warning("the script has ended, and waits for %s to end; Ctrl-C ends it at once", _named(left))
        time.sleep(_LOOK_S)


def _end_endless(jobs: Iterable[Job]) -> None:
    """Stop those that would never end."""
    reasons = {job: reason for job in jobs if not job.over and (reason := endless(job))}
    for job, reason in reasons.items():
        _log.warning(
            "job %r: the script has ended, so the job is stopped, because %s: call job.wait() at the end of the script "
            "to let it run until Ctrl-C",
            job.name, reason,
        )  # fmt: skip
    if reasons and not end_all(reasons, PATIENCE_S):
        for job in reasons:
            with suppress(WorkbenchError):
                job.cancel()


def _named(jobs: Iterable[Job]) -> str:
    return " and ".join(repr(job.name) for job in jobs)


def _interrupted(before: Callable[[Any], object], names: list[str]) -> Callable[[Any], object]:
    """Ctrl-C in the interpreter's wait is reported as an exception that nothing can catch: say what it does."""

    def report(unraisable: Any) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            _log.warning("interrupted while the script waited for %s", " and ".join(map(repr, names)))
        else:
            before(unraisable)

    return report
