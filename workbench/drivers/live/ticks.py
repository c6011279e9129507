"""When telemetry looks at a live job: ten times a second, and less often where looking would take too much time.

A frame holds every task and every channel, so it costs more the wider a graph is, and all jobs of a process are looked
at under one interpreter lock. So they share one budget: many jobs, and wide ones, are looked at less often, and the
records keep the processor. Where nothing has moved for longer than rates are taken over, a frame would repeat the one
before: such a job is only asked whether that is still so, and shown every other second.
"""

from __future__ import annotations

import os
import threading
from functools import partial

SHARE = 0.1
"""Of one processor, for looking at all jobs of the process together."""
SETTLED_US = 1_500_000
"""So long after the last change a job is quiet: rates, which are taken over a second, are zero by then."""
QUIET_US = 2_000_000
"""A quiet job is looked at this often."""
ASKED_US = 500_000
"""A quiet job is asked this often whether it still is."""


Activity = tuple[object, object]
"""What flows in a job, and what else happens to it."""


class Budget:
    """What one look at each job of the process costs, summed up.

    Attributes:
        total_us: of processor time.
    """

    __slots__ = ("_costs_us", "_lock", "total_us")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._costs_us: dict[Ticks, int] = {}
        self.total_us = 0

    def spend(self, ticks: Ticks, cost_us: int) -> None:
        """One more look at this job has cost so much; an outlier counts half."""
        with self._lock:
            before_us = self._costs_us.get(ticks, cost_us)
            self._costs_us[ticks] = (before_us + cost_us) // 2
            self.total_us = sum(self._costs_us.values())

    def leave(self, ticks: Ticks) -> None:
        """This job has ended."""
        with self._lock:
            self.total_us -= self._costs_us.pop(ticks, 0)


_BUDGET = Budget()
os.register_at_fork(after_in_child=partial(Budget.__init__, _BUDGET))  # a forked process has none of these jobs


class Ticks:
    """The looks at one job.

    Args:
        shortest_us: between two of them.
        now_us: by the clock; the first one is due now.
        budget: shared by all jobs of the process.

    Attributes:
        due_us: when the next one is due.

    Example:
        >>> ticks = Ticks(100_000, 0, Budget())
        >>> ticks.looked(0, cost_us=500)
        >>> ticks.due_us
        100000
        >>> ticks.looked(100_000, cost_us=39_500)
        >>> ticks.due_us - 100_000
        200000
    """

    __slots__ = ("_activity", "_budget", "_changed_us", "_looked_us", "_shortest_us", "_wanted_us", "due_us")

    def __init__(self, shortest_us: int, now_us: int, budget: Budget = _BUDGET) -> None:
        self._shortest_us = shortest_us
        self._budget = budget
        self._activity: Activity | None = None
        self._changed_us = self._looked_us = self._wanted_us = now_us
        self.due_us = now_us

    def sees_news(self, now_us: int, activity: Activity) -> bool:
        """Whether a look now would see anything new; if not, this is to be asked again when it is due next.

        Args:
            now_us: by the clock.
            activity: equal to the one before if nothing has happened in the job. Rates follow its first part, so a
                change there is worth more than one look.
        """
        before, self._activity = self._activity, activity
        if before is None or activity[0] != before[0]:
            self._changed_us = now_us
        quiet = now_us - self._changed_us >= SETTLED_US and now_us - self._looked_us < QUIET_US
        if not quiet or activity != before:
            return True
        self.due_us = min(now_us + ASKED_US, self._looked_us + QUIET_US)
        return False

    def stirred(self) -> None:
        """Somebody has done something to the job: ask at once whether it is quiet, if a look may be afforded."""
        self.due_us = self._wanted_us

    def looked(self, now_us: int, cost_us: int) -> None:
        """A look that began now took so much of the processor."""
        self._budget.spend(self, cost_us)
        self._looked_us = now_us
        self.due_us = self._wanted_us = now_us + max(self._shortest_us, int(self._budget.total_us / SHARE))

    def end(self) -> None:
        """Nobody looks any more."""
        self._budget.leave(self)
