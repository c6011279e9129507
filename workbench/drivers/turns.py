"""Slots that have little to do wake up one after the other.

Two threads that run Python at the same time hand the interpreter lock to each other at every call that gives it up.
With large batches that is rare; with small ones it takes more time than the work. So a slot whose last waking was short
takes a lock for the whole of the next one. A slot that stays awake, because there is much to do or because a user's
function takes long, gives the lock back, and nobody waits for it longer than `PATIENCE_S`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

SHORT_US = 2_000
"""A waking that lasts longer is not worth waiting for."""
PATIENCE_S = 0.001


class Turn:
    """One slot's way to the lock.

    Args:
        lock: of all slots.
        now_us: reads the clock.
    """

    __slots__ = ("_begun_us", "_holds", "_lock", "_now_us", "_short")

    def __init__(self, lock: threading.Lock, now_us: Callable[[], int]) -> None:
        self._lock = lock
        self._now_us = now_us
        self._short = False
        self._holds = False
        self._begun_us = now_us()

    def begin(self) -> None:
        """The slot has woken up."""
        if self._short:
            self._holds = self._lock.acquire(timeout=PATIENCE_S)
        self._begun_us = self._now_us()

    def go_on(self) -> None:
        """There is more to do."""
        if self._holds and self._now_us() - self._begun_us > SHORT_US:
            self._release()

    def end(self) -> None:
        """The slot goes to sleep."""
        self._short = self._now_us() - self._begun_us <= SHORT_US
        self._release()

    def _release(self) -> None:
        if self._holds:
            self._holds = False
            self._lock.release()
