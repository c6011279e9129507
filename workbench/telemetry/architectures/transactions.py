"""A frame of the transactions of a job: what is durable and what is sent, by task."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.runtime.job.master import Master
from workbench.runtime.transactions.delivery import UNNUMBERED
from workbench.runtime.transactions.store import ids_in
from workbench.runtime.transactions.tasks import TransactionalTask
from workbench.runtime.transactions.transactions import Transactions


@dataclass(frozen=True, slots=True)
class TransactionFrame:
    """The transactions of one task, since it was deployed or replaced.

    Attributes:
        sequencer: the token with which it writes.
        phase: the next phase of its current transaction.
        writes: the number of its transactions.
        records: the number of records written in them.
        state_bytes: the size of its state in the store.
        held: elements that it has produced and not sent.
        unacked: elements that it has sent and that are not acknowledged.
        duplicates: elements that arrived again and were refused.
        false_duplicates: new elements for which the Bloom filter caused a needless read of the store.
        resent: elements that it has sent again.
        fenced: its writes that the store has refused.
    """

    task: str
    sequencer: int
    phase: str
    writes: int
    records: int
    state_bytes: int
    held: int
    unacked: int
    duplicates: int
    false_duplicates: int
    resent: int
    fenced: int


@dataclass(frozen=True, slots=True)
class TransactionsFrame:
    """The transactions of a job.

    Attributes:
        coalesce: the maximum number of records in a transaction.
        strong: whether productions are durable before they are sent.
        store: to which they are written: ``memory``, or a URL without secrets.
        records, writes, round_trips, duplicates, false_duplicates, resent, fenced, written_bytes: sums over all tasks,
            including tasks that were replaced.
        tasks: a frame for each task.
    """

    coalesce: int
    strong: bool
    store: str
    records: int
    writes: int
    round_trips: int
    duplicates: int
    false_duplicates: int
    resent: int
    fenced: int
    tasks: tuple[TransactionFrame, ...]
    written_bytes: int = 0


def transactions_frame(master: Master) -> TransactionsFrame | None:
    """A frame of the transactions; None if there are none."""
    parts, knobs = master.services.parts, master.settings.policy.transactions
    if not isinstance(parts, Transactions) or knobs is None:
        return None
    execution = master.execution
    tasks = () if execution is None else execution.tasks
    totals = parts.totals(tasks)
    return TransactionsFrame(
        coalesce=knobs.coalesce,
        strong=knobs.strong,
        store=knobs.place,
        records=totals.records,
        writes=totals.writes,
        round_trips=totals.round_trips,
        duplicates=totals.duplicates,
        false_duplicates=totals.false_positives,
        resent=totals.resent,
        fenced=totals.fenced,
        tasks=tuple(_frame(task) for task in tasks if isinstance(task, TransactionalTask)),
        written_bytes=totals.written_bytes,
    )


def _frame(task: TransactionalTask) -> TransactionFrame:
    transaction = task.transaction
    outbound = transaction.outbound
    return TransactionFrame(
        task=task.name,
        sequencer=transaction.token,
        phase=transaction.phase.value,
        writes=transaction.writes,
        records=transaction.written,
        state_bytes=transaction.state_bytes,
        held=sum(ids_in(element) for each in outbound for first, element in tuple(each.staged) if first != UNNUMBERED),
        unacked=sum(each.queued_unacked for each in outbound),
        duplicates=transaction.ids.duplicates,
        false_duplicates=transaction.ids.false_positives,
        resent=sum(each.resent for each in outbound),
        fenced=transaction.fenced,
    )
