"""A task that stood still, was replaced, and wakes up: it continues as if it had never stopped.

A paused process, a machine behind a broken network: the job cannot tell them from a dead one, and replaces their tasks.
When such a task continues, it sends, reports and writes. What it does must have no effect.
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
from workbench.runtime.transactions.tasks import TransactionalTask


@dataclass(slots=True)
class Woken:
    """What a task did when it woke up.

    Attributes:
        task: its name.
        records: that it still had to process.
        sent: records and messages that it sent on channels of its attempt.
        refused: its writes that the store refused; None: it wrote none.
        failed: why it sent no more; empty where it sent everything.
        arrived: how many of the records arrived, once that is known.
    """

    task: str
    records: int
    sent: int = 0
    refused: int | None = None
    failed: str = ""
    arrived: int = 0

    @property
    def in_vain(self) -> int:
        """What it tried without effect: records that did not arrive, and refused writes."""
        return self.sent - self.arrived + (self.refused or 0)


class Zombie:
    """A task that stands still.

    Args:
        task: that will be replaced.
        records: what it has in hand.
        out: takes them.
    """

    def __init__(self, task: Task, records: Records, out: Output) -> None:
        self._task, self._records, self._out = task, records, out
        self._channels = [pending.channel for output in task.outputs for pending in output.pending]
        self._arrived = self._dropped = 0

    def wake(self) -> Woken:
        """Process the records in hand, and send what comes of them and a report, or write it."""
        task, records = self._task, len(self._records)
        if isinstance(task, TransactionalTask):
            return Woken(task.name, records, refused=_write(task))
        self._arrived, self._dropped = self._arrivals(), task.host.dropped
        sent, failed = self._send()
        task.host.report(Finished(task.name))
        return Woken(task.name, records, sent, failed=failed)

    def told(self, woken: Woken) -> str:
        """What came of it, as one sentence; on the master's turn behind `wake`, where its report has arrived.

        Args:
            woken: what it did; learns how much arrived.
        """
        who = f"{woken.task} woke up after it was replaced, with {woken.records:,} records in hand"
        if woken.refused is not None:
            fate = "refused: another task owns its sequencer" if woken.refused else "accepted"
            return f"{who}: its write was {fate}"
        woken.arrived = self._arrivals() - self._arrived
        report = "dropped" if self._task.host.dropped > self._dropped else "accepted"
        why = woken.failed and f" ({woken.failed})"
        return (
            f"{who}: {woken.arrived:,} of the {woken.sent:,} records that it sent arrived, its report was {report}{why}"
        )

    def _arrivals(self) -> int:
        return sum(channel.records_received for channel in self._channels)

    def _send(self) -> tuple[int, str]:
        """How many records it sent, and why no more."""
        before = sum(channel.records_sent for channel in self._channels)
        failed = ""
        try:
            self._out.emit(self._records)
            for output in self._task.outputs:
                output.flush()
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001  its operators are closed, and may not process anything
            failed = sentence_of(as_error(error))
        return sum(channel.records_sent for channel in self._channels) - before, failed


def _write(task: TransactionalTask) -> int:
    """Write its transaction: 1 if the store refuses. Strong or weak, nothing of it was sent before the pause."""
    try:
        task.transaction.write_again()
    except FencedWriteError:
        return 1
    return 0
