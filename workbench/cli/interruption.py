"""Ctrl-C, SIGTERM and SIGHUP: as an exit that puts away what was begun, or as a flag that a loop reads, so that they
never strike in the middle of something."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALLED = 128
"""What a shell adds to a signal's number to make an exit code."""


class Asked(threading.Event):
    """Set by the first signal; `code` is the exit code that goes with it."""

    code = SIGNALLED + signal.SIGINT


@contextmanager
def interruption() -> Iterator[Asked]:
    """An event that the first Ctrl-C or SIGTERM sets; the second is a KeyboardInterrupt again."""
    asked = Asked()

    def ask(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.code = SIGNALLED + number
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def terminated() -> Iterator[None]:
    """SIGTERM and SIGHUP leave the block as a SystemExit, so that folders are removed and processes ended; one that
    comes while that is done is not heard.

    Outside the main thread, where no signal arrives, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGHUP)

    def leave(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(SIGNALLED + number)

    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup ignores SIGHUP, and a program that calls this may have its own handlers
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
