"""Steps with transactions: what is durable, what is sent, and what arrived twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from workbench.drivers.contract.step import FAILED, Step, told
from workbench.drivers.stepped.narrator import Lines, Narrator
from workbench.elements import Element, Records
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task
from workbench.runtime.transactions.delivery import UNNUMBERED, Delivery
from workbench.runtime.transactions.record_ids import RecordIds
from workbench.runtime.transactions.staged_sink import StagedSink
from workbench.runtime.transactions.store import ends, ids_in
from workbench.runtime.transactions.tasks import TransactionalTask
from workbench.runtime.transactions.transaction import Phase, Transaction
from workbench.runtime.transactions.transactions import Transactions
from workbench.telemetry.stepping.words import SHOWN, plural, run

LOOKED_AT = 64
"""The number of elements at the front of a channel whose ids are noted before a step."""


@dataclass(frozen=True, slots=True)
class _Before:
    """A task before its turn."""

    phase: Phase
    writes: int
    fenced: int
    ids: RecordIds
    duplicates: int
    false_positives: int
    taken: int
    queued: dict[str, list[tuple[int, int]]]
    lengths: dict[str, int]
    next_ids: dict[str, int]
    resent: int


class TransactionsNarrator(Narrator):
    """Describes the phases of each transaction, and how record ids identify duplicates."""

    def __init__(self) -> None:
        self._before: _Before | None = None
        self._tokens: dict[str, int] = {}
        self._deliveries: dict[str, Delivery] = {}

    # what happened -----------------------------------------------------------------------------------------------

    def look(self, master: Master, execution: Execution | None, task: Task | None) -> None:
        parts = master.services.parts
        self._deliveries = parts.deliveries if isinstance(parts, Transactions) else {}
        transaction = _transaction(task)
        if transaction is None:
            self._before = None
            return
        inbound = transaction.inbound
        self._before = _Before(
            transaction.phase,
            transaction.writes,
            transaction.fenced,
            transaction.ids,
            transaction.ids.duplicates,
            transaction.ids.false_positives,
            len(transaction.taken),
            {each.key: list(islice(_queued(each), LOOKED_AT)) for each in inbound},
            {each.key: len(each.numbers) for each in inbound},
            {each.key: each.next_id for each in transaction.outbound},
            sum(each.resent for each in transaction.outbound),
        )

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        before = self._before
        task = None if execution is None or before is None else execution.task(step.actor)
        transaction = _transaction(task)
        if before is None or transaction is None:
            return tuple(self._replaced(execution))
        return tuple(self._of(transaction, before, step))

    def _of(self, transaction: Transaction, before: _Before, step: Step) -> Iterator[str]:
        name = transaction.range
        again = sum(each.resent for each in transaction.outbound) - before.resent
        if again:
            what = f"{again} {plural('element', again)}"
            yield f"{name} sent {what} again, with the same ids, because no acknowledgement had arrived."
        yield from _ids_told(transaction, before)
        if transaction.fenced > before.fenced:
            yield f"The store refused the write of {name}: another sequencer owns its keys."
        if step.outcome == FAILED:
            yield _left_behind(transaction)
            return
        fresh = transaction.taken[before.taken :]
        if fresh:
            yield f"Processed, and not durable yet: {_inputs(fresh, transaction)}."
        made = [each for each in transaction.outbound if each.next_id > before.next_ids[each.key] and _staged(each)]
        if made and transaction.phase is Phase.PROCESS:
            yield f"{name} made {' and '.join(map(_made, made))}: neither durable nor sent."
        if transaction.writes > before.writes:
            yield f"{name} made one atomic write. {_written(transaction)}"
        elif before.phase is Phase.ACKNOWLEDGE and transaction.phase is not Phase.ACKNOWLEDGE:
            yield _acknowledged(transaction)
        elif before.phase is Phase.SEND and transaction.phase is Phase.PROCESS:
            yield f"The transaction of {name} is over: " + (
                "what it sent was durable before." if step.sent else "it had nothing to send."
            )
        elif before.phase is Phase.SEND and transaction.phase is Phase.AWAIT:
            yield f"What {name} sent is not durable: its write waits until the receivers have acknowledged it (weak)."
        elif before.phase is Phase.AWAIT and transaction.phase is Phase.WRITE:
            yield f"The receivers have acknowledged everything: {name} can write."

    def _replaced(self, execution: Execution | None) -> Iterator[str]:
        """Sentences about tasks that have a new sequencer."""
        for task in () if execution is None else execution.tasks:
            transaction = _transaction(task)
            if transaction is None:
                continue
            known = self._tokens.get(task.name)
            if known not in (None, transaction.token):
                pending = [_unacknowledged(each) for each in transaction.inbound]
                comes = ", ".join(filter(None, pending))
                yield (
                    f"{task.name} was replaced, and continues from its last write as sequencer {transaction.token}; "
                    f"{f'{comes} will come again' if comes else 'nothing will come again'}."
                )
            self._tokens[task.name] = transaction.token

    # what is shown -----------------------------------------------------------------------------------------------

    def about(self, channel: Channel) -> Iterable[str]:
        delivery = next((each for each in self._deliveries.values() if each.channel is channel), None)
        if delivery is None:
            return
        for (first, _), element in zip(tuple(delivery.numbers), tuple(channel.elements), strict=False):
            if isinstance(element, Records):
                yield from (f"id {first + row}" for row in range(len(element)))

    def beside(self, task: Task) -> Lines:
        transaction = _transaction(task)
        if transaction is None:
            return ()
        lines = []
        if transaction.taken:
            held = {Phase.PROCESS: "open", Phase.ACKNOWLEDGE: "durable"}.get(transaction.phase, "open")
            lines.append((held, "; ".join(run(first, count) for _, first, count in transaction.taken[:SHOWN])))
        for delivery in transaction.outbound:
            staged = [(first, ids_in(element)) for first, element in _staged(delivery)]
            target = f" to {delivery.channel.target}" if len(transaction.outbound) > 1 else ""
            if staged and transaction.phase in (Phase.ACKNOWLEDGE, Phase.SEND):
                lines.append(("durable, not sent", _runs(staged) + target))
            elif staged:
                lines.append(("made", _runs(staged) + target))
            waiting = _sent(delivery)
            if waiting:
                lines.append(("unacked", _runs(waiting) + target))
        return (*lines, ("sequencer", str(transaction.token)))

    def facts(self, master: Master, execution: Execution | None) -> Lines:
        parts = master.services.parts
        if not isinstance(parts, Transactions):
            return ()
        totals = parts.totals(() if execution is None else execution.tasks)
        return (
            ("writes", f"{totals.writes:,}"),
            ("duplicates refused", f"{totals.duplicates:,}"),
            ("false duplicates", f"{totals.false_positives:,}"),
        )


def _transaction(task: Task | None) -> Transaction | None:
    return task.transaction if isinstance(task, TransactionalTask) else None


def _queued(delivery: Delivery) -> Iterator[tuple[int, int]]:
    """The first id and the number of ids of each element in a channel."""
    for (first, _), element in zip(delivery.numbers, delivery.channel.elements, strict=False):
        yield first, 0 if first == UNNUMBERED else ids_in(element)


def _ids_told(transaction: Transaction, before: _Before) -> Iterator[str]:
    """Sentences about what the Bloom filter and the store said about the received elements."""
    ids = transaction.ids
    if ids is not before.ids:
        return
    taken = {
        each: before.queued[each.key][: before.lengths[each.key] - len(each.numbers)] for each in transaction.inbound
    }
    came = [
        f"{run(first, count)} of {each.channel.source}"
        for each, runs in taken.items()
        for first, count in runs
        if count
    ]
    known, in_vain = ids.duplicates - before.duplicates, ids.false_positives - before.false_positives
    if known:
        yield (
            f"{known} {plural('duplicate', known)} refused among {' and '.join(came[:SHOWN])}: the Bloom filter said "
            "maybe, the store said seen; the sender gets another acknowledgement."
        )
    if in_vain:
        yield (
            f"{in_vain} false {plural('duplicate', in_vain)} among {' and '.join(came[:SHOWN])}: the Bloom filter said "
            "maybe, the store said new."
        )
    if came and not known and not in_vain:
        yield f"The Bloom filter does not know {' and '.join(came[:SHOWN])}: new."


def _inputs(taken: Sequence[tuple[str, int, int]], transaction: Transaction) -> str:
    senders = {each.key: each.channel.source for each in transaction.inbound}
    return " and ".join(f"{run(first, count)} of {senders[key]}" for key, first, count in taken[:SHOWN])


def _written(transaction: Transaction) -> str:
    """A sentence about what has become durable, and what can be sent now."""
    durable = ["the state of its operators" if transaction.inbound else "the position in its source"]
    if transaction.taken:
        durable.append(_inputs(transaction.taken, transaction))
    if any(isinstance(link.operator, StagedSink) for link in transaction.links):
        durable.append("the rows for its sink")
    text = ", ".join(durable[:-1]) + (" and " if len(durable) > 1 else "") + durable[-1]
    waits = [_made(each) for each in transaction.outbound if _staged(each)]
    return f"Durable now: {text}." + (f" Durable, not sent yet: {' and '.join(waits)}." if waits else "")


def _left_behind(transaction: Transaction) -> str:
    """A sentence about the transaction of a task that has failed."""
    staged = [each for each in transaction.outbound if _staged(each)]
    if transaction.phase in (Phase.ACKNOWLEDGE, Phase.SEND):
        if not staged:
            return "Its last transaction is durable, so nothing is lost."
        return f"Durable already: {' and '.join(map(_made, staged))}, which its successor will send."
    if transaction.taken:
        return f"Not durable, so it will be sent to the successor again: {_inputs(transaction.taken, transaction)}."
    return "All that it has acknowledged is durable, so nothing is lost."


def _staged(delivery: Delivery) -> list[tuple[int, Element]]:
    """The elements that a task has produced for a channel and not sent, with their ids."""
    return [(first, element) for first, element in delivery.staged if first != UNNUMBERED]


def _made(delivery: Delivery) -> str:
    """The staged elements of a channel, in words."""
    staged = _staged(delivery)
    if len(staged) > SHOWN:
        return f"{_runs([(first, ids_in(element)) for first, element in staged])} for {delivery.channel.target}"
    parts = " and ".join(f"{told(element)} ({run(first, ids_in(element))})" for first, element in staged)
    return f"{parts} for {delivery.channel.target}"


def _acknowledged(transaction: Transaction) -> str:
    if not transaction.inbound:
        return f"A source has no sender to acknowledge: {transaction.range} can send what is durable."
    below = [
        f"id {each.acknowledged - 1} to {each.channel.source}" for each in transaction.inbound if each.acknowledged
    ]
    return f"{transaction.range} acknowledged everything up to {' and '.join(below)}, which need not send it again."


def _sent(delivery: Delivery) -> list[tuple[int, int]]:
    """The ids that were sent and are not acknowledged, as runs."""
    return [(each.first, ids_in(each.element)) for each in delivery.unacked if ends(each) > delivery.acknowledged]


def _unacknowledged(delivery: Delivery) -> str:
    waiting = _sent(delivery)
    return f"{_runs(waiting)} of {delivery.channel.source}" if waiting else ""


def _runs(runs: Sequence[tuple[int, int]]) -> str:
    """Consecutive ids in one piece: ``id 3``, ``ids 3–5``."""
    first, (last, count) = runs[0][0], runs[-1]
    return run(first, last + count - first)
