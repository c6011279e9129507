"""Requested checkpoints: by a user, for a savepoint, for rescaling, or because the job is about to end.

Requests wait while too many checkpoints are in progress. The *last* checkpoint of a job is special: the job ends when
it completes, and without it the tail of the input would never be committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord, Kind
from workbench.runtime.checkpoints.coordinator import CheckpointCoordinator
from workbench.runtime.checkpoints.rescaling import Rescale
from workbench.runtime.settings.settings import Settings

LAST_CHECKPOINT_TRIES = 3


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a checkpoint.

    Attributes:
        kind: of the checkpoint.
        savepoint: its name, if it is one.
        last: the job ends with this checkpoint.
        rescale: the job resumes from it at another parallelism.
    """

    kind: Kind
    savepoint: str | None = None
    last: bool = False
    rescale: Rescale | None = None

    @property
    def aligned(self) -> bool:
        """Whether the state must be self-contained: a state that another job resumes from holds nothing in flight, and
        what is in flight at the last checkpoint would never be committed."""
        return self.last or self.rescale is not None or self.savepoint is not None


_STOP = Request("manual", last=True)


class CheckpointRequests:
    """The queue of requests of one job.

    They belong to the job and not to its master: a successor handles what is requested while a failed master is
    replaced.

    Args:
        coordinator: takes the checkpoints.
    """

    def __init__(self, coordinator: CheckpointCoordinator) -> None:
        self._coordinator = coordinator
        self._stopping = False
        self._queue: list[Request] = []
        self._begun: dict[int, Request] = {}
        self._last_failures = 0
        self._waiters: dict[str, Callable[[str], None]] = {}

    def ask(self, request: Request) -> None:
        """Take a checkpoint as soon as another one may be in progress."""
        self._queue.append(request)

    def ask_once(self, request: Request) -> None:
        """As `ask`, unless an equal request waits already."""
        if request not in self._queue:
            self.ask(request)

    def succeeded_by(self, coordinator: CheckpointCoordinator) -> CheckpointRequests:
        """Return these requests for another coordinator, which takes the checkpoints from now on."""
        self._coordinator = coordinator
        return self

    def stop(self) -> None:
        """Take the last checkpoint; if an attempt fails before the job has ended with it, the next attempt takes it."""
        if not self._stopping:
            self._stopping = True
            self._queue.append(_STOP)

    def await_savepoint(self, name: str, done: Callable[[str], None]) -> bool:
        """Call `done` once when the savepoint of that name is complete (with an empty text) or has failed (with the
        reason). Returns False if a savepoint of that name is already pending: its folder would be overwritten.
        """
        return self._waiters.setdefault(name, done) is done

    def await_no_more(self, name: str, done: Callable[[str], None]) -> None:
        """Withdraw the request for this savepoint, if `done` is the callback that waits for it."""
        if self._waiters.get(name) is done:
            del self._waiters[name]

    def trigger(self, settings: Settings, now_us: int) -> Request | None:
        """Begin the next request if it can begin now; returns the request that was begun."""
        if not self._queue:
            return None
        request = self._queue[0]
        record = self._coordinator.trigger(
            request.kind, settings, now_us, request.savepoint, aligned=request.aligned, alone=request.aligned
        )
        if record is None:
            return None
        del self._queue[0]
        self._begun[record.checkpoint_id] = request
        return request

    def attempt_over(self, reason: str) -> None:
        """The running attempt is over, and so is every checkpoint that it had begun. A drained source will request its
        checkpoint again, and a job that is being stopped takes its last checkpoint in the next attempt."""
        for request in self._begun.values():
            if request.rescale is not None:
                request.rescale.done(reason)
        self._begun.clear()
        self._queue = [request for request in self._queue if not request.last]
        if self._stopping:
            self._queue.append(_STOP)

    def completed(self, record: CheckpointRecord) -> Request | None:
        """A checkpoint is complete; returns the request that it fulfils."""
        return self._taken(record)

    def failed(self, record: CheckpointRecord) -> Request | None:
        """A checkpoint has failed; returns the request that fails with it, if any: the last one is retried first."""
        self.tell(record)
        request = self._taken(record)
        if request is None or not request.last:
            return request
        self._last_failures += 1
        if self._last_failures > LAST_CHECKPOINT_TRIES:
            return request
        self.ask(request)
        return None

    def give_up(self, reason: str = "the job has ended", *, completing: bool = True) -> None:
        """Reject all waiting requests and notify those who wait, including those who wait for a savepoint whose
        manifest is being written, unless its outcome will be known (`completing` is False)."""
        self.attempt_over(reason)
        for request in self._queue:
            if request.rescale is not None:
                request.rescale.done(reason)
        self._queue = [_STOP] if self._stopping else []  # in case another master takes over
        records = [] if completing else self._coordinator.in_progress.values()
        kept = {record.savepoint for record in records if record.completing}
        for name in [name for name in list(self._waiters) if name not in kept]:  # a callback may add others
            self._waiters.pop(name)(reason)

    def _taken(self, record: CheckpointRecord) -> Request | None:
        return self._begun.pop(record.checkpoint_id, None)

    def tell(self, record: CheckpointRecord) -> None:
        """A checkpoint has ended; notify the caller that waits for it as a savepoint."""
        if record.savepoint is not None and (done := self._waiters.pop(record.savepoint, None)) is not None:
            done(record.reason)
