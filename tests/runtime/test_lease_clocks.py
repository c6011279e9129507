"""Leases of machines whose clocks are set, or differ: none ends because of that, and each ends when its owner has."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest

from workbench.api.beginning import opening
from workbench.clock import VirtualClock
from workbench.errors import CheckpointError
from workbench.runtime.storage import DirectoryStorage, HeldError, directory, lease
from workbench.runtime.storage.held import DoubtfulLeaseError
from workbench.runtime.storage.lease import HEARTBEAT_US, LEASE, LEASE_US, SILENT_MOST_US, WATCH_US, Lease, lessee
from workbench.runtime.storage.locations import open_files

HOUR_US = 3_600_000_000
NOW_US = 1_700_000_000_000_000


class SetClock(VirtualClock):
    """Somebody may set it.

    Attributes:
        ahead_us: how far it is ahead of what has passed.
    """

    def __init__(self) -> None:
        super().__init__(NOW_US)
        self.ahead_us = 0

    def wall_us(self) -> int:
        return self.now_us() + self.ahead_us

    def pass_by(self, us: int) -> None:
        self.advance_to(self.now_us() + us)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def owner(tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch) -> Lease:
    """Of another machine."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(platform, "node", lambda: "elsewhere")
        owner = Lease(open_files(tmp_path), clock)
    lease._SEEN.clear()  # what this process saw of it
    return owner


def come(owner: Lease, clock: SetClock) -> Lease:
    return Lease(owner.files, clock)


@pytest.mark.parametrize("ahead_us", [HOUR_US, -HOUR_US])
def test_a_lease_that_is_renewed_is_not_taken_over_when_the_clock_is_set(
    owner: Lease, clock: SetClock, ahead_us: int
) -> None:
    clock.ahead_us = ahead_us  # before the owner writes by this clock
    for _ in range(50):
        clock.pass_by(HEARTBEAT_US)
        with pytest.raises(HeldError):
            come(owner, clock)
        owner.beat()
    other = SetClock()  # one that somebody has not set
    for _ in range(50):
        clock.pass_by(HEARTBEAT_US)
        other.advance_to(clock.now_us())
        with pytest.raises(DoubtfulLeaseError):
            come(owner, other)
        owner.beat()


@pytest.mark.parametrize("ahead_us", [HOUR_US, -HOUR_US])
def test_a_lease_ends_with_its_owner_although_the_clock_was_set(owner: Lease, clock: SetClock, ahead_us: int) -> None:
    clock.ahead_us = ahead_us
    with pytest.raises(DoubtfulLeaseError):
        come(owner, clock)
    clock.pass_by(WATCH_US - 1)
    with pytest.raises(DoubtfulLeaseError):
        come(owner, clock)
    clock.pass_by(1)
    come(owner, clock).settle()
    with pytest.raises(CheckpointError, match="was taken over by"):
        owner.check()


def test_a_lease_that_was_watched_for_its_time_is_over_by_any_clock(owner: Lease, clock: SetClock) -> None:
    for _ in range(int(LEASE_US / HEARTBEAT_US)):
        with pytest.raises(HeldError):
            come(owner, clock)
        clock.pass_by(HEARTBEAT_US)
        clock.ahead_us -= HEARTBEAT_US  # this clock stands still
    come(owner, clock).settle()


def test_nobody_watches_longer_than_an_owner_may_be_silent() -> None:
    assert SILENT_MOST_US < WATCH_US < LEASE_US


def test_the_end_of_a_process_of_this_machine_needs_no_watching(
    tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr(os, "getpid", lambda: 2**30)  # no process has this number
        ended = Lease(open_files(tmp_path), clock)
    lease._SEEN.clear()
    with pytest.raises(HeldError):  # its number may be that of a process in a container
        come(ended, clock)
    lease._SEEN.clear()
    clock.pass_by(LEASE_US)
    assert come(ended, clock).ended == ended.lease


def test_an_owner_measures_its_silence_by_what_passes(
    owner: Lease, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: Lease) -> tuple[str | None, int]:
        raise OSError("no route to host")

    monkeypatch.setattr(Lease, "_read", away)
    for clock.ahead_us in (HOUR_US, -HOUR_US):
        owner.beat()
    clock.pass_by(SILENT_MOST_US)
    with pytest.raises(CheckpointError, match="could not be renewed for 7 seconds"):
        owner.beat()


def test_found_jobs_show_no_owner_from_the_future(owner: Lease, clock: SetClock) -> None:
    assert lessee(owner.files, clock.now_us() - 1_000_000) is not None
    assert lessee(owner.files, clock.now_us() - HOUR_US) is None


@pytest.mark.parametrize("lives", [False, True])
def test_who_finds_an_old_lease_watches_it_before_the_directory_changes_hands(
    bucket: str, clock: SetClock, monkeypatch: pytest.MonkeyPatch, lives: bool
) -> None:
    beats = iter(range(NOW_US - HOUR_US, NOW_US))
    files = open_files(bucket)

    def beat(*ignored: Any) -> None:
        content = {"owner": "elsewhere:1:1:1", "heartbeat_us": next(beats)}
        files.write(LEASE, (json.dumps(content).encode(),))

    def passes(seconds: float) -> None:
        clock.pass_by(int(seconds * 1e6))
        if lives:
            beat()

    monkeypatch.setattr(directory, "BootClock", lambda: clock)
    monkeypatch.setattr(opening, "rest", passes)
    monkeypatch.setattr(opening, "_WATCHED_EVERY_S", 1.0)
    beat()
    if lives:
        with pytest.raises(HeldError, match="process 1 on elsewhere"):
            opening.open_storage(bucket, True, None)
        return
    storage = opening.open_storage(bucket, True, None)[0]
    assert isinstance(storage, DirectoryStorage)
    assert clock.now_us() == NOW_US + WATCH_US + lease.SETTLE_US
    storage.close()
