"""Stops every job when the kernel shuts down, without letting any of them delay it.

A kernel that is killed skips this and loses nothing: recovery starts from the latest completed checkpoint either way.
So a job that does not stop in time is abandoned.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Mapping

import workbench.drivers.contract.leaving  # noqa: F401  what is registered first comes last: jobs are stopped before it
from workbench.api.job.endings import end_all
from workbench.api.job.job import Job

PATIENCE_S = 5.0


class Caretaker:
    """Waits in a separate thread for the end of the process, then stops the jobs that still run.

    The thread is started in advance because a process that is ending can no longer start one (Python 3.12).

    Args:
        jobs: returns the jobs by name.
        patience_s: the maximum time that the end of the process waits for all of them together, in seconds.
    """

    def __init__(self, jobs: Callable[[], Mapping[str, Job]], patience_s: float = PATIENCE_S) -> None:
        self._jobs = jobs
        self._patience_s = patience_s
        self._called = threading.Event()
        self._dismissed = False
        self._thread = threading.Thread(target=self._attend, name="workbench-caretaker", daemon=True)
        self._thread.start()
        atexit.register(self.stop_all)

    def stop_all(self) -> bool:
        """Stop every running job; False if they took longer than `patience_s`."""
        self._called.set()
        self._thread.join(self._patience_s)
        return not self._thread.is_alive()

    def dismiss(self) -> None:
        """End the thread without stopping the jobs."""
        atexit.unregister(self.stop_all)
        self._dismissed = True
        self._called.set()
        self._thread.join()

    def _attend(self) -> None:
        self._called.wait()
        if self._dismissed:
            return
        end_all(self._jobs().values(), self._patience_s)
