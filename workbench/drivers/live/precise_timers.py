"""Precise wake-ups: Linux lets a thread that waits for a time oversleep, to wake several at once."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_SET_TIMER_SLACK = 29  # PR_SET_TIMERSLACK of prctl(2)
_SLACK_NS = 1_000


def wake_precisely() -> None:
    """Limit the calling thread's oversleeping to a microsecond instead of fifty; does nothing if the system cannot."""
    if sys.platform == "linux":
        _libc().prctl(_SET_TIMER_SLACK, _SLACK_NS, 0, 0, 0)


@cache
def _libc() -> ctypes.CDLL:
    """Opened once: each opening creates classes that are reference cycles."""
    return ctypes.CDLL(None)
