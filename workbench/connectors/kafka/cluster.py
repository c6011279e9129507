"""A Kafka cluster: its clients, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from workbench.arguments import as_given, text_of
from workbench.connectors.contract.secrets import hidden_options, revealed
from workbench.connectors.kafka.places import Partition
from workbench.errors import SettingError, SinkError, SourceError
from workbench.packages import needed
from workbench.raised import one_line
from workbench.redaction import HIDDEN, redacted

Failed = TypeVar("Failed", SourceError, SinkError)
ANSWER_S = 2.0
"""The maximum time of a call, which blocks a slot's thread."""
_OWN = ("bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "group.id")
_FACT_MAX = 300


@dataclass(frozen=True)
class KafkaCluster:
    """A cluster.

    Attributes:
        servers: ``host:port``, several separated by commas.
        options: options of librdkafka, such as ``{"security.protocol": "SASL_SSL", "sasl.password":
            "${KAFKA_PASSWORD}"}``; ``${NAME}`` is an environment variable.

    Raises:
        SettingError: there are no servers, or an option is not text or is set by the connector.
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
        if "@" in self.servers:
            shown = HIDDEN + self.servers[self.servers.rindex("@") :]
            raise SettingError(
                f"servers is {shown!r}: write host:port, and the user and the password as sasl.username and "
                "sasl.password in options"
            )
        for name, value in self.options.items():
            if name in _OWN:
                raise SettingError(f"the Kafka option {name!r} is set by the connector: remove it")
            if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
                raise SettingError(f"the Kafka option {as_given(name)} has an invalid value: write text or a number")
        kafka_package()

    def __str__(self) -> str:
        return redacted(self.servers)

    def consumer(self, on_error: Callable[[Any], None], **options: Any) -> Any:
        """Create a consumer with manual assignment of partitions and without automatic commits.

        Args:
            on_error: called with connection errors, during calls of the consumer.
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
        on_statistics = {"stats_cb": options.pop("stats_cb")} if "stats_cb" in options else {}
        return self._client("Consumer", {**own, **_dotted(options), **on_statistics}, on_error)

    def producer(self, on_error: Callable[[Any], None], **options: Any) -> Any:
        """Create a producer.

        Args:
            on_error: as for `consumer`.
            options: options of librdkafka, with ``_`` for ``.``.

        Raises:
            SettingError: librdkafka refuses an option.
        """
        return self._client("Producer", _dotted(options), on_error)

    def admin(self) -> Any:
        """Create a client that describes topics.

        Raises:
            SettingError: librdkafka refuses an option.
        """
        return self._client("admin.AdminClient", {}, lambda error: None)

    def _client(self, kind: str, options: Mapping[str, Any], on_error: Callable[[Any], None]) -> Any:
        given = {name: revealed(value) if isinstance(value, str) else value for name, value in self.options.items()}
        quiet = {
            "log_level": 0,
            "socket.nagle.disable": True,
            "reconnect.backoff.ms": 100,
            "reconnect.backoff.max.ms": 2_000,
            "socket.timeout.ms": 10_000,
        }
        servers = {"bootstrap.servers": revealed(self.servers), "error_cb": on_error}
        package = kafka_package()
        try:
            return attrgetter(kind)(package)({**quiet, **given, **options, **servers})
        except package.KafkaException as error:
            fact = hidden_options(one_line(error.args[0].str(), _FACT_MAX), self.options)
            raise SettingError(f"Kafka's client cannot be used with these options: {fact}") from None

    def partitions(self, client: Any, topic: str, kind: type[Failed]) -> list[int]:
        """The numbers of a topic's partitions.

        Args:
            client: a client of the cluster.
            topic: the name of the topic.
            kind: the class of the error if there is no such topic.

        Raises:
            SourceError, SinkError: there is none.
            KafkaException: the brokers do not answer.
        """
        told = client.list_topics(topic, timeout=ANSWER_S).topics[topic]
        if told.error is None:
            return sorted(told.partitions)
        if told.error.code() == kafka_package().KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise kind(f"there is no topic {topic!r} at {self}: check its name, or create it first")
        raise exceptions()(told.error)

    def cause(self, error: Any, noted: Sequence[Any]) -> Any:
        """The error that says most about why a call failed: the call itself only says that no broker answers.

        Args:
            error: of the call.
            noted: the connection errors that the client reported meanwhile.
        """
        if not self.may_return(error):
            return error
        kinds = kafka_package().KafkaError
        refusals = [each for each in noted if self.refuses(each)]
        unmet = [each for each in noted if each.code() in (kinds._RESOLVE, kinds._SSL)]
        return (refusals or unmet or [error])[0]

    def refuses(self, error: Any) -> bool:
        """Whether a client's connection error is final: a refused login, or a certificate that is not valid."""
        kinds = kafka_package().KafkaError
        return error.fatal() or error.code() == kinds._AUTHENTICATION or _is_certificate(error)

    def may_return(self, error: Any) -> bool:
        """Whether a client's error means that the cluster is unreachable or busy, so that a later call can succeed."""
        kinds = kafka_package().KafkaError
        away = (
            *(
                kinds._TRANSPORT,
                kinds._ALL_BROKERS_DOWN,
                kinds._TIMED_OUT,
                kinds._MSG_TIMED_OUT,
                kinds._WAIT_COORD,
                kinds._DESTROY,
                getattr(kinds, "_DESTROY_BROKER", kinds._DESTROY),  # earlier versions of the client do not have it
            ),
            *(kinds._RESOLVE, kinds._TIMED_OUT_QUEUE, kinds.NOT_ENOUGH_REPLICAS, kinds.REQUEST_TIMED_OUT),
            *(kinds.LEADER_NOT_AVAILABLE, kinds.NOT_LEADER_FOR_PARTITION, kinds.COORDINATOR_NOT_AVAILABLE),
            kinds._UNKNOWN_PARTITION,  # a client that has just connected, or replaces a connection, knows none yet
        )
        return error.code() in away or bool(error.retriable())

    def error(self, error: Any, what: str, kind: type[Failed]) -> Failed:
        """Convert an error for the user.

        Args:
            error: the client's error.
            what: the action that failed, such as ``read orders``.
            kind: the class of the result.
        """
        kinds = kafka_package().KafkaError
        fact = self.fact(error)
        code = error.code()
        if code in (kinds._AUTHENTICATION, kinds.SASL_AUTHENTICATION_FAILED, kinds.ILLEGAL_SASL_STATE):
            return kind(f"{self} refuses the login ({fact}): check the user and the password in options")
        if _is_certificate(error):
            reason = fact.partition(", verify that")[0]
            return kind(
                f"the certificate of {self} is not valid ({reason}): it must name this host, not have expired, and be "
                "signed by an authority of ssl.ca.location in options"
            )
        if code in (kinds.TOPIC_AUTHORIZATION_FAILED, kinds.GROUP_AUTHORIZATION_FAILED):
            return kind(f"cannot {what} at {self}: {fact}; grant the user this permission (an ACL)")
        if code == kinds.MSG_SIZE_TOO_LARGE:
            return kind(f"cannot {what} at {self}: {fact}; raise message.max.bytes of the topic and in options")
        if code in (kinds._MSG_TIMED_OUT, kinds.KAFKA_STORAGE_ERROR):
            return kind(f"{self} did not store messages in time ({fact}): start the broker, or free space on its disk")
        if self.may_return(error) and code != kinds._UNKNOWN_PARTITION:
            return kind(f"no connection to {self}: {fact}; start the broker, or check host and port")
        return kind(f"cannot {what} at {self}: {fact}")

    def outage(self, error: Any) -> str:
        """The reason why a cluster is temporarily unreachable, for displays."""
        kinds = kafka_package().KafkaError
        if error.code() == kinds._RESOLVE:
            return f"the host is unknown ({self.fact(error)}): check its name"
        silent = error.code() in (kinds._TRANSPORT, kinds._ALL_BROKERS_DOWN, kinds._TIMED_OUT)
        return f"it does not answer ({self.fact(error)})" if silent else self.fact(error)

    def fact(self, error: Any) -> str:
        """The text of a client's error, on one line and without secrets."""
        return hidden_options(one_line(error.str(), _FACT_MAX), {"servers": self.servers, **self.options})


def kafka_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Check the options of a user.

    Raises:
        SettingError: not a dictionary.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise SettingError(f"options is {as_given(options)}: write a dictionary, such as {{'client.id': 'flights'}}")
    return dict(options)


def kafka_error(error: BaseException) -> Any:
    """The client's error in an exception."""
    return error.args[0]


def exceptions() -> type[Exception]:
    """The base class of a client's exceptions."""
    base: type[Exception] = kafka_package().KafkaException
    return base


def place_of(partition: Partition, offset: int | None = None) -> Any:
    """A partition, with or without an offset, in the client's form."""
    at = () if offset is None else (offset,)
    return kafka_package().TopicPartition(partition.topic, partition.number, *at)


def kafka_package() -> Any:
    """The package.

    Raises:
        MissingPackageError: it is not installed.
    """
    needed("confluent_kafka.admin", "Kafka")
    return needed("confluent_kafka", "Kafka")


def _is_certificate(error: Any) -> bool:
    return error.code() == kafka_package().KafkaError._SSL and "certificate" in error.str()


def _dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}
