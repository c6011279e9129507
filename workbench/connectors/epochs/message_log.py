"""Sends rows to a message log: as they arrive, or exactly once with each checkpoint.

Each message of an exactly-once sink carries its writer, run, epoch, subtask and number. After a failure, the log is
read from the position in the checkpoint to its end, and messages that it already has are not sent again. Source: the
idempotent writers of Pravega and FASTER, which resume after their last event in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

import pyarrow as pa

from workbench.arguments import option
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.saved_files import impossible, saved_as
from workbench.connectors.epochs.ledger import SENDERS_MAX, Ledger
from workbench.connectors.epochs.message_id import MessageId
from workbench.connectors.epochs.pending import PendingRows, saved_epochs
from workbench.connectors.epochs.row_store import Epoch
from workbench.connectors.epochs.waiting import WaitingOperator
from workbench.connectors.messages.message_format import MessageFormat
from workbench.elements import Records
from workbench.errors import CommittedRowsError
from workbench.operators.contract.base import OperatorContext, Output, Snapshot

_SENT_ROWS = 4_096


class Sender(Protocol):
    """A connection that sends messages.

    Attributes:
        reached: the offset after the last acknowledged message, by partition.
    """

    reached: dict[int, int]

    def send(self, rows: pa.RecordBatch, ids: Sequence[MessageId] | None = None) -> None:
        """Send rows.

        Args:
            rows: the rows; at least one, unless a message of the format holds several rows.
            ids: the identity of each message, or None.

        Raises:
            SinkError: the server refuses a message, or is unreachable for too long.
        """

    def flush(self) -> None:
        """Wait until all messages are acknowledged.

        Raises:
            SinkError: as for `send`.
        """

    def whole(self, send: Callable[[], None]) -> None:
        """Call `send`, which sends the messages of one epoch, in one transaction if the log supports transactions.

        Raises:
            SinkError: as for `send`.
        """

    def close(self) -> None:
        """Drop messages that are not acknowledged."""


class MessageLog(Protocol):
    """The destination of messages."""

    @property
    def recent(self) -> int:
        """The number of messages at the end of a partition that are searched for those of an earlier run."""

    @property
    def fences(self) -> bool:
        """Whether a new sender fences the previous one."""

    @property
    def name(self) -> str:
        """Its name, such as ``delays``."""

    @property
    def title(self) -> str:
        """A description, such as ``the topic 'delays' of localhost:9092``."""

    @property
    def format(self) -> MessageFormat:
        """The format of messages."""

    @property
    def attempts(self) -> Attempts:
        """The attempts of its senders while the server is unreachable."""

    def of_subtask(self) -> MessageLog:
        """The log of one subtask, with its own attempts."""

    def ends(self) -> dict[int, int]:
        """The end of each partition, or an offset shortly before it.

        Raises:
            SinkError: the server does not answer, or the log does not exist.
        """

    def messages(self, begin: Mapping[int, int], back: int = 0, *, committed: bool = False) -> set[MessageId]:
        """The identities of the messages from some offsets to the end.

        Args:
            begin: the first offset of each partition; other partitions are read from the beginning.
            back: the number of messages before the end of each partition to start at; 0: start at `begin`.
            committed: whether to wait until open transactions end, and to leave out messages of aborted ones; if not,
                messages of all transactions are found, also of open ones, if the log supports transactions.

        Raises:
            SinkError: as for `ends`.
        """

    def sender(self, writer: str = "", subtask: int = 0) -> Sender:
        """Create a connection; for an exactly-once sink, it belongs to this writer and subtask."""

    def end_senders(self, writer: str, count: int) -> None:
        """Abort what senders of the first `count` subtasks of a writer have left open, and fence these senders.

        Raises:
            SinkError: names the transactional ID that cannot be ended.
        """


class SendLogic(WaitingOperator):
    """Sends rows as they arrive; all of them are acknowledged before a checkpoint is complete. It has no state."""

    def __init__(self, log: MessageLog) -> None:
        super().__init__(log.attempts)
        self._log = log
        self._sender: Sender | None = None

    def open(self, context: OperatorContext) -> None:
        self._sender = self._log.sender()

    def process(self, records: Records, port: int, out: Output) -> None:
        assert self._sender is not None
        self._sender.send(records.batch)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        assert self._sender is not None
        self._sender.flush()
        return {}

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None


class EpochLogic(WaitingOperator):
    """Sends the rows of a checkpoint when it is complete, and completes an interrupted sending after a failure.

    State: the rows of epochs that are possibly not sent; their writer and run; for each partition an offset before all
    of their messages; and how many subtasks have ever sent messages, if their transactions can stay open. The first
    subtask ends all of these transactions before it reads the log, and before any subtask sends. A subtask sends only
    what a complete checkpoint holds, so that the checkpoint names it before it sends for the first time.

    Args:
        log: the log.
        schema: of the rows.
    """

    def __init__(self, log: MessageLog, schema: pa.Schema) -> None:
        super().__init__(log.attempts)
        self._log = log
        self._schema = schema
        self._pending = PendingRows(schema)
        self._marks: dict[int, int] = {}
        self._sender: Sender | None = None
        self._begun = False
        self._ledger = Ledger(None, "")

    def open(self, context: OperatorContext) -> None:
        self._subtask = context.subtask
        self._writer = f"{context.job}/{context.uid}"
        self._run = context.run
        self._senders = context.parallelism if self._log.fences else 0
        if self._subtask == 0:
            self._ledger = Ledger(context.data_dir, context.uid)

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
            "senders": self._senders,
        }
        return cast("Snapshot", pieces | self._pending.cut(checkpoint_id, self._subtask))

    def notify_complete(self, checkpoint_id: int) -> None:
        self._send(self._pending.due(checkpoint_id), self._run, set())
        self._pending.forget(checkpoint_id)

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """The first subtask sends the missing messages of all former subtasks."""
        if not any(snapshots):
            return  # the checkpoint has no state of this sink: start empty
        saved = SavedEpochs.of(snapshots, self._log, self._schema)
        self._begun = True
        self._writer = saved.writer
        self._marks = dict(saved.marks)
        self._senders = max(self._senders, saved.senders)
        self._end_former(saved.senders)
        if self._subtask == 0 and saved.epochs:
            seen = self._log.messages(saved.marks, committed=self._senders > 0)
            self._send(saved.epochs, saved.run, seen)

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _begin(self) -> None:
        """Called before the first row of a job that was not restored."""
        if not self._begun:
            self._begun = True
            self._end_former(0)
            self._marks = self._log.ends()

    def _end_former(self, saved: int) -> None:
        """End all transactions that former senders can have left open.

        Args:
            saved: the number of senders in the checkpoint.
        """
        if self._subtask == 0:
            if former := max(saved, self._ledger.of(self._writer)):
                self._log.end_senders(self._writer, former)
            self._senders = self._ledger.cover(self._writer, max(self._senders, former))

    def _connected(self) -> Sender:
        if self._sender is None:
            self._sender = self._log.sender(self._writer, self._subtask)
        return self._sender

    def _send(self, epochs: Sequence[Epoch], run: str, seen: set[MessageId]) -> None:
        """Send the messages of these epochs that the log does not have yet."""
        if not epochs:
            return
        sender = self._connected()
        for epoch in epochs:
            sender.whole(partial(self._send_epoch, sender, epoch, run, seen))
        sender.flush()
        for number, offset in sender.reached.items():
            self._marks[number] = max(offset, self._marks.get(number, 0))

    def _send_epoch(self, sender: Sender, epoch: Epoch, run: str, seen: set[MessageId]) -> None:
        several = self._log.format.several
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
                    sender.send(rows, ids)


def check_fresh(log: MessageLog, writer: str) -> None:
    """Reject a start without a checkpoint if this writer has sent rows recently.

    Raises:
        CommittedRowsError: it has sent rows.
        SinkError: the log cannot be read.
    """
    found = [each.epoch for each in log.messages({}, log.recent) if each.writer == writer]
    if found:
        raise CommittedRowsError(
            f"{log.title} already holds rows of {writer!r} up to epoch {max(found)}: resume the job that wrote them "
            f"({option('resume')}), or choose another {log.title.split()[1]} or another name for the job; a run "
            "that starts over never removes them"
        )


def check_restore(log: MessageLog, snapshots: Sequence[Snapshot], schema: pa.Schema, checkpoint: str) -> None:
    """Reject a checkpoint that is older than rows already sent, or that no such sink has saved.

    Raises:
        CommittedRowsError: the log has rows of later epochs.
        CorruptCheckpointError: no sink of this kind saves this.
    """
    saved = SavedEpochs.of(snapshots, log, schema)
    seen = log.messages(saved.marks)
    latest = max((each.epoch for each in seen if each.writer == saved.writer), default=0)
    if latest > saved.checkpoint:
        raise CommittedRowsError(
            f"{log.title} has rows of epoch {latest}, later than {checkpoint or f'checkpoint {saved.checkpoint}'} to "
            f"restore, which would be duplicated: restore a later checkpoint, or choose another {log.title.split()[1]}"
        )


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The saved state of one subtask without rows."""

    checkpoint: int
    writer: str
    run: str
    marks: dict[str, int]
    senders: int | None = None  # not in checkpoints of earlier versions


