"""Delays Ctrl-C during the few operations that it would leave half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Deliver an interrupt only after the block; a second one is delivered at once, in case the block hangs.

    Outside the main thread, which receives no interrupts, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = False
    before = signal.getsignal(signal.SIGINT)

    def hold(number: int, frame: object) -> None:
        nonlocal held
        if held:
            raise KeyboardInterrupt
        held = True

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt
