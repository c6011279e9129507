"""How a task spends its time."""

from __future__ import annotations


class Load:
    """Busy, idle and back-pressured time of a task, in microseconds of the clock.

    A task is back-pressured while its output pool is used up, and also while it has more to do but its slot is taken by
    tasks downstream: in a slot that several tasks share, this is how slowness first shows upstream. A task that a user
    slows down rests after each buffer; that counts as busy, because it simulates a slow function.
    """

    __slots__ = ("backpressured_us", "busy_us", "held_back", "idle_us", "last_us", "resting", "stepping")

    def __init__(self, now_us: int) -> None:
        self.busy_us = 0
        self.idle_us = 0
        self.backpressured_us = 0
        self.held_back = False
        self.resting = False
        self.stepping = False
        self.last_us = now_us

    def begin(self, now_us: int) -> None:
        """A step begins: the time since the last one was spent resting, back-pressured or idle."""
        if self.resting:
            self.busy_us += now_us - self.last_us
        elif self.held_back:
            self.backpressured_us += now_us - self.last_us
        else:
            self.idle_us += now_us - self.last_us
        self.last_us = now_us
        self.stepping = True

    def end(self, now_us: int, *, worked: bool, held_back: bool) -> None:
        """A step ends; a step without work counts as waiting."""
        if worked:
            self.busy_us += now_us - self.last_us
            self.last_us = now_us
        self.held_back = held_back
        self.stepping = False
