"""When the brokers were last heard of, from the client's statistics: an end that a broker has reported is as old.

Source: librdkafka, statistics (``statistics.interval.ms``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.connectors.kafka.places import Partition
from workbench.from_json import made, parsed

INTERVAL_MS = 2_000


@dataclass(frozen=True, slots=True)
class _Broker:
    nodeid: int = -1
    rxidle: int = -1


@dataclass(frozen=True, slots=True)
class _Share:
    broker: int = -1
    leader: int = -1


@dataclass(frozen=True, slots=True)
class _Topic:
    partitions: dict[str, _Share] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Statistics:
    brokers: dict[str, _Broker] = field(default_factory=dict)
    topics: dict[str, _Topic] = field(default_factory=dict)


def contacts(text: str, now_us: int) -> dict[Partition, int]:
    """The time when the broker of each partition was last heard of; partitions without such a broker are left out.

    Args:
        text: the client's statistics.
        now_us: processing time.

    Example:
        >>> told = contacts('{"brokers": {"a:1/1": {"nodeid": 1, "rxidle": 7}}, '
        ...                 '"topics": {"t": {"partitions": {"0": {"broker": 1}, "-1": {}}}}}', 100)
        >>> {str(partition): us for partition, us in told.items()}
        {'t/0': 93}
    """
    told = made(_Statistics, parsed(text), "statistics", ignore_unknown=True)
    silent = {broker.nodeid: broker.rxidle for broker in told.brokers.values() if broker.nodeid >= 0}
    found = {}
    for topic, each in told.topics.items():
        for number, share in each.partitions.items():
            silent_us = silent.get(share.leader if share.broker < 0 else share.broker, -1)
            if int(number) >= 0 and silent_us >= 0:
                found[Partition(topic, int(number))] = now_us - silent_us
    return found
