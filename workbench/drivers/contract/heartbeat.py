"""A thread that tells every few seconds that a job lives."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Heartbeat:
    """Calls `beat` regularly from a thread of its own until it is stopped or `beat` raises.

    Args:
        beat: tells it.
        lost: told what `beat` raised.
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
            except Exception as error:  # noqa: BLE001  whatever it is, the job must not go on as if nobody else could
                self._lost(error)
                return

    def stop(self) -> None:
        """No further beat begins; one that is under way is waited for."""
        self._over.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