@dataclass(frozen=True, slots=True)
class SavedEpochs:
    """The combined saved state of the subtasks of one checkpoint.

    Attributes:
        checkpoint: its number.
        writer, run: the writer and the run of the rows.
        marks: the offset of each partition from which to search for messages of the epochs.
        epochs: the epochs that are possibly not sent.
        senders: the number of subtasks that have ever sent messages in transactions.
    """

    checkpoint: int
    writer: str
    run: str
    marks: dict[int, int]
    epochs: tuple[Epoch, ...]
    senders: int

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], log: MessageLog, schema: pa.Schema) -> SavedEpochs:
        """Read the state in these snapshots.

        Raises:
            CorruptCheckpointError: no sink of this kind saves this.
            CheckpointError: the rows had other columns.
        """
        taken = [snapshot for snapshot in snapshots if snapshot]
        pieces = [
            saved_as(_Pieces, snapshot, f"the state of the sink to {log.title.partition(' of ')[0]}")
            for snapshot in taken
        ]
        if len({(each.writer, each.run) for each in pieces}) != 1:
            raise impossible("the subtasks write as different jobs")
        checkpoint = max(each.checkpoint for each in pieces)
        epochs = saved_epochs(taken, [each.checkpoint for each in pieces], log.name, schema)
        marks: dict[int, int] = {}
        for each in pieces:
            for name, offset in each.marks.items():
                if not name.isdecimal() or offset < 0:
                    raise impossible(f"a partition is named {name[:20]!r}")
                marks[int(name)] = min(offset, marks.get(int(name), offset))
        default = len(pieces) if log.fences else 0
        senders = max(default if each.senders is None else each.senders for each in pieces)
        if not 0 <= senders <= SENDERS_MAX:
            raise impossible(f"{senders} subtasks have sent messages")
        return cls(checkpoint, pieces[0].writer, pieces[0].run, marks, epochs, senders)
