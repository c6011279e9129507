"""Whether a failed job starts again, and when."""

from __future__ import annotations

from workbench.errors import JobError
from workbench.runtime.settings import Settings


class Restarts:
    """The restarts of one job.

    Attributes:
        count: how often it has started again.
        failures: those that count; one that a person injects does not.
        due_us: when it starts again, while it waits for that.
    """

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.due_us: int | None = None

    def allowed(self, error: Exception, settings: Settings, now_us: int) -> bool:
        """A task failed with `error`; whether the job may start again, which is then due."""
        self.failures += not isinstance(error, JobError)
        if self.failures > settings.max_restarts:
            return False
        self.count += 1
        self.due_us = now_us + settings.restart_delay_us
        return True

    def is_due(self, now_us: int) -> bool:
        """Whether the time to start again has come."""
        return self.due_us is not None and now_us >= self.due_us
