"""How often sources look for records that are due.

A record waits for the next look, half the interval on average, and each look costs a step of the source and of each
receiver. So sources of a job whose records are shipped at once look as often as leaves its slots idle for a part of the
time; where records wait for the buffer timeout anyway, looking more often would only burn the processor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median

from workbench.connectors.rate import LOOK_US

BUSY_SHARE = 0.7
"""Of one processor, for all slots together: they share the interpreter lock."""
SHORTEST_US = 100
LONGEST_US = 4_000
"""Where records are shipped at once and there is no time even for a look in `LOOK_US`."""
_MEASURED_US = 20_000


class Looking:
    """Chooses the interval between looks from how busy the slots are.

    Args:
        now_us: reads the clock.

    Attributes:
        interval_us: at present.

    Example:
        >>> time_us = iter([0, 20_000, 40_000])
        >>> looking = Looking(lambda: next(time_us))
        >>> looking.rested(busy_us=7_000, ship_after_us=0), looking.rested(busy_us=28_000, ship_after_us=0)
        (500, 750)
    """

    __slots__ = ("_busy_us", "_costs_us", "_now_us", "_since_us", "interval_us")

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._since_us = now_us()
        self._busy_us = 0
        self._costs_us: deque[float] = deque(maxlen=3)
        self.interval_us = LOOK_US

    def rested(self, busy_us: int, ship_after_us: int | None) -> int:
        """A slot goes to sleep after being busy for so long; the interval from now on.

        Args:
            busy_us: since it woke up.
            ship_after_us: how long a record waits for its buffer to fill; None: for ever.
        """
        self._busy_us += busy_us  # two slots may do so at once, and one of the numbers be lost: a guess stays a guess
        now_us = self._now_us()
        elapsed_us = now_us - self._since_us
        if elapsed_us >= _MEASURED_US:
            # What an interval costs; the median, because now and then something else has the processor for a while.
            self._costs_us.append(self._busy_us / elapsed_us * self.interval_us)
            self._since_us, self._busy_us = now_us, 0
            wanted_us = int(median(self._costs_us) / BUSY_SHARE)
            if ship_after_us is None or ship_after_us >= LOOK_US:
                self.interval_us = LOOK_US
            else:
                self.interval_us = min(max(wanted_us, SHORTEST_US, ship_after_us), LONGEST_US)
        return self.interval_us
