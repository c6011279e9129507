"""Attempts of a source to reach an unreachable server: bounded, with growing pauses, and visible while they last."""

from __future__ import annotations

from workbench.operators.contract.outage import Outage

PAUSE_US_MIN, PAUSE_US_MAX = 100_000, 5_000_000


class Retries:
    """When to try again: after 100 ms, 200 ms, 400 ms, ... up to 5 s, a limited number of times in a row.

    Args:
        most: attempts in a row after the first failure.
        keeps, server: as in `Outage`.

    Attributes:
        outage: the current outage; None: the last attempt succeeded.

    Example:
        >>> retries = Retries(2)
        >>> [retries.failed(0, "refused"), retries.failed(100_000, "refused"), retries.failed(300_000, "refused")]
        [100000, 300000, None]
    """

    __slots__ = ("_keeps", "_most", "_server", "outage")

    def __init__(self, most: int, *, keeps: bool = True, server: str = "") -> None:
        self._most, self._keeps, self._server = most, keeps, server
        self.outage: Outage | None = None

    @property
    def retry_us(self) -> int:
        """The processing time before which no attempt is made; 0: now."""
        return 0 if self.outage is None else self.outage.retry_us

    def failed(self, now_us: int, error: str) -> int | None:
        """Count a failed attempt; returns the time of the next one, or None if none is left."""
        past = self.outage
        attempts = 1 if past is None else past.attempts + 1
        if attempts > self._most:
            return None
        retry_us = now_us + min((PAUSE_US_MIN << min(attempts - 1, 16)), PAUSE_US_MAX)
        since_us = now_us if past is None else past.since_us
        self.outage = Outage(error, attempts, self._most, retry_us, since_us, self._keeps, self._server)
        return retry_us

    def succeeded(self) -> None:
        """Note that the server answers."""
        self.outage = None
