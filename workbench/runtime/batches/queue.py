"""The queue of the batches of one job: from the moment at which a batch is cut to its commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.operators.contract.base import Operator
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.barriers.micro_batches import Batched
from workbench.runtime.batches.offsets import LOG, OffsetLog, Offsets, Span
from workbench.runtime.batches.source import BatchSourceTask
from workbench.runtime.checkpoints.background import Background
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.messages.messages import Collected, Release
from workbench.runtime.storage import CheckpointStorage
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask

HISTORY = 50


@dataclass(slots=True)
class Batch:
    """One batch of a job.

    Attributes:
        txid: its number; the same when it is processed again.
        checkpoint_id: of the checkpoint that commits it.
        replayed: it is processed again, with the same records if the architecture's state is transactional.
        opened_us, logged_us, started_us, ended_us: when it was cut, when its offsets were durable, when its records
            were released, and when it was committed or failed; None: not yet.
        spans: by the names of the source tasks.
    """

    txid: int
    checkpoint_id: int
    replayed: bool
    opened_us: int
    logged_us: int | None = None
    started_us: int | None = None
    ended_us: int | None = None
    state: Literal["collecting", "waiting", "running", "committed", "failed"] = "collecting"
    spans: dict[str, Span] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Records that the sources have collected for it."""
        return sum(span.end - span.start for span in self.spans.copy().values())


class BatchQueue:
    """The batches of one job, over all its attempts; every method is called on the master's turn.

    Args:
        background: writes the offsets.
        now_us: reads the injected clock.

    Attributes:
        on_unlogged: called with the checkpoint of a batch whose offsets could not be written.
        log: of the offsets; known when the first attempt begins.
        open: batches that are not committed, oldest first.
        ended: the last batches that were committed or have failed, oldest first.
        committed_txid: of the last batch that was committed; 0: none.
        committed, failed, replayed: how many batches.
    """

    log: OffsetLog

    def __init__(self, background: Background, now_us: Callable[[], int]) -> None:
        self._background = background
        self._now_us = now_us
        self._storage: CheckpointStorage | None = None
        self._sources: tuple[str, ...] = ()
        self._knobs = Batched()
        self._execution: Execution | None = None
        self._last_txid = 0
        self._again: deque[Offsets] = deque()
        self.on_unlogged: Callable[[int, Exception], None] = lambda checkpoint_id, error: None
        self.open: deque[Batch] = deque()
        self.ended: deque[Batch] = deque(maxlen=HISTORY)
        self.committed_txid = self.committed = self.failed = self.replayed = 0

    # parts of tasks ----------------------------------------------------------------------------------------------

    def sink(self, uid: str, operator: Operator) -> Operator:
        """A sink as it is: it commits with the checkpoint of the batch."""
        return operator

    def operator_task(self, **rest: Any) -> OperatorTask:
        """A task with inputs, as it is."""
        return OperatorTask(**rest)

    def source_task(self, **rest: Any) -> SourceTask:
        """A task that reads a source, and collects batches."""
        spans = [batch.spans[rest["name"]] for batch in self._again] if self._knobs.same else []
        return BatchSourceTask(spans=spans, **rest)

    def end(self) -> None:
        """Keep the log of offsets next to the checkpoints."""

    def counts(self, execution: Execution | None) -> dict[str, int]:
        """The queue, and what has become of batches."""
        states = [batch.state for batch in tuple(self.open)]
        return {
            "waiting": sum(state in ("collecting", "waiting") for state in states),
            "running": states.count("running"),
            "committed_txid": self.committed_txid,
            "committed": self.committed,
            "failed": self.failed,
            "replayed": self.replayed,
        }

    # attempts ----------------------------------------------------------------------------------------------------

    def prepare(self, storage: CheckpointStorage, checkpoint_id: int, graph: PhysicalGraph, knobs: Batched) -> None:
        """An attempt is about to be deployed, from this checkpoint (0: from none)."""
        self._knobs = knobs
        if self._storage is not storage:
            self._storage, self.log = storage, OffsetLog(storage)
        self._last_txid = self.log.highest_txid
        self._sources = tuple(task for vertex in graph.vertices if vertex.is_source for task in vertex.tasks)
        self._again = deque(self.log.resume(checkpoint_id, self._sources))
        self.committed_txid = max(self.committed_txid, self.log.committed_txid)
        for batch in self.ended:
            if batch.checkpoint_id == checkpoint_id and batch.state == "failed":
                batch.state = "committed"  # its manifest became durable after the attempt was over
                self.failed -= 1
                self.committed += 1

    @property
    def again(self) -> Sequence[Offsets]:
        """The batches that are to be processed again, oldest first."""
        return self._again

    def begin(self, execution: Execution) -> None:
        """The attempt was deployed."""
        self._execution = execution

    def stop(self) -> None:
        """The attempt is over, and what it has not committed has failed."""
        self._execution = None
        for batch in self.open:
            self.failed += 1
            self._end(batch, "failed")
        self.open.clear()

    def tune(self, knobs: Batched) -> None:
        """Use other arguments from now on."""
        self._knobs = knobs
        self._release()

    @property
    def next_txid(self) -> int:
        """The number of the batch that will be cut next."""
        return self._again[0].txid if self._again else self._last_txid + 1

    # one batch ---------------------------------------------------------------------------------------------------

    def opened(self, record: CheckpointRecord) -> None:
        """A batch is cut with this checkpoint: the oldest that is to be processed again, or a new one."""
        again = self._again.popleft() if self._again else None
        if again is None:
            self._last_txid += 1
        txid = self._last_txid if again is None else again.txid
        self.replayed += again is not None
        self.open.append(Batch(txid, record.checkpoint_id, again is not None, self._now_us()))

    def collected(self, report: Collected) -> None:
        """A source has collected its part; when all have, the offsets are logged."""
        batch = self._batch(report.checkpoint_id)
        if batch is None:
            return
        batch.spans[report.task] = Span(report.start, report.end, report.counts, report.ended)
        if len(batch.spans) < len(self._sources):
            return
        storage, execution = self._storage, self._execution
        assert storage is not None
        content = self.log.add(Offsets(batch.txid, batch.checkpoint_id, dict(batch.spans)))

        def logged(result: Exception | None) -> None:
            if execution is not self._execution:
                return  # the attempt is over
            if isinstance(result, Exception):
                self.on_unlogged(batch.checkpoint_id, result)
                return
            batch.state, batch.logged_us = "waiting", self._now_us()
            self._release()

        self._background.submit(lambda: storage.keep(LOG, content), logged)

    def commits(self, record: CheckpointRecord) -> None:
        """A checkpoint is complete, and with it its batch."""
        batch = self._batch(record.checkpoint_id)
        if batch is None:
            return
        self.open.remove(batch)
        self.committed += 1
        self.committed_txid = batch.txid
        self.log.committed(batch.txid)
        self._end(batch, "committed")
        self._release()

    def _release(self) -> None:
        """Let the oldest batches be processed, as many as may be at a time."""
        for batch in list(self.open)[: self._knobs.max_pending]:
            if batch.state == "collecting":
                return  # batches are processed in order
            if batch.state == "waiting" and self._execution is not None:
                batch.state, batch.started_us = "running", self._now_us()
                self._execution.tell_sources(Release(batch.checkpoint_id))

    def _end(self, batch: Batch, state: Literal["committed", "failed"]) -> None:
        batch.state, batch.ended_us = state, self._now_us()
        self.ended.append(batch)

    def _batch(self, checkpoint_id: int) -> Batch | None:
        return next((batch for batch in self.open if batch.checkpoint_id == checkpoint_id), None)
