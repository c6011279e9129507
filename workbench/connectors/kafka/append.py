"""Sends rows to a topic: as they arrive, or exactly once with each checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import pyarrow as pa

from workbench.connectors.contract.saved_files import impossible, saved_as
from workbench.connectors.epochs.pending import PendingRows, saved_epochs
from workbench.connectors.epochs.row_store import Epoch
from workbench.connectors.kafka.outgoing import Outgoing, Topic
from workbench.connectors.kafka.tail import MessageId, Tail
from workbench.elements import Records
from workbench.errors import CommittedRowsError
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot

_BACK = 10_000
"""Messages of each partition that are looked through for rows of an earlier run."""
_SENT_ROWS = 4_096


class SendLogic(Operator):
    """Sends rows as they arrive; all are acknowledged before a checkpoint is complete. It has no state."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._outgoing: Outgoing | None = None

    def open(self, context: OperatorContext) -> None:
        self._outgoing = Outgoing(self._topic)

    def process(self, records: Records, port: int, out: Output) -> None:
        assert self._outgoing is not None
        self._outgoing.send(records.batch)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        assert self._outgoing is not None
        self._outgoing.flush()
        return {}

    def close(self) -> None:
        if self._outgoing is not None:
            self._outgoing.close()
            self._outgoing = None


class EpochLogic(Operator):
    """Sends the rows of a checkpoint when it is complete; what a failure interrupts is completed after it.

    State: the rows of the epochs that are not known to be sent; their writer and run; and by partition an offset before
    which there is none of their messages.

    Args:
        topic: the topic.
        schema: of the rows.
        transactions: send the rows of an epoch in one transaction.
    """

    def __init__(self, topic: Topic, schema: pa.Schema, *, transactions: bool) -> None:
        self._topic = topic
        self._schema = schema
        self._transactions = transactions
        self._pending = PendingRows(schema)
        self._marks: dict[int, int] = {}
        self._outgoing: Outgoing | None = None
        self._begun = False

    def open(self, context: OperatorContext) -> None:
        self._subtask = context.subtask
        self._writer = f"{context.job}/{context.uid}"
        self._run = context.run

    def process(self, records: Records, port: int, out: Output) -> None:
        self._begin()
        self._pending.add(records)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._begin()
        pieces = {
            "checkpoint": checkpoint_id,
            "writer": self._writer,
            "run": self._run,
            "marks": {str(number): offset for number, offset in sorted(self._marks.items())},
        }
        return cast("Snapshot", pieces | self._pending.cut(checkpoint_id, self._subtask))

    def notify_complete(self, checkpoint_id: int) -> None:
        self._send(self._pending.due(checkpoint_id), self._run, set())
        self._pending.forget(checkpoint_id)

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """The first subtask sends what is missing of all former subtasks, however many there were."""
        if not any(snapshots):
            return  # the restored job did not have this sink: it starts empty
        saved = SavedEpochs.of(snapshots, self._topic, self._schema)
        self._begun = True
        self._writer = saved.writer
        self._marks = dict(saved.marks)
        if self._subtask == 0 and saved.epochs:
            if self._transactions:
                self._connected()  # fences the former producer, and aborts its transaction
            seen = tail_of(self._topic, committed=self._transactions).messages(saved.marks)
            self._send(saved.epochs, saved.run, seen)

    def close(self) -> None:
        if self._outgoing is not None:
            self._outgoing.close()
            self._outgoing = None

    def _begin(self) -> None:
        """Called before the first row of a job that was not restored."""
        if not self._begun:
            self._begun = True
            self._marks = tail_of(self._topic, committed=self._transactions).ends()

    def _connected(self) -> Outgoing:
        if self._outgoing is None:
            name = f"workbench {self._writer} {self._subtask}" if self._transactions else ""
            self._outgoing = Outgoing(self._topic, name)
        return self._outgoing

    def _send(self, epochs: Sequence[Epoch], run: str, seen: set[MessageId]) -> None:
        """Send the messages of these epochs that are not among those seen."""
        outgoing = self._connected() if epochs else None
        for epoch in epochs:
            assert outgoing is not None
            send = partial(self._send_epoch, outgoing, epoch, run, seen)
            if self._transactions:
                outgoing.in_transaction(send)
            else:
                send()
        if outgoing is not None:
            outgoing.flush()
            for number, offset in outgoing.reached.items():
                self._marks[number] = max(offset, self._marks.get(number, 0))

    def _send_epoch(self, outgoing: Outgoing, epoch: Epoch, run: str, seen: set[MessageId]) -> None:
        several = self._topic.format.several
        number = 0
        for batch in epoch.rows.combine_chunks().to_batches():
            for begin in range(0, batch.num_rows, _SENT_ROWS):
                rows = batch.slice(begin, _SENT_ROWS)
                count = 1 if several else rows.num_rows
                ids = [
                    MessageId(self._writer, run, epoch.number, epoch.subtask, at)
                    for at in range(number, number + count)
                ]
                number += count
                missing = [at for at, each in enumerate(ids) if each not in seen] if seen else range(count)
                if len(missing) < count and not several:
                    rows, ids = rows.take(pa.array(missing, pa.int64())), [ids[at] for at in missing]
                if len(missing):
                    outgoing.send(rows, ids)


