"""A task that stood still, was replaced, and wakes up: it goes on as if it still ran.

A paused process, a machine behind a broken network: the job cannot tell them from a dead one, and replaces their tasks.
When such a task goes on, it sends, reports and writes. What it does must have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.elements import Records
from workbench.errors import as_error, sentence_of
from workbench.operators.contract.base import Output
from workbench.raised import PASSING
from workbench.runtime.messages.messages import Finished
from workbench.runtime.tasks.task import Task
from workbench.runtime.transactions.store import FencedWriteError
from workbench.runtime.transactions.tasks import TransactionalOperatorTask, TransactionalSourceTask


@dataclass(frozen=True, slots=True)
class Woken:
    """What a task did when it woke up.

    Attributes:
        task: its name.
        records: that it still had to process.
        sent: records and messages that it sent on channels of its attempt, which nobody reads any more.
        refused: its writes that the store refused.
        text: one sentence.
    """

    task: str
    records: int
    sent: int
    refused: int
    text: str


class Zombie:
    """A task that stands still.

    Args:
        task: that will be replaced.
        records: what it has in hand.
        out: takes them.
    """

    def __init__(self, task: Task, records: Records, out: Output) -> None:
        self._task, self._records, self._out = task, records, out

    def wake(self) -> Woken:
        """Process the records in hand, send what comes of them, and report."""
        task, records = self._task, len(self._records)
        who = f"{task.name} woke up after it was replaced, with {records:,} records in hand"
        if isinstance(task, TransactionalOperatorTask | TransactionalSourceTask):
            refused = _write(task)
            told = "its write was refused: another task owns its sequencer" if refused else "its write was accepted"
            return Woken(task.name, records, 0, refused, f"{who}: {told}")
        sent, failed = self._send()
        task.host.report(Finished(task.name))
        told = f"it sent {sent:,} records on channels that nobody reads, and its report was dropped"
        return Woken(task.name, records, sent, 0, f"{who}: {told}{failed and f' ({failed})'}")

    def _send(self) -> tuple[int, str]:
        """How many records it sent, and why no more."""
        channels = [pending.channel for output in self._task.outputs for pending in output.pending]
        before = sum(channel.records_sent for channel in channels)
        failed = ""
        try:
            self._out.emit(self._records)
            for output in self._task.outputs:
                output.flush()
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001  its operators are closed, and may not process anything
            failed = sentence_of(as_error(error))
        return sum(channel.records_sent for channel in channels) - before, failed


def _write(task: TransactionalOperatorTask | TransactionalSourceTask) -> int:
    """Write its transaction: 1 if the store refuses. Strong or weak, nothing of it was sent before the pause."""
    try:
        task.transaction.write_again()
    except FencedWriteError:
        return 1
    return 0
