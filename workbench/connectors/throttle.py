"""How many records a reader may read now, at a rate that may change meanwhile."""

from __future__ import annotations

from fractions import Fraction

from workbench.connectors.base import WaitUntil
from workbench.connectors.rate import GRAIN_US, Rate, RateLimit


class Throttle:
    """Keeps one reader to its share of a source's rate.

    Args:
        share: of this reader, above 0, at most 1.
    """

    __slots__ = ("_limit", "_limited", "_rested_us", "_share")

    def __init__(self, share: Fraction) -> None:
        self._share = share
        self._limited: float | None = None
        self._limit: RateLimit | None = None
        self._rested_us = 0

    def allow(self, wanted: int, rate: Rate, now_us: int) -> int | WaitUntil:
        """At most `wanted` records, which count as read; or when to ask again."""
        if rate.per_second != self._limited:
            self._limited = rate.per_second
            self._limit = None if self._limited is None else RateLimit(Fraction(self._limited) * self._share)
            self._rested_us = 0
        if self._limit is None:
            return wanted
        if now_us < self._rested_us:
            return WaitUntil(self._limit.next_us(self._rested_us - GRAIN_US))
        due = self._limit.due(now_us)
        count = min(wanted, due)
        if count == 0:
            return WaitUntil(self._limit.next_us(now_us))
        self._limit.take(count)
        if count == due:  # or it would look again at once, and keep a core busy with a few records at a time
            self._rested_us = now_us + GRAIN_US
        return count
