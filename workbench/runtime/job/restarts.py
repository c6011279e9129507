"""The restarts of one job: their number, and when the next attempt is due."""

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
    """Whether an error of a restart ends the job at once, because another restart would raise it again.

    These are a damaged checkpoint or one that is older than what the sinks have committed, a table that does not fit,
    and an impossible plan. All others (a locked database, a disk or service that does not answer) count as task
    failures.
    """
    return isinstance(error, _FINAL) and not isinstance(error, UnreadableCheckpointError)


class Restarts:
    """The restart strategy's counters, kept over the attempts of a job.

    Args:
        strategy: decides whether and when the job restarts.
        job: its name.

    Attributes:
        count: how often the job has restarted, as a whole or in a region.
        failures: the number of failures.
        due_us: when the next attempt starts; None while no restart is pending.
    """

    def __init__(self, strategy: RestartStrategy, job: str) -> None:
        self._logic = strategy.begin(job)
        self.count = 0
        self.failures = 0
        self.due_us: int | None = None

    def allowed(self, error: Exception, now_us: int, least_us: int = 0) -> bool:
        """Record a failure with `error`; returns whether the job may restart, and schedules the restart: as the
        strategy says, but after `least_us` at the earliest."""
        self.failures += 1
        delay_us = self._logic.failed(now_us, injected=isinstance(error, JobError))
        if delay_us is None:
            return False
        self.count += 1
        self.due_us = now_us + max(delay_us, least_us)
        return True

    def is_due(self, now_us: int) -> bool:
        """Whether the pending restart is due."""
        return self.due_us is not None and now_us >= self.due_us

    def begun(self) -> None:
        """The next attempt has started."""
        self.due_us = None
