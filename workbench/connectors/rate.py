"""A steady number of records per second, by a clock that the caller reads."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, runtime_checkable

_BURST_US = 1_000_000
GRAIN_US = 1_000
"""A reader looks for records that are due at most this often."""


class Rate:
    """Records per second of one source, which may change while it is read; all its readers share one.

    A command swaps one number, so readers need no lock and see it when they are polled next.

    Attributes:
        per_second: above zero; None for full speed.
    """

    __slots__ = ("per_second",)

    def __init__(self, per_second: float | None) -> None:
        self.per_second = per_second


@runtime_checkable
class Rated(Protocol):
    """A reader that keeps to a rate; the runtime lets all readers of a source share one, over all attempts."""

    rate: Rate


class RateLimit:
    """How many records are due; after a stall it catches up by at most one second's worth.

    Counts in whole numbers and fractions, so that the same times always give the same records.

    Args:
        per_second: records per second, above zero.

    Example:
        >>> limit = RateLimit(Fraction(2))
        >>> limit.due(0), limit.due(1_000_000)
        (1, 3)
    """

    __slots__ = ("_anchor_us", "_per_us", "_taken")

    def __init__(self, per_second: Fraction) -> None:
        self._per_us = per_second / 1_000_000
        self._anchor_us: int | None = None
        self._taken = 0

    def due(self, now_us: int) -> int:
        """Records due at `now_us` that have not been taken; the first one is due at the first call."""
        if self._anchor_us is None:
            self._anchor_us = now_us
        due = int((now_us - self._anchor_us) * self._per_us) + 1 - self._taken
        burst = max(1, int(_BURST_US * self._per_us))
        if due > burst + 1:
            self._anchor_us, self._taken, due = now_us, 1 - burst, burst
        return max(0, due)

    def take(self, count: int) -> None:
        """Count records as emitted."""
        self._taken += count

    def next_us(self, now_us: int) -> int:
        """When to ask again if nothing is due: at the next record, yet at most every GRAIN_US."""
        assert self._anchor_us is not None
        wait_us = -int(-self._taken / self._per_us // 1)
        return max(self._anchor_us + wait_us, now_us + GRAIN_US)
