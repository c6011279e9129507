"""Logs what happens to a job through Python's ``logging``, for programs that look at no dashboard.

Python prints warnings and errors on stderr by default; a program that configures ``logging`` gets the rest, too. No
message has a secret: each is masked like the job's own log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from workbench.drivers.contract.driver import Driver
from workbench.redaction import redacted
from workbench.runtime.job.observer import JobObserver

JOB = logging.getLogger("workbench.job")
"""Starts, ends, restarts and failures."""
CHECKPOINTS = logging.getLogger("workbench.checkpoints")
"""Savepoints, and checkpoints that fail."""
RECORDS = logging.getLogger("workbench.records")
"""Records that become dead letters."""

PAUSE_US = 1_000_000
"""The least time between two warnings of one job that are of the same kind."""


class Warnings:
    """Warnings of one kind: at most one a second, which counts those that were left out.

    Args:
        log: receives them.
        told: the message for a number of them and the text of the last one.
    """

    def __init__(self, log: logging.Logger, told: Callable[[int, str], str]) -> None:
        self._log = log
        self._told = told
        self._count = 0
        self._text = ""
        self._next_us: int | None = None

    def add(self, now_us: int, text: str = "", count: int = 1) -> None:
        """Log it now, or with later ones; `count`: how many it stands for."""
        self._count += count
        self._text = text
        self.flush(now_us)

    def flush(self, now_us: int, *, now: bool = False) -> None:
        """Log what was left out, if a second has passed or it must be `now`."""
        if not self._count or not (now or self._next_us is None or now_us >= self._next_us):
            return
        _say(self._log, logging.WARNING, self._told(self._count, self._text))
        self._count, self._next_us = 0, now_us + PAUSE_US


class JobLog(JobObserver):
    """Logs what happens to one job.

    Args:
        name: of the job.
    """

    def __init__(self, name: str) -> None:
        self._about = f"job {name!r}:"
        self._driver: Driver
        self._failure = ""
        self._letters: dict[str, int] = {}
        self._restarts = Warnings(JOB, self._counted("restarts"))
        self._failed = Warnings(CHECKPOINTS, self._counted("failed checkpoints"))
        self._dead = Warnings(RECORDS, lambda count, _: f"{self._about} {count:,} records became dead letters")
        self._mishaps = Warnings(JOB, self._counted("mishaps"))
        self._all = (self._restarts, self._failed, self._dead, self._mishaps)

    def watch(self, driver: Driver) -> None:
        """Log what happens to the job that this one drives."""
        self._driver = driver

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        """Log a change of the job's state, with the failure that led to it."""
        if kind == "failure":
            trace = self._driver.master.life.trace.text
            self._failure = f"{text}\n{trace}" if trace else text
        elif kind == "state":
            self._entered(time_us, text)

    def on_deployed(self, time_us: int) -> None:
        """Tasks run: those of a region, if a failure is still to be logged."""
        self._restarted(time_us, "restarted in part")

    def on_checkpoint_failed(self, time_us: int, text: str) -> None:
        """Warn of it."""
        self._failed.add(time_us, text)

    def on_savepoint(self, name: str, path: str) -> None:
        """Log it."""
        _say(CHECKPOINTS, logging.INFO, f"{self._about} savepoint {name!r} is complete{f': {path}' if path else ''}")

    def on_mishap(self, text: str, trace: str) -> None:
        """Warn of it."""
        self._mishaps.add(self._now(), f"{text}\n{trace}" if trace else text)

    def look(self) -> None:
        """Count dead letters, and log what was left out a second ago; called ten times a second or less often."""
        now_us, over = self._now(), self._driver.master.over
        if new := self._new_letters():
            self._dead.add(now_us, count=new)
        for each in self._all:
            each.flush(now_us, now=over)

    def _entered(self, time_us: int, state: str) -> None:
        if state == "RESTARTING":
            self._restarted(time_us, "restarts")
        elif state == "RUNNING":
            _say(JOB, logging.INFO, f"{self._about} runs")
        elif state == "SUSPENDED":
            _say(JOB, logging.INFO, f"{self._about} waits for its checkpoint directory")
        elif self._driver.master.over:
            for each in self._all:
                each.flush(time_us, now=True)
            if state == "FAILED":
                _say(JOB, logging.ERROR, f"{self._about} failed: {self._failure}")
            else:
                _say(JOB, logging.INFO, f"{self._about} ended ({state})")

    def _counted(self, what: str) -> Callable[[int, str], str]:
        return lambda count, text: f"{self._about} {f'{count:,} {what}, the last: ' if count > 1 else ''}{text}"

    def _restarted(self, time_us: int, how: str) -> None:
        if self._failure:
            self._restarts.add(time_us, f"{how} after a failure: {self._failure}")
            self._failure = ""

    def _new_letters(self) -> int:
        """The number of dead letters since the last call; counters of a task that restarts begin anew."""
        execution, new = self._driver.master.execution, 0
        for task in () if execution is None else execution.tasks:
            count = sum(link.counters.numRecordsInErrors for link in task.links)
            before = self._letters.get(task.name, 0)
            new += count - (before if count >= before else 0)
            self._letters[task.name] = count
        return new

    def _now(self) -> int:
        return self._driver.master.services.clock.now_us()


def _say(log: logging.Logger, level: int, text: str) -> None:
    with suppress(Exception):  # a handler of the user's must not end the job
        log.log(level, "%s", redacted(text))
