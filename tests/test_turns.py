"""Slots that have little to do wake up one after the other; one that stays awake keeps nobody waiting."""

from __future__ import annotations

import threading

from workbench.drivers.turns import SHORT_US, Turn


class Clock:
    def __init__(self) -> None:
        self.us = 0

    def now_us(self) -> int:
        return self.us


def waking(turn: Turn, clock: Clock, lasts_us: int) -> None:
    turn.begin()
    clock.us += lasts_us
    turn.go_on()
    turn.end()


def test_the_lock_is_taken_after_a_short_waking_and_given_back_before_sleep() -> None:
    clock, lock = Clock(), threading.Lock()
    turn = Turn(lock, clock.now_us)
    waking(turn, clock, 100)
    assert not lock.locked()
    turn.begin()
    assert lock.locked()
    turn.end()
    assert not lock.locked()


def test_a_slot_that_stays_awake_gives_the_lock_back_and_does_not_take_it_the_next_time() -> None:
    clock, lock = Clock(), threading.Lock()
    turn = Turn(lock, clock.now_us)
    waking(turn, clock, 100)
    turn.begin()
    clock.us += SHORT_US + 1
    assert lock.locked()
    turn.go_on()
    assert not lock.locked()
    turn.end()
    turn.begin()
    assert not lock.locked()
    turn.end()


def test_a_slot_goes_on_without_the_lock_when_another_keeps_it() -> None:
    clock, lock = Clock(), threading.Lock()
    first, second = Turn(lock, clock.now_us), Turn(lock, clock.now_us)
    waking(first, clock, 100)
    waking(second, clock, 100)
    first.begin()
    second.begin()  # returns, although the first one never lets go
    second.end()
    assert lock.locked()
    first.end()
    assert not lock.locked()
