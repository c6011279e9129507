"""What a job's handle needs of the driver that runs it."""

from __future__ import annotations

import threading
from typing import Protocol

from workbench.runtime.checkpoints.background import Background
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.stage import Stage


class Driver(Stage, Background, Protocol):
    """Steps the tasks of one job, its master and its background work.

    Attributes:
        ended: set when the job has ended for good and everything that it had to write is written.
    """

    ended: threading.Event

    def run(self, master: Master) -> None:
        """Take the job over and let its master start it; returns at once."""
        ...

    @property
    def master(self) -> Master:
        """The job's master; another one after it has failed."""
        ...

    def hand_over(self, master: Master) -> None:
        """Step this master from now on; called on the turn of the one that it succeeds."""
        ...

    def leave_stalled_behind(self) -> None:
        """The job is canceled: from some seconds on it waits no longer for tasks whose step does not end."""
        ...

    def stalled(self) -> str:
        """Which task is in a step that does not end, since when and where; empty: none is."""
        ...

    def within(self) -> bool:
        """Whether the caller is on a thread that is in one of the job's steps: called by a function, sink or source."""
        ...

    def wait_for(self, event: threading.Event, seconds: float | None) -> bool:
        """Let the job go on until `event` is set, for at most so many seconds of its clock; whether it is set."""
        ...
