"""Finds out when a changed setting has taken effect in all tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from workbench.runtime.settings.settings import Settings

LATEST_US = 1_000_000
"""A task that takes no step for this long after a change is ignored: it may be in a call of user code."""


class Set(Protocol):
    """A task, as far as it matters here: the settings that it has, and whether it has ended."""

    settings: Settings
    finished: bool


class InForce:
    """Follows the last change of a job's settings, which reaches each task with its next step.

    On a busy machine this can take a while. Records that a source sends before that still wait under the earlier
    settings, for example for a buffer timeout of a second; their latency does not show the effect of the change.

    Attributes:
        since_us: latency markers that were sent from then on show the effect of the change (processing time).

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
        """Check whether these tasks have the job's settings now."""
        if self._changed_us is None:
            return
        if now_us - self._changed_us < LATEST_US and any(
            not task.finished and task.settings != settings for task in tasks
        ):
            self.since_us = now_us
        else:
            self._changed_us = None
