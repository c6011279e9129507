"""Processing time, injected: the runtime never reads a clock itself."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of processing time."""

    def now_us(self) -> int:
        """Microseconds since 1970; never goes backwards."""


class SystemClock:
    """The machine's time, made monotone: the wall clock at the start plus the monotonic clock since, which may stop
    while the machine sleeps."""

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

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

    def advance_to(self, us: int) -> None:
        """Move to a later time; an earlier one is ignored, so that time never goes backwards."""
        self._now_us = max(self._now_us, us)


def rest(seconds: float) -> None:
    """Wait for another program, such as one that holds a database; nothing else of the thread runs meanwhile."""
    time.sleep(seconds)
