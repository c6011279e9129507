"""Attempts of a sink to reach an unreachable server: for a limited time, and visible while they last.

A source is polled again later (`Retries`). A sink is in the middle of a step, so its thread waits.
"""

from __future__ import annotations

import threading

from workbench.clock import SystemClock
from workbench.operators.contract.outage import Outage

WAIT_S = 10.0
"""How long sinks try again, unless their client has a limit of its own."""
HURRY_S = 5.0
"""How long when their job is being stopped."""
_PAUSE_US_MIN, _PAUSE_US_MAX = 50_000, 1_000_000


class Attempts:
    """Attempts of successive calls: after a failure, the next attempt is made 50 ms, 100 ms, ... up to 1 s later.

    One thread calls `again` and `succeeded`; other threads read `outage`, and may call `hurry` or `give_up`.

    Args:
        wait_s: how long to retry after the first failure in a row; 0: not at all; None: `WAIT_S`.
        server: as in `Outage`.

    Attributes:
        wait_s: as above.
        outage: the current outage, also after the last attempt; None: the last attempt succeeded.

    Example:
        >>> attempts = Attempts(60.0)
        >>> attempts.again("refused"), attempts.outage.attempts
        (True, 1)
        >>> attempts.succeeded()
        >>> attempts.outage
        >>> Attempts(0.0).again("refused")
        False
    """

    def __init__(self, wait_s: float | None = None, server: str = "") -> None:
        self.wait_s = WAIT_S if wait_s is None else wait_s
        self.outage: Outage | None = None
        self._server = server
        self._clock = SystemClock()  # with a virtual clock, it would wait forever
        self._since_us: int | None = None
        self._count = 0
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether the job is ending, so that there is no more waiting."""
        return self._over.is_set()

    def again(self, error: str, *, lost: bool = True) -> bool:
        """Wait until the next attempt is due; return whether to make it, or False if the time is over or the job ends.

        Args:
            error: of the last attempt, without secrets.
            lost: whether the connection is lost; otherwise the server is only busy, and no outage is shown.
        """
        now_us = self._clock.now_us()
        if self._since_us is None:
            self._since_us = now_us
        ends_us = self._since_us + int(self.wait_s * 1e6)
        if now_us >= ends_us or self.is_over:
            self._since_us, self._count = None, 0  # the outage stays: why the caller fails
            return False
        self._count += 1
        retry_us = min(now_us + min(_PAUSE_US_MIN << min(self._count - 1, 16), _PAUSE_US_MAX), ends_us)
        if lost:
            since_us = self._since_us if self.outage is None else self.outage.since_us
            self.outage = Outage(error, self._count, None, retry_us, since_us, server=self._server, ends_us=ends_us)
        return not self._over.wait((retry_us - now_us) / 1e6)

    def succeeded(self) -> None:
        """The server has answered: the next failure is the first in a row."""
        self._since_us, self._count, self.outage = None, 0, None

    def hurry(self) -> None:
        """Wait no longer than `HURRY_S`, also in the present call; for another thread, when the job is stopped."""
        self.wait_s = min(self.wait_s, HURRY_S)

    def give_up(self) -> None:
        """Stop waiting; called by another thread when the job ends."""
        self._over.set()
