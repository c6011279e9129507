"""Slots with little work wake up one after the other; a slot that stays awake does not delay others."""

from __future__ import annotations

from workbench.drivers.contract.turns import SHORT_US, Turn, Turnstile


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
    clock, turnstile = Clock(), Turnstile()
    turn = Turn(turnstile, clock.now_us)
    waking(turn, clock, 100)
    assert not turnstile.taken
    turn.begin()
    assert turnstile.taken
    turn.end()
    assert not turnstile.taken


def test_a_slot_that_stays_awake_gives_the_lock_back_and_does_not_take_it_the_next_time() -> None:
    clock, turnstile = Clock(), Turnstile()
    turn = Turn(turnstile, clock.now_us)
    waking(turn, clock, 100)
    turn.begin()
    clock.us += SHORT_US + 1
    assert turnstile.taken
    turn.go_on()
    assert not turnstile.taken
    turn.end()
    turn.begin()
    assert not turnstile.taken
    turn.end()


def test_a_slot_goes_on_without_a_turn_when_another_keeps_it_and_those_behind_it_take_theirs_at_once() -> None:
    clock, turnstile = Clock(), Turnstile()
    first, second, third = (Turn(turnstile, clock.now_us) for _ in range(3))
    for turn in (first, second, third):
        waking(turn, clock, 100)
    first.begin()
    second.begin()  # returns, although the first one never lets go
    assert not turnstile.taken
    third.begin()
    assert turnstile.taken
    second.end()
    first.end()  # too late: its turn has been over for long
    assert turnstile.taken
    third.end()
    assert not turnstile.taken
