"""When telemetry samples a live job: ten times a second, less often if no one looks or if it would take too much time.

A frame holds every task and every channel, so it costs more the wider a graph is, and all jobs of a process are looked
at under one interpreter lock. So they share one budget: many jobs, and wide ones, are looked at less often, and the
records keep the processor. Where nothing has moved for longer than rates are taken over, a frame would repeat the one
before: such a job is only asked whether that is still so, and shown every other second.

Where no one reads the frames, they are only kept in case that someone does later: half as many of a job that works, and
few of a quiet one. A reader gets a new one at its next read.
"""

from __future__ import annotations

import os
import threading
from functools import partial

SHARE = 0.1
"""Of one processor, for sampling all jobs of the process together."""
UNREAD_SHARE = SHARE / 2
"""Of one processor, if no one reads what is sampled."""
SETTLED_US = 1_500_000
"""The time after the last change from which a job is quiet: rates, which are averages over a second, are zero by
then."""
QUIET_US = 2_000_000
"""The interval between two samples of a quiet job."""
ASKED_US = 500_000
"""The interval between two checks whether a job is still quiet."""
UNREAD_US = 3_000_000
"""The time without a reader from which a job is sampled half as often."""
UNREAD_QUIET_US = 10_000_000
"""The interval between two samples of a quiet job that no one reads."""
UNREAD_ASKED_US = 2_000_000
"""The interval between two checks whether it is still quiet."""


Activity = tuple[object, object, object]
"""The data flow of a job, its reported state, and details that matter only while someone watches."""


class Budget:
    """The cost of one sample of each job of the process, summed up.

    Attributes:
        total_us: of processor time.
    """

    __slots__ = ("_costs_us", "_lock", "total_us")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._costs_us: dict[Ticks, int] = {}
        self.total_us = 0

    def spend(self, ticks: Ticks, cost_us: int) -> None:
        """Record the cost of a sample of this job; an outlier counts half."""
        with self._lock:
            before_us = self._costs_us.get(ticks)
            now_us = cost_us if before_us is None else (before_us + cost_us) // 2
            self._costs_us[ticks] = now_us
            self.total_us += now_us - (before_us or 0)

    def leave(self, ticks: Ticks) -> None:
        """Remove a job that has ended."""
        with self._lock:
            self.total_us -= self._costs_us.pop(ticks, 0)


_BUDGET = Budget()
os.register_at_fork(after_in_child=partial(Budget.__init__, _BUDGET))  # a forked process has none of these jobs


class Ticks:
    """The samples of one job.

    Args:
        shortest_us: the minimum interval.
        now_us: by the clock; the first sample is due now.
        budget: shared by all jobs of the process.

    Attributes:
        due_us: when the next sample is due.
        unread: no one has read a sample for `UNREAD_US`.

    Example:
        >>> ticks = Ticks(100_000, 0, Budget())
        >>> ticks.looked(0, cost_us=500)
        >>> ticks.due_us
        100000
        >>> ticks.looked(100_000, cost_us=39_500)
        >>> ticks.due_us - 100_000
        200000
    """

    __slots__ = (
        *("_activity", "_budget", "_changed_us", "_looked_us", "_planned_us", "_read_us", "_shortest_us", "_wanted_us"),
        *("due_us", "unread"),
    )

    def __init__(self, shortest_us: int, now_us: int, budget: Budget = _BUDGET) -> None:
        self._shortest_us = shortest_us
        self._budget = budget
        self._activity: Activity | None = None
        self._changed_us = self._looked_us = self._read_us = self._wanted_us = self._planned_us = now_us
        self.due_us = now_us
        self.unread = False

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
        asked_us, quiet_us, seen = ASKED_US, QUIET_US, 3
        if self.unread:
            asked_us, quiet_us, seen = UNREAD_ASKED_US, UNREAD_QUIET_US, 2
        settled = now_us - self._changed_us >= SETTLED_US
        if before is None or activity[1:seen] != before[1:seen]:
            return True
        if self.unread and now_us < self._planned_us:  # what has stirred it is nothing to tell of
            self.due_us = self._planned_us
            return False
        if not settled or now_us - self._looked_us >= quiet_us:
            return True
        self.due_us = min(now_us + asked_us, self._looked_us + quiet_us)
        return False

    def stirred(self) -> None:
        """A user has acted on the job: check immediately whether it is still quiet, if the budget allows a sample."""
        self.due_us = self._wanted_us

    def wanted(self, now_us: int) -> bool:
        """Someone wants to read; returns whether a new sample is worth waiting for, and is due then."""
        was_unread, self.unread = self.unread, False
        self._read_us = now_us
        if not was_unread or now_us < self._wanted_us:
            return False
        self.due_us = now_us
        return True

    def looked(self, now_us: int, cost_us: int, *, read: bool = True) -> None:
        """Record a sample that began now and took this much processor time.

        Args:
            now_us: by the clock.
            cost_us: of processor time.
            read: frames have been read since the sample before.
        """
        self._budget.spend(self, cost_us)
        self._looked_us = now_us
        if read:
            self._read_us = now_us
        self.unread = now_us - self._read_us >= UNREAD_US
        wanted_us = max(self._shortest_us, int(self._budget.total_us / SHARE))
        self._wanted_us = self._planned_us = now_us + wanted_us
        if self.unread:
            self._planned_us = now_us + max(2 * self._shortest_us, int(self._budget.total_us / UNREAD_SHARE))
        self.due_us = self._planned_us

    def end(self) -> None:
        """No further samples are taken."""
        self._budget.leave(self)
