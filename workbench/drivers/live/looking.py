"""How often sources poll for records that are due.

A record waits for the next poll, half the interval on average, and each poll costs a step of the source and of each
receiver. So sources of a job whose records are shipped immediately poll as often as possible while its slots stay idle
for part of the time; if records wait for the buffer timeout anyway, polling more often would only waste processor time.
Jobs that run side by side share one interpreter lock: the more the others use, the less often all of them poll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median

from workbench.connectors.contract.rate import LOOK_US
from workbench.drivers.contract.crowd import CROWD, Crowd

BUSY_SHARE = 0.7
"""Of one processor, for all slots together: they share the interpreter lock."""
WAITING_SHARE = 0.2
"""Of one processor, for all jobs together, if records wait for the buffer timeout anyway."""
SHORTEST_US = 100
LONGEST_US = 4_000
"""The interval for a job that is alone and ships records immediately, if there is no time for a poll in every
`LOOK_US`; with other jobs it is multiplied by their number, up to `LONGEST_OF_ALL_US`."""
LONGEST_OF_ALL_US = 100_000
_MEASURED_US = 20_000


class Looking:
    """Chooses the polling interval from how busy the slots are.

    Args:
        now_us: reads the clock.
        crowd: the jobs of this process.

    Attributes:
        interval_us: the present interval.
        from_us: where in each interval to poll; 0 for a job that is alone.

    Example:
        >>> time_us = iter([0, 20_000, 40_000])
        >>> looking = Looking(lambda: next(time_us))
        >>> looking.rested(busy_us=7_000, ship_after_us=0), looking.rested(busy_us=28_000, ship_after_us=0)
        (500, 750)
    """

    __slots__ = (
        *("_busy_us", "_costs_us", "_crowd", "_now_us", "_others_us", "_place", "_since_us", "_spent_us"),
        "interval_us",
    )

    def __init__(self, now_us: Callable[[], int], crowd: Crowd = CROWD) -> None:
        self._now_us = now_us
        self._crowd = crowd
        self._place = crowd.place()
        self._spent_us = 0
        self._others_us = crowd.spent_us
        self._since_us = now_us()
        self._busy_us = 0
        self._costs_us: deque[float] = deque(maxlen=3)
        self.interval_us = max(LOOK_US, crowd.look_us)  # among many jobs, start with their interval

    @property
    def from_us(self) -> int:
        return self.interval_us * self._place // 1_000 if self._crowd.jobs > 1 else 0

    def rested(self, busy_us: int, ship_after_us: int | None, spent_us: int = 0) -> int:
        """A slot goes to sleep, or is awake continuously, after being busy for `busy_us`; returns the new interval.

        Args:
            busy_us: since it woke up, or since the last call.
            ship_after_us: how long a record waits for its buffer to fill; None: without a limit.
            spent_us: processor time in that period.
        """
        crowd = self._crowd
        self._busy_us += busy_us  # two slots may add at once, and one addition be lost: the value is an estimate anyway
        self._spent_us += spent_us
        crowd.spent_us += spent_us
        now_us = self._now_us()
        elapsed_us = now_us - self._since_us
        if elapsed_us >= _MEASURED_US:
            others_us = max(0, crowd.spent_us - self._others_us - self._spent_us)
            # The cost of an interval; the median, because occasionally something else uses the processor for a while.
            self._costs_us.append((self._busy_us + others_us) / elapsed_us * self.interval_us)
            self._since_us, self._busy_us, self._spent_us, self._others_us = now_us, 0, 0, crowd.spent_us
            cost_us = median(self._costs_us)
            longest_us = min(LONGEST_US * max(1, crowd.jobs), LONGEST_OF_ALL_US)
            if ship_after_us is not None and ship_after_us < LOOK_US:
                self.interval_us = min(max(int(cost_us / BUSY_SHARE), SHORTEST_US, ship_after_us), longest_us)
            elif crowd.jobs <= 1:
                self.interval_us = LOOK_US
            else:
                self.interval_us = crowd.look_us = min(max(int(cost_us / WAITING_SHARE), LOOK_US), longest_us)
        return self.interval_us
