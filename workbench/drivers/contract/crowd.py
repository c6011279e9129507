"""What the slots of all live jobs of this process take together: they share its processors and the interpreter lock."""

from __future__ import annotations

import os
import threading
from functools import partial

SLEEPERS = 16
"""So many slots may wake up often just to look around; where there are more, each of them does so less often."""
PATIENCE_MAX = 5.0


class Crowd:
    """The slots of all jobs.

    Attributes:
        jobs: that run at present.
        patience: how many times as long as one that is nearly alone a slot sleeps before it looks around.
        look_us: how often the sources of the job looked that chose last.
        spent_us: processor time that slots have used so far. Threads add to it without a lock, and one of two numbers
            that come at the same moment may be lost: nothing but paces depends on it.

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

    __slots__ = ("_lock", "_slots", "jobs", "look_us", "patience", "spent_us")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[object, int] = {}
        self.jobs = 0
        self.patience = 1.0
        self.look_us = 0
        self.spent_us = 0

    def join(self, job: object, slots: int) -> None:
        """A job runs on so many slots."""
        with self._lock:
            self._slots[job] = slots
            self._count()

    def leave(self, job: object) -> None:
        """It runs no more; called twice it does nothing."""
        with self._lock:
            self._slots.pop(job, None)
            self._count()

    def _count(self) -> None:
        self.jobs = len(self._slots)
        self.look_us = self.look_us if self.jobs > 1 else 0
        self.patience = min(max(1.0, sum(self._slots.values()) / SLEEPERS), PATIENCE_MAX)


CROWD = Crowd()
os.register_at_fork(after_in_child=partial(Crowd.__init__, CROWD))  # a forked process has none of these jobs
