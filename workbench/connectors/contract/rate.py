"""A constant number of records per second, by a clock that the caller reads."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol, runtime_checkable

_BURST_US = 1_000_000
FEW_US = 100_000
"""What becomes due in a longer time, while nothing can be read, takes several reads: other things that wait for the
source come in between, and each read has a latency of its own."""
LOOK_US = 1_000
"""The minimum interval between two polls for due records, unless a reader's driver allows more frequent ones."""


class Rate:
    """Records per second of one source, which may change while it is read; shared by all its readers.

    A command replaces one number, so readers need no lock and see the change at their next poll.

    Attributes:
        per_second: above zero; None for full speed.
        look_us: the minimum interval between two polls for due records.
        look_from_us: where in the interval they are, so that the readers of different jobs poll one after the other.
    """

    __slots__ = ("look_from_us", "look_us", "per_second")

    def __init__(self, per_second: float | None) -> None:
        self.per_second = per_second
        self.look_us = LOOK_US
        self.look_from_us = 0


@runtime_checkable
class Rated(Protocol):
    """A reader that keeps to a rate; the runtime makes all readers of a source share one, over all attempts."""

    rate: Rate


class RateLimit:
    """The number of due records; after a stall it catches up by at most one second's worth.

    It counts in integers, so that the same times always yield the same records.

    Args:
        per_second: records per second, above zero.

    Attributes:
        few: the records of `FEW_US`.

    Example:
        >>> limit = RateLimit(Fraction(2))
        >>> limit.due(0), limit.due(1_000_000)
        (1, 3)
    """

    __slots__ = ("_anchor_us", "_burst", "_records", "_taken", "_us", "few")

    def __init__(self, per_second: Fraction) -> None:
        self._records, self._us = (per_second / 1_000_000).as_integer_ratio()  # numerator: records, denominator: us
        self._burst = max(1, _BURST_US * self._records // self._us)
        self._anchor_us: int | None = None
        self.few = self.within(FEW_US)
        self._taken = 0

    def due(self, now_us: int) -> int:
        """Records due at `now_us` that have not been taken; the first one is due at the first call."""
        if self._anchor_us is None:
            self._anchor_us = now_us
        due = (now_us - self._anchor_us) * self._records // self._us + 1 - self._taken
        burst = self._burst
        if due > burst + 1:
            self._anchor_us, self._taken, due = now_us, 1 - burst, burst
        return due if due > 0 else 0

    def take(self, count: int) -> tuple[int, int]:
        """Count records as emitted, one at least; returns when the first and the last of them were due.

        Example:
            >>> limit = RateLimit(Fraction(4))
            >>> limit.due(1_000_000), limit.due(1_500_000), limit.take(3)
            (1, 3, (1000000, 1500000))
        """
        assert self._anchor_us is not None
        first_us = -(-self._taken * self._us // self._records)
        self._taken += count
        last_us = -((1 - self._taken) * self._us // self._records)
        return self._anchor_us + first_us, self._anchor_us + last_us

    def next_us(self, earliest_us: int) -> int:
        """When to poll again if nothing is due: at the next record, but not before `earliest_us`."""
        assert self._anchor_us is not None
        wait_us = -(-self._taken * self._us // self._records)
        return max(self._anchor_us + wait_us, earliest_us)

    def within(self, us: int) -> int:
        """The number of records that become due in a time; at least one."""
        return max(1, us * self._records // self._us)
