"""Slots that have little to do wake up one after the other.

Two threads that run Python at the same time hand the interpreter lock to each other at every call that gives it up.
With large batches that is rare; with small ones it takes more time than the work. So a slot whose last waking was short
takes a lock for the whole of the next one. A slot that stays awake, because there is much to do or because a user's
function takes long, gives the lock back, and nobody waits for it longer than `PATIENCE_S`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

SHORT_US = 4_000
"""A waking that lasts longer is not worth waiting for."""
PATIENCE_S = 0.001


class Turn:
    """One slot's way to the lock.

    Args:
        lock: of all slots.
        now_us: reads the clock.

    Attributes:
        short: this waking has been short so far, and so was the last one.
        lasted_us: how long the last waking took.
    """

    __slots__ = ("_begun_us", "_holds", "_lock", "_now_us", "lasted_us", "short")

    def __init__(self, lock: threading.Lock, now_us: Callable[[], int]) -> None:
        self._lock = lock
        self._now_us = now_us
        self.short = False
        self.lasted_us = 0
        self._holds = False
        self._begun_us = now_us()

    def begin(self) -> None:
        """The slot has woken up."""
        if self.short:
            self._holds = self._lock.acquire(timeout=PATIENCE_S)
        self._begun_us = self._now_us()

    def go_on(self) -> bool:
        """There is more to do; whether that has just made it a long waking."""
        if self.short and self._now_us() - self._begun_us > SHORT_US:
            self.short = False
            self._release()
            return True
        return False

    def end(self) -> None:
        """The slot goes to sleep."""
        self.lasted_us = self._now_us() - self._begun_us
        self.short = self.lasted_us <= SHORT_US
        self._release()

    def _release(self) -> None:
        if self._holds:
            self._holds = False
            self._lock.release()
