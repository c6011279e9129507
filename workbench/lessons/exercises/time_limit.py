"""Ends a learner's program that does not end by itself, or fills the memory, so that a check never hangs."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.drivers.contract.interrupting import interrupt
from workbench.packages import needed
from workbench.raised import EndedFromOutside

AGAIN_S = 0.2
"""After its time, a program that catches the exception is interrupted again and again."""
MEMORY_MAX = 1 << 30
"""Bytes by which the process may grow."""


class TooLongError(EndedFromOutside):
    """A program has not ended in time, or has taken too much memory."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLongError` in the block if it takes longer.

    In the main thread of a Unix system a signal ends calls that wait, too, such as ``time.sleep``, and a program that
    takes more than `MEMORY_MAX`. Elsewhere the exception is raised between two lines of Python; without threads, as in
    a browser, there is no limit.

    Args:
        seconds: of the machine's time.

    Example:
        >>> with time_limit(60):
        ...     print("in time")
        in time
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        with _alarm(seconds):
            yield
    else:
        with _raised_by_a_thread(seconds):
            yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    end, most = time.monotonic() + seconds, _memory() + MEMORY_MAX
    over = False

    def ring(*_: object) -> None:
        if not over and (time.monotonic() >= end or _memory() > most):
            raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, min(seconds, AGAIN_S), AGAIN_S)
    try:
        yield
    finally:
        over = True  # first of all: a signal may be on its way
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def _memory() -> int:
    """The size of this process now, in bytes."""
    return int(needed("psutil", "the limit of memory").Process().memory_info().rss)


@contextmanager
def _raised_by_a_thread(seconds: float) -> Iterator[None]:
    over, mine = threading.Event(), threading.get_ident()
    end = time.monotonic() + seconds

    def watch() -> None:
        while not over.wait(max(AGAIN_S, end - time.monotonic())):
            interrupt(mine, TooLongError)

    watcher = threading.Thread(target=watch, name="time limit", daemon=True)
    try:
        watcher.start()
    except RuntimeError:  # a browser has no threads
        yield
        return
    try:
        yield
    finally:
        _end(watcher, over)


def _end(watcher: threading.Thread, over: threading.Event) -> None:
    """Let no exception come after the block, which has ended in time or by the exception that it let through."""
    while True:
        try:
            over.set()
            watcher.join()
            interrupt(None)
        except TooLongError:
            continue
        return