def tail_of(topic: Topic, *, committed: bool) -> Tail:
    """The end of a topic; see `Tail`."""
    return Tail(topic.cluster, topic.name, committed=committed, wait_s=topic.wait_s)


def check_fresh(topic: Topic, writer: str, *, committed: bool) -> None:
    """Reject a start without a checkpoint if this writer has sent rows recently.

    Raises:
        CommittedRowsError: it has.
        SinkError: the topic cannot be read.
    """
    found = [each.epoch for each in tail_of(topic, committed=committed).messages({}, _BACK) if each.writer == writer]
    if found:
        raise CommittedRowsError(
            f"{topic.title} already holds rows of {writer!r} up to epoch {max(found)}: resume the job that wrote them "
            "(resume=True), or choose another topic or another name for the job"
        )


def check_restore(
    topic: Topic, snapshots: Sequence[Snapshot], schema: pa.Schema, checkpoint: str, *, committed: bool
) -> None:
    """Reject a checkpoint that is older than rows that were sent, or that no such sink saves.

    Raises:
        CommittedRowsError: the topic has rows of later epochs.
        CorruptCheckpointError: no sink of this kind saves this.
    """
    saved = SavedEpochs.of(snapshots, topic, schema)
    seen = tail_of(topic, committed=committed).messages(saved.marks)
    latest = max((each.epoch for each in seen if each.writer == saved.writer), default=0)
    if latest > saved.checkpoint:
        raise CommittedRowsError(
            f"{topic.title} has rows of epoch {latest}, later than {checkpoint or f'checkpoint {saved.checkpoint}'} to "
            "restore, which would be duplicated: restore a later checkpoint, or choose another topic"
        )


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The saved state of one subtask except rows."""

    checkpoint: int
    writer: str
    run: str
    marks: dict[str, int]


@dataclass(frozen=True, slots=True)
class SavedEpochs:
    """The combined saved state of the subtasks of one checkpoint.

    Attributes:
        checkpoint: its number.
        writer, run: of the rows.
        marks: by partition: where to begin to look for messages of the epochs.
        epochs: those that may not be sent yet.
    """

    checkpoint: int
    writer: str
    run: str
    marks: dict[int, int]
    epochs: tuple[Epoch, ...]

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], topic: Topic, schema: pa.Schema) -> SavedEpochs:
        """What these snapshots have.

        Raises:
            CorruptCheckpointError: no sink of this kind saves this.
            CheckpointError: the rows had other columns.
        """
        taken = [snapshot for snapshot in snapshots if snapshot]
        pieces = [saved_as(_Pieces, snapshot, "the state of the Kafka sink") for snapshot in taken]
        if len({(each.writer, each.run) for each in pieces}) != 1:
            raise impossible("the subtasks write as different jobs")
        checkpoint = max(each.checkpoint for each in pieces)
        epochs = saved_epochs(taken, [each.checkpoint for each in pieces], topic.name, schema)
        marks: dict[int, int] = {}
        for each in pieces:
            for name, offset in each.marks.items():
                if not name.isdecimal() or offset < 0:
                    raise impossible(f"a partition is named {name[:20]!r}")
                marks[int(name)] = min(offset, marks.get(int(name), offset))
        return cls(checkpoint, pieces[0].writer, pieces[0].run, marks, epochs)
