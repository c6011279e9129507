"""Turns: slots with little work wake up one after the other, across all jobs of the process.

Two threads that run Python at the same time pass the interpreter lock to each other at every call that releases it.
With large batches that is rare; with small ones it takes more time than the work. So a slot whose last waking was short
takes a turn for the whole of the next one. A slot that stays awake, because there is much to do or because a user's
function
takes long, returns its turn, or is overtaken: no slot waits for another one longer than `PATIENCE_S`.
"""

from __future__ import annotations

import os
import threading
from _thread import LockType as Lock
from collections.abc import Callable
from functools import partial

from workbench.drivers.contract.crowd import CROWD

SHORT_US = 4_000
"""A longer waking is not worth waiting for."""
_LONG_US = 20_000
PATIENCE_S = 0.001
"""The maximum wait for one slot of a job that is alone; with other jobs, multiplied by their number, up to
`PATIENT_FOR`: the fewer threads compete for the interpreter lock, the sooner all of them are done."""
PATIENT_FOR = 20
_ROUNDS = 5
"""The maximum wait, as a multiple, for slots that take their turns one after the other."""


Way = Lock | threading.Semaphore
"""A lane of the turnstile, to be released at the end of the turn."""


class Turnstile:
    """Lets a limited number of threads through at a time, by default one.

    A thread that stays inside is overtaken: those behind it use another lock, so it delays only the first of them.

    Args:
        lanes: the number of threads.
        patience_s: how long to wait for a thread that stays; None: `PATIENCE_S`.

    Example:
        >>> turnstile = Turnstile()
        >>> first = turnstile.enter()
        >>> first is not None, turnstile.enter() is None, turnstile.enter() is None
        (True, True, False)
    """

    __slots__ = ("_entered", "_lanes", "_lock", "_patience_s")

    def __init__(self, lanes: int = 1, patience_s: float | None = None) -> None:
        self._lanes = lanes
        self._patience_s = patience_s
        self._lock = threading.Semaphore(lanes) if lanes > 1 else threading.Lock()
        self._entered = 0

    def enter(self) -> Way | None:
        """Wait for the turn; returns what to release at its end, or None for a thread that continues without one."""
        lock = self._lock
        if not lock.acquire(blocking=False):
            patience_s = self._patience_s or PATIENCE_S * min(max(1, CROWD.jobs), PATIENT_FOR)
            for _ in range(_ROUNDS):
                entered = self._entered
                if lock.acquire(timeout=patience_s):
                    break
                if self._entered == entered:  # the same thread all the time: its waking is not short
                    self._open_another(lock)
                    return None
                lock = self._lock
            else:
                return None
        self._entered += 1
        return lock

    def _open_another(self, closed: Way) -> None:
        if self._lock is closed:  # the first thread that has waited in vain opens it for all
            self._lock = threading.Semaphore(self._lanes) if self._lanes > 1 else threading.Lock()

    @property
    def taken(self) -> bool:
        """Whether no thread can enter immediately."""
        lock = self._lock
        free = lock.acquire(blocking=False)
        if free:
            lock.release()
        return not free


TURNSTILE = Turnstile()
os.register_at_fork(
    after_in_child=partial(Turnstile.__init__, TURNSTILE)
)  # in a forked process no thread would ever leave


class Turn:
    """One slot's use of the turnstile.

    Args:
        turnstile: of all slots.
        now_us: reads the clock.

    Attributes:
        short: this waking has been short so far, and so was the last one.
        lasted_us: the duration of the last waking.
    """

    __slots__ = ("_begun_us", "_held", "_now_us", "_turnstile", "lasted_us", "short")

    def __init__(self, turnstile: Turnstile, now_us: Callable[[], int]) -> None:
        self._turnstile = turnstile
        self._now_us = now_us
        self.short = False
        self.lasted_us = 0
        self._held: Way | None = None
        self._begun_us = now_us()

    def begin(self) -> None:
        """The slot has woken up."""
        if self.short or CROWD.jobs > 1:
            self._held = self._turnstile.enter()
        self._begun_us = self._now_us()

    def go_on(self) -> bool:
        """There is more to do; returns whether the waking has just become a long one."""
        if (self.short or self._held) and self._now_us() - self._begun_us > SHORT_US:
            was_short, self.short = self.short, False
            self._release()
            return was_short
        return False

    def stays_awake(self) -> bool:
        """Whether the slot has been busy for long since it woke up, or since this last returned True."""
        if self.short or (lasted_us := self._now_us() - self._begun_us) < _LONG_US:
            return False
        self.lasted_us = lasted_us
        self._begun_us += lasted_us
        return True

    def end(self) -> None:
        """The slot goes to sleep."""
        self.lasted_us = self._now_us() - self._begun_us
        self.short = self.lasted_us <= SHORT_US
        self._release()

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()
