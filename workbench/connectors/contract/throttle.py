"""The number of records that a reader can read now, at a rate that can change."""

from __future__ import annotations

from fractions import Fraction

from workbench.connectors.contract.base import WaitUntil
from workbench.connectors.contract.rate import FEW_US, LOOK_US, Rate, RateLimit


class Throttle:
    """Limits one reader to its share of a source's rate.

    Args:
        share: of this reader, above 0, at most 1.

    Attributes:
        look_again_us: when to ask for more, though a call that comes earlier for another reason may return some; a time
            in the past: there may be more now.
        due_us: when the first and the last record of the last call were due; None: as soon as they are read.
    """

    __slots__ = ("_limit", "_limited", "_rested_us", "_share", "due_us", "look_again_us")

    def __init__(self, share: Fraction) -> None:
        self._share = share
        self._limited: float | None = None
        self._limit: RateLimit | None = None
        self._rested_us = self.look_again_us = 0
        self.due_us: tuple[int, int] | None = None

    def allow(self, wanted: int, rate: Rate, now_us: int) -> int | WaitUntil:
        """At most `wanted` records, which count as read; or when to ask again."""
        if rate.per_second != self._limited:
            self._limited = rate.per_second
            self._limit = None if self._limited is None else RateLimit(Fraction(self._limited) * self._share)
            self._rested_us = self.look_again_us = 0
        limit = self._limit
        self.due_us = None
        if limit is None:
            return wanted
        if now_us < self._rested_us:
            return WaitUntil(limit.next_us(max(self._rested_us, self.look_again_us)))
        due = limit.due(now_us)
        count = min(wanted, due)
        if count > limit.few:
            count = min(count, limit.within(max(FEW_US, 4 * rate.look_us)))
        if count == 0:
            return WaitUntil(limit.next_us(next_look_us(now_us, rate.look_us, rate.look_from_us)))
        self.due_us = limit.take(count)
        if count == due:  # otherwise it would poll again at once, and keep a core busy with a few records at a time
            look_us = rate.look_us
            self._rested_us = self.look_again_us = next_look_us(now_us, look_us, rate.look_from_us)
            if look_us > LOOK_US:
                self._rested_us = next_look_us(now_us, LOOK_US)
        return count


def next_look_us(now_us: int, look_us: int, from_us: int = 0) -> int:
    """When to poll again: at a multiple of the interval after `from_us`, so that the readers of a job poll together and
    wake up once.

    Example:
        >>> [next_look_us(now_us, 1_000) for now_us in (7_000, 7_030, 7_600)]
        [8000, 8000, 9000]
        >>> next_look_us(7_000, 1_000, from_us=200)
        8200
    """
    return ((now_us - from_us + look_us // 2) // look_us + 1) * look_us + from_us
