"""Steps with micro-batches: the records collected, and the states of each batch from its cut to its commit."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.drivers.contract.serial import WRITER
from workbench.drivers.contract.step import FAILED, Step
from workbench.drivers.stepped.narrator import Lines, Narrator, at_offset
from workbench.elements import CheckpointBarrier
from workbench.runtime.batches.offsets import LOG
from workbench.runtime.batches.queue import Batch, BatchQueue
from workbench.runtime.batches.source import BatchSourceTask, Collection
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task
from workbench.telemetry.stepping.words import records


class BatchesNarrator(Narrator):
    """Describes what the sources collect and send, and the states of each batch."""

    def __init__(self) -> None:
        self._queue: BatchQueue | None = None
        self._batches: dict[int, tuple[str, int]] = {}
        self._logged: bytes | None = None
        self._txid = 0
        self._collections: tuple[Collection, ...] = ()
        self._records = 0

    # what happened -----------------------------------------------------------------------------------------------

    def look(self, master: Master, execution: Execution | None, task: Task | None) -> None:
        parts = master.services.parts
        self._queue = queue = parts if isinstance(parts, BatchQueue) else None
        if queue is not None and task is None:
            self._batches = {each.checkpoint_id: (each.state, len(each.spans)) for each in (*queue.ended, *queue.open)}
            self._logged = queue.log.storage.kept(LOG) if queue.open else None
        if isinstance(task, BatchSourceTask):
            self._txid, self._collections = self._collects(task), task.collections
            self._records = self._collections[-1].records

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        queue = self._queue
        if queue is None or step.outcome == FAILED:
            return ()
        task = None if execution is None else execution.task(step.actor)
        if isinstance(task, BatchSourceTask):
            return tuple(self._of_source(task, step))
        if task is not None:
            return ()
        if step.actor == WRITER:
            written = queue.open and queue.log.storage.kept(LOG) != self._logged
            return ("The log holds the offsets of the batch now.",) if written else ()
        batched = master.settings.policy.batches
        same = batched is None or batched.same
        return tuple(sentence for batch in (*queue.ended, *queue.open) for sentence in self._of_batch(batch, same))

    def _of_source(self, task: BatchSourceTask, step: Step) -> Iterator[str]:
        before, (*closed, collecting) = self._collections, task.collections
        mine = before[-1]
        read = records(mine.records - self._records)
        if mine.records > self._records and self._is_again(self._txid):
            yield f"{task.name} read {read} of batch {self._txid} again: {mine.records} so far."
        elif mine.records > self._records:
            yield f"{task.name} collected {read}, not sent yet: batch {self._txid} has {mine.records} so far."
        if collecting is not mine:
            yield (
                f"{task.name} ends batch {self._txid} with {records(mine.records)}; nothing is sent before the "
                "offsets are durable."
            )
            if collecting.records:
                yield f"Meanwhile, it collects batch {self._collects(task)}: {records(collecting.records)} so far."
        sending = before[0]
        number = None if sending.barrier is None else self._number(sending.barrier.checkpoint_id)
        if number is None or not step.sent:
            return
        if sending not in closed:
            yield f"Batch {number} is sent, and its barrier behind it."
        elif sending.unsent:
            yield f"Of batch {number}, {records(sending.unsent)} and the barrier are still to be sent."
        else:
            yield f"Of batch {number}, only the barrier is still to be sent."

    def _of_batch(self, batch: Batch, same: bool) -> Iterator[str]:
        """Sentences about what happened to a batch since the last turn."""
        name = f"Batch {batch.txid}"
        before, reports = self._batches.get(batch.checkpoint_id, (None, 0))
        if before is None and batch.replayed:
            which = "the same records" if same else "records of a new cut"
            yield f"{name} is replayed: {which} under the same txid, with checkpoint {batch.checkpoint_id}."
        elif before is None:
            yield f"{name} is cut; it will be committed with checkpoint {batch.checkpoint_id}."
        if batch.state in ("waiting", "running") and before in (None, "collecting"):
            yield f"The offsets of batch {batch.txid} are durable."
        elif batch.state == "collecting" and len(batch.spans) > reports:
            spans = (f"{span.start} to {span.end} of {task}" for task, span in sorted(batch.spans.items()))
            yield f"The records of batch {batch.txid} are known: {' and '.join(spans)}."
        if batch.state == before:
            return
        if batch.state == "running":
            yield f"{name} is released: the sources send it."
        elif batch.state == "committed" and before == "failed":
            yield f"{name} was committed after all: its checkpoint was complete when the task failed."
        elif batch.state == "committed":
            yield f"{name} is committed: state, positions and rows at once."
        elif batch.state == "failed":
            yield f"{name} failed: it has had no effect."

    def copied(self, task: Task, held: Lines, barrier: CheckpointBarrier | None) -> Lines:
        if not isinstance(task, BatchSourceTask) or barrier is None or self._queue is None:
            return held
        spans = [each.spans.get(task.name) for each in self._queue.open if each.checkpoint_id == barrier.checkpoint_id]
        return at_offset(held, spans[0].end if spans and spans[0] is not None else None)

    # names -------------------------------------------------------------------------------------------------------

    def _collects(self, task: BatchSourceTask) -> int:
        """The number of the batch for which a source collects records."""
        queue = self._queue
        if queue is None:
            return 0
        barriers = (batch.barrier for batch in task.collections[:-1])
        reported = max((barrier.checkpoint_id for barrier in barriers if barrier is not None), default=0)
        after = (each for each in queue.open if task.name not in each.spans and each.checkpoint_id > reported)
        return next((each.txid for each in after), queue.next_txid)

    def _number(self, checkpoint_id: int) -> int | None:
        """The number of the batch that a checkpoint commits."""
        batches = () if self._queue is None else self._queue.open
        return next((batch.txid for batch in batches if batch.checkpoint_id == checkpoint_id), None)

    def _is_again(self, txid: int) -> bool:
        """Whether a batch was cut before."""
        queue = self._queue
        if queue is None:
            return False
        return any(each.txid == txid for each in queue.again) or any(
            batch.txid == txid and batch.replayed for batch in queue.open
        )

    # what is shown -----------------------------------------------------------------------------------------------

    def beside(self, task: Task) -> Lines:
        if not isinstance(task, BatchSourceTask) or self._queue is None:
            return ()
        *closed, collecting = task.collections
        lines = []
        for batch in closed:
            number = None if batch.barrier is None else self._number(batch.barrier.checkpoint_id)
            lines.append((f"unsent of batch {number}", str(batch.unsent)))
        return (*lines, (f"collects batch {self._collects(task)}", str(collecting.records)))

    def facts(self, master: Master, execution: Execution | None) -> Lines:
        queue = self._queue
        if queue is None:
            return ()
        batches = tuple(
            (f"batch {batch.txid}", f"{batch.state}{' again' if batch.replayed else ''}") for batch in queue.open
        )
        return (("committed up to batch", str(queue.committed_txid)), *batches)
