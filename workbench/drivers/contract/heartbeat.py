"""A thread that signals every few seconds that a job is alive."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Heartbeat:
    """Calls `beat` regularly on its own thread until it is stopped or `beat` raises.

    Args:
        beat: sends the signal.
        lost: receives what `beat` raised.
        interval_s: between two beats.
    """

    def __init__(self, beat: Callable[[], None], lost: Callable[[Exception], None], interval_s: float) -> None:
        self._beat = beat
        self._lost = lost
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workbench-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            try:
                self._beat()
            except Exception as error:  # noqa: BLE001  whatever it is, the job must not continue as if no other process could
                self._lost(error)
                return

    def stop(self) -> None:
        """Start no further beat; waits for one in progress."""
        self._over.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
