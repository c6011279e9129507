"""A Kafka cluster: its clients, and what their errors mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workbench.arguments import as_given, text_of
from workbench.connectors.contract.secrets import hidden, revealed
from workbench.connectors.kafka.places import Partition
from workbench.errors import SettingError, SinkError, SourceError
from workbench.packages import needed
from workbench.raised import one_line
from workbench.redaction import redacted

Failed = TypeVar("Failed", SourceError, SinkError)
ANSWER_S = 2.0
"""How long a call may take: a slot's thread waits for it."""
_OWN = ("bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "group.id")
_FACT_MAX = 300


@dataclass(frozen=True)
class KafkaCluster:
    """A cluster.

    Attributes:
        servers: ``host:port``, several separated by commas.
        options: of librdkafka, such as ``{"security.protocol": "SASL_SSL", "sasl.password": "${KAFKA_PASSWORD}"}``;
            ``${NAME}`` is an environment variable.

    Raises:
        SettingError: no servers, or an option that is not text, or that the connector sets itself.
        MissingPackageError: the package confluent-kafka is not installed.

    Example:
        >>> str(KafkaCluster("localhost:9092", {}))
        'localhost:9092'
    """

    servers: str
    options: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        if not text_of(self.servers, "servers", "localhost:9092"):
            raise SettingError("servers is '': write host:port, several separated by commas")
        for name, value in self.options.items():
            if name in _OWN:
                raise SettingError(f"the Kafka option {name!r} is set by the connector: leave it out")
            if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
                raise SettingError(
                    f"the Kafka option {as_given(name)} has no text as its value: write text or a number"
                )
        kafka_package()

    def __str__(self) -> str:
        return redacted(self.servers)

    def consumer(self, on_error: Callable[[Any], None], **options: Any) -> Any:
        """A consumer that assigns partitions by itself and commits nothing by itself.

        Args:
            on_error: called with errors of connections, in calls of the consumer.
            options: of librdkafka, with ``_`` for ``.``.

        Raises:
            SettingError: librdkafka refuses an option.
        """
        own = {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
        return self._client("Consumer", {**own, **_dotted(options)}, on_error)

    def producer(self, on_error: Callable[[Any], None], **options: Any) -> Any:
        """A producer.

        Args:
            on_error: as for `consumer`.
            options: of librdkafka, with ``_`` for ``.``.

        Raises:
            SettingError: librdkafka refuses an option.
        """
        return self._client("Producer", _dotted(options), on_error)

    def _client(self, kind: str, options: Mapping[str, Any], on_error: Callable[[Any], None]) -> Any:
        given = {name: revealed(value) if isinstance(value, str) else value for name, value in self.options.items()}
        quiet = {
            "log_level": 0,
            "socket.nagle.disable": True,
            "reconnect.backoff.ms": 100,
            "reconnect.backoff.max.ms": 2_000,
        }
        servers = {"bootstrap.servers": revealed(self.servers), "error_cb": on_error}
        package = kafka_package()
        try:
            return getattr(package, kind)({**quiet, **given, **options, **servers})
        except package.KafkaException as error:
            fact = hidden(one_line(error.args[0].str(), _FACT_MAX), *self._templates())
            raise SettingError(f"Kafka's client cannot be used with these options: {fact}") from None

    def may_return(self, error: Any) -> bool:
        """Whether an error of the client says that the cluster is away or busy, so that a later call may succeed."""
        kinds = kafka_package().KafkaError
        away = (
            *(kinds._TRANSPORT, kinds._ALL_BROKERS_DOWN, kinds._TIMED_OUT, kinds._MSG_TIMED_OUT, kinds._WAIT_COORD),
            *(kinds._RESOLVE, kinds._TIMED_OUT_QUEUE, kinds.NOT_ENOUGH_REPLICAS, kinds.REQUEST_TIMED_OUT),
            *(kinds.LEADER_NOT_AVAILABLE, kinds.NOT_LEADER_FOR_PARTITION, kinds.COORDINATOR_NOT_AVAILABLE),
        )
        return error.code() in away or bool(error.retriable())

    def error(self, error: Any, what: str, kind: type[Failed]) -> Failed:
        """The error for the user.

        Args:
            error: of the client.
            what: the action that failed, such as ``read orders``.
            kind: its class.
        """
        kinds = kafka_package().KafkaError
        fact = self.fact(error)
        code = error.code()
        if code in (kinds._AUTHENTICATION, kinds.SASL_AUTHENTICATION_FAILED, kinds.ILLEGAL_SASL_STATE):
            return kind(f"{self} refuses the login ({fact}): check the user and the password in options")
        if code in (kinds.TOPIC_AUTHORIZATION_FAILED, kinds.GROUP_AUTHORIZATION_FAILED):
            return kind(f"cannot {what} at {self}: {fact}; the user lacks a permission (an ACL)")
        if code == kinds.MSG_SIZE_TOO_LARGE:
            return kind(f"cannot {what} at {self}: {fact}; raise message.max.bytes of the topic and in options")
        if code in (kinds._MSG_TIMED_OUT, kinds.KAFKA_STORAGE_ERROR):
            return kind(f"{self} has not stored messages in time ({fact}): start the broker, or make room on its disk")
        if self.may_return(error):
            return kind(f"no connection to {self}: {fact}; start the broker, or check host and port")
        return kind(f"cannot {what} at {self}: {fact}")

    def outage(self, error: Any) -> str:
        """What is wrong with a cluster that may return, for displays."""
        kinds = kafka_package().KafkaError
        silent = error.code() in (kinds._TRANSPORT, kinds._ALL_BROKERS_DOWN, kinds._TIMED_OUT)
        return f"{self} does not answer ({self.fact(error)})" if silent else self.fact(error)

    def fact(self, error: Any) -> str:
        """What an error of the client says, on one line and without secrets."""
        return hidden(one_line(error.str(), _FACT_MAX), *self._templates())

    def _templates(self) -> list[str]:
        return [self.servers, *(value for value in self.options.values() if isinstance(value, str))]


def kafka_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options that a user gave.

    Raises:
        SettingError: not a dictionary.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise SettingError(f"options is {as_given(options)}: write a dictionary, such as {{'client.id': 'flights'}}")
    return dict(options)


def kafka_error(error: BaseException) -> Any:
    """The error of the client that an exception of it carries."""
    return error.args[0]


def exceptions() -> type[Exception]:
    """The base class of what a client raises."""
    base: type[Exception] = kafka_package().KafkaException
    return base


def place_of(partition: Partition, offset: int | None = None) -> Any:
    """A partition, with or without an offset, as the client names it."""
    at = () if offset is None else (offset,)
    return kafka_package().TopicPartition(partition.topic, partition.number, *at)


def kafka_package() -> Any:
    """The package.

    Raises:
        MissingPackageError: it is not installed.
    """
    return needed("confluent_kafka", "Kafka")


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}
