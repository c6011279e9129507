"""The combined load of the slots of all live jobs of this process: they share its processors and the interpreter
lock."""

from __future__ import annotations

import os
import threading
from functools import partial

SLEEPERS = 16
"""Up to this many slots wake up frequently just to check; if there are more, each of them does so less often."""
PATIENCE_MAX = 5.0


class Crowd:
    """The slots of all jobs.

    Attributes:
        jobs: the number of running jobs.
        patience: the factor by which a slot sleeps longer before it checks than one that is nearly alone.
        look_us: the polling interval that a job's sources chose last.
        spent_us: processor time that slots have used so far. Threads add to it without a lock, and one of two
            simultaneous additions may be lost: only paces depend on it.

    Example:
        >>> crowd = Crowd()
        >>> crowd.join("one", 4)
        >>> crowd.join("other", 28)
        >>> crowd.jobs, crowd.patience
        (2, 2.0)
        >>> crowd.leave("other")
        >>> crowd.jobs, crowd.patience
        (1, 1.0)
    """

    __slots__ = ("_lock", "_places", "_slots", "jobs", "look_us", "patience", "spent_us")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[object, int] = {}
        self._places = 0
        self.jobs = 0
        self.patience = 1.0
        self.look_us = 0
        self.spent_us = 0

    def place(self) -> int:
        """Where in each polling interval another job is to poll, in thousandths: jobs that all poll at once would only
        wait for each other."""
        with self._lock:
            self._places += 1
            return self._places * 618 % 1_000  # spreads evenly, however many there are

    def join(self, job: object, slots: int) -> None:
        """Register a job with this many slots."""
        with self._lock:
            self._slots[job] = slots
            self._count()

    def leave(self, job: object) -> None:
        """Remove a job; a second call does nothing."""
        with self._lock:
            self._slots.pop(job, None)
            self._count()

    def _count(self) -> None:
        self.jobs = len(self._slots)
        self.look_us = self.look_us if self.jobs > 1 else 0
        self.patience = min(max(1.0, sum(self._slots.values()) / SLEEPERS), PATIENCE_MAX)


CROWD = Crowd()
os.register_at_fork(after_in_child=partial(Crowd.__init__, CROWD))  # a forked process has none of these jobs
