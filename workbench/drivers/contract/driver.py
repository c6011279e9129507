"""The interface of a driver for a job's handle."""

from __future__ import annotations

import threading
from typing import Protocol

from workbench.runtime.checkpoints.background import Background
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.stage import Stage


class Driver(Stage, Background, Protocol):
    """Steps the tasks of one job, its master and its background work.

    Attributes:
        ended: set when the job has ended and everything that it had to write is written.
    """

    ended: threading.Event

    def run(self, master: Master) -> None:
        """Take the job over and let its master start it; returns at once."""

    @property
    def master(self) -> Master:
        """The job's master; a different one after a failover."""

    def hand_over(self, master: Master) -> None:
        """Step this master from now on; called on the turn of its predecessor."""

    def leave_stalled_behind(self) -> None:
        """The job is canceled: after some seconds, stop waiting for tasks whose step does not end."""

    def stalled(self) -> str:
        """The task in a step that does not end, since when and where; empty: none."""

    def within(self) -> bool:
        """Whether the caller's thread is in one of the job's steps: a function, sink or source calls."""

    def wait_for(self, event: threading.Event, seconds: float | None) -> bool:
        """Let the job run until `event` is set, for at most `seconds` of its clock; returns whether it is set."""
