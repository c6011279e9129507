"""From when on a changed setting is in force in all tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from workbench.runtime.settings.settings import Settings

LATEST_US = 1_000_000
"""A task that has not taken a step for so long after a change is not waited for: it may be in a call of user code."""


class Set(Protocol):
    """What of a task is looked at: the settings that it has, and whether it has ended."""

    settings: Settings
    finished: bool


class InForce:
    """The last change of a job's settings reaches each task with its next step, on a busy machine after a while.

    What a source has sent until then waits under the earlier settings, such as for a buffer timeout of a second, and is
    no effect of the change.

    Attributes:
        since_us: latency markers tell of the change if they were sent from then on (processing time).

    Example:
        >>> in_force = InForce()
        >>> in_force.changed(5_000_000)
        >>> in_force.look([], Settings(), 5_100_000)
        >>> in_force.since_us
        5000000
    """

    def __init__(self) -> None:
        self.since_us = 0
        self._changed_us: int | None = None

    def changed(self, time_us: int) -> None:
        """A setting has changed."""
        self.since_us = self._changed_us = time_us

    def look(self, tasks: Iterable[Set], settings: Settings, now_us: int) -> None:
        """Take note of whether these tasks have the job's settings now."""
        if self._changed_us is None:
            return
        if now_us - self._changed_us < LATEST_US and any(
            not task.finished and task.settings != settings for task in tasks
        ):
            self.since_us = now_us
        else:
            self._changed_us = None
