"""The restarts of one job: how many there were, and when the next attempt is due."""

from __future__ import annotations

from workbench.errors import (
    CheckpointError,
    CommittedRowsError,
    ExpressionError,
    JobError,
    PlanError,
    SettingError,
    UnfitTableError,
    UnreadableCheckpointError,
)
from workbench.runtime.settings.restart_strategies import RestartStrategy

_FINAL = (CheckpointError, CommittedRowsError, ExpressionError, PlanError, SettingError, UnfitTableError)


def is_final(error: Exception) -> bool:
    """Whether what a restart raised ends the job at once, because starting once more would raise it again.

    Such are a damaged checkpoint or one that the sinks are ahead of, a table that does not fit, and a plan that cannot
    be. Whatever else fails
    (a database that is locked, a disk or a service that does not answer) is a failure like that of a task.
    """
    return isinstance(error, _FINAL) and not isinstance(error, UnreadableCheckpointError)


class Restarts:
    """What the strategy said, kept over the attempts of a job.

    Args:
        strategy: says whether and when.
        job: its name.

    Attributes:
        count: how often it has started again, as a whole or in a region.
        failures: all of them.
        due_us: when the next attempt begins; None while none is waited for.
    """

    def __init__(self, strategy: RestartStrategy, job: str) -> None:
        self._logic = strategy.begin(job)
        self.count = 0
        self.failures = 0
        self.due_us: int | None = None

    def allowed(self, error: Exception, now_us: int) -> bool:
        """There was a failure with `error`; whether the job may start again, which is then due."""
        self.failures += 1
        delay_us = self._logic.failed(now_us, injected=isinstance(error, JobError))
        if delay_us is None:
            return False
        self.count += 1
        self.due_us = now_us + delay_us
        return True

    def is_due(self, now_us: int) -> bool:
        """Whether the time to start again has come."""
        return self.due_us is not None and now_us >= self.due_us

    def begun(self) -> None:
        """The next attempt has begun."""
        self.due_us = None
