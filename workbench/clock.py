"""Processing time, injected: the runtime never reads a clock itself."""

from __future__ import annotations

import threading
import time
from typing import Protocol

AHEAD_MOST_US = 86_400_000_000
"""One day: how far a clock is put forward for a job that resumes. A clock that was farther ahead was wrong."""


class Clock(Protocol):
    """A source of processing time."""

    def now_us(self) -> int:
        """Microseconds since 1970; never goes backwards."""


class SharedClock(Clock, Protocol):
    """A clock for records that other processes read, such as leases: how much time has passed, and what time it is.

    They differ: somebody may set the machine's clock while a process runs. What has passed does not depend on that.
    What is written for others does, because a process that starts later reads the clock as it is then.
    """

    def wall_us(self) -> int:
        """Microseconds since 1970 by the machine's clock as it is set now; may go backwards."""


class SystemClock:
    """The machine's time, made monotone: the wall clock at the start plus the monotonic clock since, which may stop
    while the machine sleeps. A machine whose clock is set has no effect on it."""

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

    def resume_from(self, us: int) -> None:
        """Continue from a time that an earlier process had reached, if that is ahead: somebody has set the machine's
        clock back. Otherwise timers would wait for that time, and windows that have fired would open again.

        A time that is more than `AHEAD_MOST_US` ahead is ignored.

        Args:
            us: microseconds since 1970.
        """
        ahead_us = us - self.now_us()
        if 0 < ahead_us <= AHEAD_MOST_US:
            self._offset_ns += ahead_us * 1_000

    def now_us(self) -> int:
        return (self._offset_ns + time.perf_counter_ns()) // 1_000


class BootClock:
    """The machine's time, made monotone, which continues while the machine sleeps, if the system supports that (Linux).

    For times that other machines wait for, too: they do not sleep with this one.
    """

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - _since_boot_ns()

    def now_us(self) -> int:
        return (self._offset_ns + _since_boot_ns()) // 1_000

    def wall_us(self) -> int:
        return time.time_ns() // 1_000


def _since_boot_ns() -> int:
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if boot is None else time.clock_gettime_ns(boot)


class VirtualClock:
    """A time that stands still until it is advanced: the same run always reads the same times."""

    __slots__ = ("_now_us",)

    def __init__(self, start_us: int = 0) -> None:
        self._now_us = start_us

    def now_us(self) -> int:
        return self._now_us

    def wall_us(self) -> int:
        return self._now_us

    def advance_to(self, us: int) -> None:
        """Move to a later time; an earlier one is ignored, so that time never goes backwards."""
        self._now_us = max(self._now_us, us)


def rest(seconds: float) -> None:
    """Wait for another program, such as one that holds a database; nothing else of the thread runs meanwhile.

    A lock that nobody releases also waits under a faked clock, where time.sleep fails.
    """
    threading.Event().wait(seconds)
