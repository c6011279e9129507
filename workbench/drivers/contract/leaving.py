"""Ends the threads of running jobs when the process ends without having stopped them.

Like a kill, this loses nothing: a resumed job continues from the last complete checkpoint. But a thread that is still
in compiled code of another library while Python shuts down can make the process abort.

Code that stops jobs properly at the end of the process (a notebook's kernel) registers after this module has been
loaded, and so runs first.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

PATIENCE_S = 2.0
"""For all threads together; one in a function that does not return is left behind."""


class Leaving(Protocol):
    """An object whose threads can be told to end."""

    def leave(self) -> list[threading.Thread]:
        """Tell its threads to end; returns them."""


_running: WeakSet[Leaving] = WeakSet()
os.register_at_fork(after_in_child=_running.clear)  # a forked process has none of these threads


def end_with_process(driver: Leaving) -> None:
    """Let these threads end with the process, if they still run."""
    _running.add(driver)


@atexit.register
def _leave_all() -> None:
    threads = [thread for driver in tuple(_running) for thread in driver.leave()]
    until_s = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(0.0, until_s - time.monotonic()))
