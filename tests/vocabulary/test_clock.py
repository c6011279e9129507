"""The clocks of the machine."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from workbench import clock
from workbench.clock import AHEAD_MOST_US, BootClock, SystemClock


class Machine:
    """Has slept for `asleep_ns`, which only one of its counters counts; its clock is set to `set_ns`."""

    CLOCK_BOOTTIME = 7
    asleep_ns = 0
    up_ns = 5_000_000_000
    set_ns = 1_700_000_000_000_000_000

    def time_ns(self) -> int:
        return self.set_ns

    def clock_gettime_ns(self, counter: int) -> int:
        assert counter == self.CLOCK_BOOTTIME
        return self.up_ns + self.asleep_ns

    def perf_counter_ns(self) -> int:
        return self.up_ns


def test_a_lease_goes_by_a_clock_that_counts_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(clock, "time", machine)
    of_leases, of_jobs = BootClock(), SystemClock()
    begin_us = of_leases.now_us()
    assert begin_us == of_jobs.now_us() == 1_700_000_000_000_000
    machine.asleep_ns = 3_600_000_000_000
    machine.up_ns += 1_000_000_000
    assert of_leases.now_us() - begin_us == 3_601_000_000
    assert of_jobs.now_us() - begin_us == 1_000_000


def test_where_the_system_does_not_count_sleep_it_is_monotonic(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = SimpleNamespace(time_ns=lambda: 9_000, monotonic_ns=lambda: next(counted))
    counted = iter([1_000, 4_000, 6_000])
    monkeypatch.setattr(clock, "time", ticks)
    own = BootClock()
    assert (own.now_us(), own.now_us()) == (12, 14)


def test_both_tell_the_time_of_the_day() -> None:
    for own in (BootClock(), SystemClock()):
        assert abs(own.now_us() - time.time_ns() // 1_000) < 60_000_000


def test_what_has_passed_does_not_depend_on_the_clock_that_somebody_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(clock, "time", machine)
    of_leases, of_jobs = BootClock(), SystemClock()
    begin_us = of_jobs.now_us()
    for hour_us in (3_600_000_000, -3_600_000_000):
        machine.set_ns = (begin_us + hour_us) * 1_000
        machine.up_ns += 1_000
        assert of_leases.wall_us() == begin_us + hour_us
        assert of_jobs.now_us() == of_leases.now_us()
    assert of_jobs.now_us() == begin_us + 2


def test_a_clock_resumes_from_a_time_that_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "time", Machine())
    own = SystemClock()
    begin_us = own.now_us()
    for reached_us, now_us in [(begin_us - 1, begin_us), (begin_us + 5, begin_us + 5), (begin_us + 3, begin_us + 5)]:
        own.resume_from(reached_us)
        assert own.now_us() == now_us
    own.resume_from(begin_us + 5 + AHEAD_MOST_US + 1)
    assert own.now_us() == begin_us + 5
    own.resume_from(begin_us + 5 + AHEAD_MOST_US)
    assert own.now_us() == begin_us + 5 + AHEAD_MOST_US
