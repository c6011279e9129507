"""Handling of Ctrl-C, SIGTERM and SIGHUP: as an exit that cleans up, or as a flag that a loop polls, so that a signal
never interrupts an operation halfway."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALLED = 128
"""A shell's exit code for a signal is this plus the signal's number."""


class Asked(threading.Event):
    """Set by the first signal; `code` is the exit code for it."""

    code = SIGNALLED + signal.SIGINT


@contextmanager
def interruption() -> Iterator[Asked]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one raises KeyboardInterrupt."""
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
    """Turn SIGTERM and SIGHUP into a SystemExit, so that folders are removed and processes ended; signals during this
    cleanup are ignored.

    Outside the main thread, which receives no signals, it does nothing.
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
