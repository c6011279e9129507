"""The attempts of a job with micro-batches: a failure fails all batches that are not committed, in all regions."""

from __future__ import annotations

from collections.abc import Collection

from workbench.plan.physical import PhysicalGraph
from workbench.plan.regions import Region
from workbench.raised import message_of
from workbench.runtime.batches.queue import BatchQueue
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.job.attempts import Attempts
from workbench.runtime.messages.messages import Collected
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import Manifest
from workbench.runtime.tasks.execution import Execution


class BatchedAttempts(Attempts):
    """The attempts of a job with micro-batches (see `Attempts` for the arguments)."""

    def launch(self, graph: PhysicalGraph, settings: Settings) -> None:
        """Deploy all tasks from the last batch that was committed; those behind it are processed again."""
        point, knobs, queue = self.restart_point, settings.policy.batches, self.queue
        assert knobs is not None
        queue.on_unlogged = self._unlogged
        self._coordinator.on_begun = queue.opened
        queue.prepare(self._storage, 0 if point is None else point.checkpoint_id, graph, knobs)
        super().launch(graph, settings)

    def end(self, *, failed: bool) -> None:
        """End all tasks and batches."""
        self.queue.stop()
        super().end(failed=failed)

    def apart(self, tasks: Collection[str]) -> tuple[Region, ...]:
        """None: a batch spans all regions."""
        return ()

    def _begin(self, execution: Execution, settings: Settings, manifest: Manifest | None) -> None:
        self.queue.begin(execution)
        super()._begin(execution, settings, manifest)
        knobs = settings.policy.batches
        for _ in tuple(self.queue.again) if knobs is not None and knobs.same else ():  # at once: their time is over
            self._coordinator.trigger("periodic", settings, self._services.clock.now_us())

    def collected(self, report: Collected) -> None:
        """A source has collected its part of a batch."""
        self.queue.collected(report)

    def committed(self, record: CheckpointRecord) -> None:
        """A checkpoint is complete, and with it its batch."""
        self.queue.commits(record)

    def use(self, settings: Settings) -> None:
        """Settings have changed."""
        assert settings.policy.batches is not None
        self.queue.tune(settings.policy.batches)

    @property
    def queue(self) -> BatchQueue:
        """The job's batches."""
        parts = self._services.parts
        assert isinstance(parts, BatchQueue)
        return parts

    def _unlogged(self, checkpoint_id: int, error: Exception) -> None:
        now_us = self._services.clock.now_us()
        self._coordinator.reject(checkpoint_id, f"its offsets could not be written: {message_of(error)}", now_us)
