"""How often sources look for records that are due.

A record waits for the next look, half the interval on average, and each look costs a step of the source and of each
receiver. So sources of a job whose records are shipped at once look as often as leaves its slots idle for a part of the
time; where records wait for the buffer timeout anyway, looking more often would only burn the processor. Jobs that run
beside each other share one interpreter lock: what the others take is not there for looks, and all look less often.
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
"""Of one processor, for all jobs together, where records wait for the buffer timeout anyway."""
SHORTEST_US = 100
LONGEST_US = 4_000
"""Where a job is alone and records are shipped at once, but there is no time even for a look in `LOOK_US`; among other
jobs it is longer by their number, up to `LONGEST_OF_ALL_US`."""
LONGEST_OF_ALL_US = 100_000
_MEASURED_US = 20_000


class Looking:
    """Chooses the interval between looks from how busy the slots are.

    Args:
        now_us: reads the clock.
        crowd: the jobs of this process.

    Attributes:
        interval_us: at present.

    Example:
        >>> time_us = iter([0, 20_000, 40_000])
        >>> looking = Looking(lambda: next(time_us))
        >>> looking.rested(busy_us=7_000, ship_after_us=0), looking.rested(busy_us=28_000, ship_after_us=0)
        (500, 750)
    """

    __slots__ = ("_busy_us", "_costs_us", "_crowd", "_now_us", "_others_us", "_since_us", "_spent_us", "interval_us")

    def __init__(self, now_us: Callable[[], int], crowd: Crowd = CROWD) -> None:
        self._now_us = now_us
        self._crowd = crowd
        self._spent_us = 0
        self._others_us = crowd.spent_us
        self._since_us = now_us()
        self._busy_us = 0
        self._costs_us: deque[float] = deque(maxlen=3)
        self.interval_us = max(LOOK_US, crowd.look_us)  # among many it begins as they go on

    def rested(self, busy_us: int, ship_after_us: int | None, spent_us: int = 0) -> int:
        """A slot goes to sleep, or is awake without an end, after being busy for so long; the interval from now on.

        Args:
            busy_us: since it woke up, or said so last.
            ship_after_us: how long a record waits for its buffer to fill; None: for ever.
            spent_us: of the processor meanwhile.
        """
        crowd = self._crowd
        self._busy_us += busy_us  # two slots may do so at once, and one of the numbers be lost: a guess stays a guess
        self._spent_us += spent_us
        crowd.spent_us += spent_us
        now_us = self._now_us()
        elapsed_us = now_us - self._since_us
        if elapsed_us >= _MEASURED_US:
            others_us = max(0, crowd.spent_us - self._others_us - self._spent_us)
            # What an interval costs; the median, because now and then something else has the processor for a while.
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
