"""Checkpoints that were asked for: by a person, by a savepoint, or because the job is about to end.

Only one checkpoint is in progress at a time, so requests wait for their turn. The *last* checkpoint of a job is
special: the job ends when it is complete, and without it the tail of the input would never be committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.runtime.coordinator import CheckpointCoordinator, CheckpointRecord, Kind
from workbench.runtime.settings import Settings

LAST_CHECKPOINT_TRIES = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One wish for a checkpoint."""

    kind: Kind
    savepoint: str | None = None
    last: bool = False


class CheckpointRequests:
    """The queue of requests of one job."""

    def __init__(self, coordinator: CheckpointCoordinator) -> None:
        self._coordinator = coordinator
        self._queue: list[Request] = []
        self._last: tuple[Request, CheckpointRecord] | None = None
        self._last_failures = 0
        self._waiters: dict[str, Callable[[], None]] = {}

    def ask(self, request: Request) -> None:
        """Take a checkpoint as soon as none is in progress."""
        self._queue.append(request)

    def on_savepoint(self, name: str, done: Callable[[], None]) -> None:
        """Have `done` called once when the savepoint of that name is complete or has failed."""
        self._waiters[name] = done

    def trigger(self, settings: Settings, now_us: int) -> None:
        """Begin the next one that was asked for, if it is its turn."""
        while self._queue and self._coordinator.pending is None:
            request = self._queue[0]
            record = self._coordinator.trigger(request.kind, settings, now_us, request.savepoint)
            if record is None:
                return
            del self._queue[0]
            if request.last:
                self._last = (request, record)

    def attempt_failed(self) -> None:
        """The running attempt is over; a source that is drained again will ask again."""
        self._last = None
        self._queue = [request for request in self._queue if request.kind != "final"]

    def completed(self, record: CheckpointRecord) -> bool:
        """A checkpoint is complete; whether it was the last one."""
        self._tell(record)
        return self._last is not None and self._last[1] is record

    def failed(self, record: CheckpointRecord) -> bool:
        """A checkpoint failed; whether the last one has now failed too often to be tried again."""
        self._tell(record)
        if self._last is None or self._last[1] is not record:
            return False
        self._last_failures += 1
        if self._last_failures > LAST_CHECKPOINT_TRIES:
            return True
        self.ask(self._last[0])
        return False

    def give_up(self) -> None:
        """The job has ended: nothing that still waits will be taken, and whoever waits for it is told."""
        self._queue.clear()
        for done in self._waiters.values():
            done()
        self._waiters.clear()

    def _tell(self, record: CheckpointRecord) -> None:
        if record.savepoint is not None and (done := self._waiters.pop(record.savepoint, None)) is not None:
            done()
