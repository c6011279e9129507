"""What is seen of a job's master: telemetry, the job's handle and the checkers read these and nothing else of it."""

from __future__ import annotations

from typing import Any

from workbench.plan.physical import PhysicalGraph
from workbench.runtime.checkpoints.checkpoint_record import Restore
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.job.life_cycle import LifeCycle
from workbench.runtime.job.restarts import Restarts
from workbench.runtime.job.source_control import SourceControl
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import Manifest
from workbench.runtime.tasks.deployment import Execution


class MasterFacts:
    """The facts of a master; `Master` inherits them.

    Attributes:
        settings: in force.
        graph: the plan.
        life: the job's state, and what becomes of it.
        sources: what a person does to them.
        coordinator: of its checkpoints.
    """

    settings: Settings
    graph: PhysicalGraph
    life: LifeCycle
    sources: SourceControl
    coordinator: CheckpointCoordinator
    _attempts: Attempts
    _restarts: Restarts

    def shown(self) -> dict[str, Any]:
        """The settings in force as people write them, those of the sources too."""
        groups = {"max_parallelism": self.graph.max_parallelism}
        return {**self.settings.shown(), **groups, **self.sources.shown()}

    @property
    def execution(self) -> Execution | None:
        """The tasks that run, or that ran last; None before the first attempt."""
        return self._attempts.execution

    @property
    def restart_point(self) -> Manifest | None:
        """The checkpoint or savepoint from which the job would go on after a failure."""
        return self._attempts.restart_point

    @property
    def restores(self) -> int:
        """How often tasks were restored from a checkpoint or savepoint; a master that takes over counts from zero."""
        return self._attempts.restores

    @property
    def last_restore(self) -> Restore | None:
        """From what tasks were restored last."""
        return self._attempts.last_restore

    @property
    def state(self) -> str:
        """Flink's job state (see `LifeCycle`)."""
        return self.life.state

    @property
    def over(self) -> bool:
        """Whether the job has ended for good."""
        return self.life.over

    @property
    def failure(self) -> Exception | None:
        """The last one, from which the job may have recovered."""
        return self.life.failure

    @property
    def restarts(self) -> int:
        """How often it has started again after a failure, as a whole or in a region."""
        return self._restarts.count

    @property
    def restart_due_us(self) -> int | None:
        """When the next attempt begins, while one is waited for."""
        return self._restarts.due_us

    @property
    def paused(self) -> bool:
        """Whether somebody has stopped the reading of the sources."""
        return self.sources.paused

    @property
    def reading(self) -> bool:
        """Whether all its sources have tasks that are stepped, none waits for its restart, and no barrier is on its way
        to some of them while others have sent it."""
        if self.state != "RUNNING" or self._attempts.down or self.execution is None:
            return False
        return self.coordinator.taken_by(task.name for task in self.execution.sources)
