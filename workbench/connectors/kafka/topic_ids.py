"""Notices that a topic was deleted, or created again, by the ID that its brokers give it.

Source: KIP-516, which gives each topic an ID of its own, so that a client does not take a new topic for a former one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.connectors.kafka.cluster import ANSWER_S, KafkaCluster, exceptions, kafka_error, kafka_package
from workbench.errors import SourceError
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.pieces import value_in

_LOOK_US = 5_000_000
"""How often to ask for the IDs while messages are read."""
_AGAIN_US = 1_000_000
"""When to ask again for a topic that is not found: a broker that has just started may not know it yet."""
_NONE = (0, 0)


class TopicIds:
    """The IDs of a source's topics.

    Args:
        cluster: the cluster of the topics.
        topics: their names.

    Attributes:
        known: the ID of each topic whose messages were read; brokers before Kafka 2.8 give none.
    """

    def __init__(self, cluster: KafkaCluster, topics: tuple[str, ...]) -> None:
        self._cluster = cluster
        self._topics = topics
        self._admin: Any = None
        self._asked: Mapping[str, Any] = {}
        self._due_us = 0
        self._found: set[str] = set()
        self._missed: set[str] = set()
        self.known: dict[str, str] = {}

    def restore(self, snapshot: Snapshot) -> None:
        """Take the IDs in a snapshot; earlier versions saved none."""
        if "topics" in snapshot:
            ids = value_in(snapshot, "topics", dict[str, str])
            self.known |= {topic: each for topic, each in ids.items() if topic in self._topics}

    def locate(self, now_us: int) -> None:
        """Compare the IDs with the known ones, and note those of other topics.

        Raises:
            SourceError: a topic has another ID than before.
            KafkaException: the brokers do not answer, and the ID of a topic is known.
        """
        self._ask()
        self._take(now_us)

    def look(self, now_us: int) -> None:
        """Compare the IDs again from time to time, without waiting for the answer.

        Raises:
            SourceError: a topic has another ID than before, or no longer exists.
        """
        if now_us < self._due_us:
            return
        if not self._asked:
            self._ask()
        elif all(answer.done() for answer in self._asked.values()):
            try:
                self._take(now_us)
            except exceptions():  # reading itself reports that the brokers are away
                self._due_us = now_us + _LOOK_US

    def close(self) -> None:
        """Close the connections."""
        self._admin, self._asked = None, {}

    def _ask(self) -> None:
        if self._admin is None:
            self._admin = self._cluster.admin()
        topics = kafka_package().TopicCollection(list(self._topics))
        self._asked = self._admin.describe_topics(topics, request_timeout=ANSWER_S)

    def _take(self, now_us: int) -> None:
        asked, self._asked = self._asked, {}
        self._due_us = now_us + _LOOK_US
        for topic, answer in asked.items():
            try:
                told = answer.result(ANSWER_S + 1).topic_id
            except exceptions() as error:
                fault = kafka_error(error)
                if topic in self.known and self._cluster.may_return(fault):
                    raise
                if topic in self._found and fault.code() == kafka_package().KafkaError.UNKNOWN_TOPIC_OR_PART:
                    self._miss(topic)
                    self._due_us = now_us + _AGAIN_US
                continue  # there is nothing to compare; the reader itself reports that brokers are away
            self._found.add(topic)
            self._missed.discard(topic)
            self._compare(topic, told)

    def _miss(self, topic: str) -> None:
        if topic in self._missed:
            raise SourceError(
                f"the topic {topic!r} of {self._cluster} was deleted while it was read, so its messages are lost: "
                "create it again, and start without the checkpoint, or remove it from topics"
            )
        self._missed.add(topic)

    def _compare(self, topic: str, told: Any) -> None:
        if told is None or (told.get_most_significant_bits(), told.get_least_significant_bits()) == _NONE:
            return
        new, former = str(told), self.known.setdefault(topic, str(told))
        if new != former:
            raise SourceError(
                f"the topic {topic!r} of {self._cluster} was deleted and created again since it was read: its ID is "
                f"{new}, and was {former}, so the positions count messages that no longer exist; start without the "
                "checkpoint, which reads the new topic from its beginning"
            )
