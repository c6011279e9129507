"""The transactions of a sink's subtasks: their IDs, and how those that a killed subtask left open are ended.

The client can neither list transactions nor abort another producer's. What it can do is to take over a transactional
ID: the brokers then abort what the ID's former producer left open, and fence that producer. Source: KIP-98.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.kafka.cluster import KafkaCluster, exceptions, kafka_error, kafka_package
from workbench.errors import SinkError

_AT_ONCE = 16
"""How many IDs are taken over at the same time; each has a client with threads of its own."""
_TURN_S = 0.02
_ANSWER_TURNS = 100


def transactional_id(writer: str, subtask: int) -> str:
    """The transactional ID of a subtask.

    Example:
        >>> transactional_id("delays/sink", 3)
        'workbench delays/sink 3'
    """
    return f"workbench {writer} {subtask}"


def end_transactions(cluster: KafkaCluster, ids: Sequence[str], attempts: Attempts) -> None:
    """Take over transactional IDs, several at the same time, and drop their producers at once.

    Args:
        cluster: the cluster.
        ids: the transactional IDs.
        attempts: while the brokers are unreachable, or an ID's transaction is being ended.

    Raises:
        SinkError: names the ID that cannot be taken over.
    """
    for at in range(0, len(ids), _AT_ONCE):
        waiting = {each: _producer(cluster, each) for each in ids[at : at + _AT_ONCE]}
        turns = 0
        while waiting:
            for each in list(waiting):
                if (fault := _taken_over(waiting[each])) is None:
                    del waiting[each]
                    attempts.succeeded()
                elif not fault.retriable():
                    raise _refused(cluster, each, fault)
            turns += 1
            if waiting and not turns % _ANSWER_TURNS and not attempts.again(cluster.outage(fault)):
                raise _refused(cluster, next(iter(waiting)), fault)


def _producer(cluster: KafkaCluster, transaction: str) -> Any:
    return cluster.producer(lambda error: None, transactional_id=transaction)


def _taken_over(producer: Any) -> Any:
    """Wait a moment; returns the error, or None if it is done. A later call continues the same attempt."""
    try:
        producer.init_transactions(_TURN_S)
    except exceptions() as error:
        return kafka_error(error)
    return None


def _refused(cluster: KafkaCluster, transaction: str, fault: Any) -> SinkError:
    kinds = kafka_package().KafkaError
    if fault.code() in (kinds._TIMED_OUT, kinds.CONCURRENT_TRANSACTIONS):
        return SinkError(
            f"the transaction {transaction!r}, which a former run left open, could not be ended at {cluster} "
            f"({cluster.fact(fault)}): check that its brokers answer, and start the job again"
        )
    return cluster.error(fault, f"end the transaction {transaction!r}, which a former run left open,", SinkError)
