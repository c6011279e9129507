"""Messages as columns, which are copied so that the client's objects can be released."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.connectors.kafka.places import Partition

_NO_TIMESTAMP = 0  # the timestamp type of messages without a timestamp
_RUN_BYTES_MAX = 64 << 20


@dataclass(slots=True)
class Run:
    """Consecutive messages of one partition; some offsets have no message.

    Attributes:
        partition: the partition.
        offsets: the offsets, ascending.
        keys: the keys; empty if no column holds them.
        timestamps_ms: milliseconds since 1970; empty if no column holds them.
    """

    partition: Partition
    values: Sequence[bytes]
    offsets: Sequence[int]
    keys: Sequence[bytes | None] = field(default=())
    timestamps_ms: Sequence[int | None] = field(default=())

    def __len__(self) -> int:
        return len(self.values)

    def part(self, begin: int, end: int) -> Run:
        """A slice of the messages.

        Example:
            >>> Run(Partition("orders", 0), [b"a", b"b", b"c"], range(7, 10)).part(1, 2)
            Run(partition=Partition(topic='orders', number=0), values=[b'b'], offsets=range(8, 9), keys=(), \
timestamps_ms=())
        """
        if begin == 0 and end >= len(self):
            return self
        wanted = slice(begin, end)
        columns = (self.values, self.offsets, self.keys, self.timestamps_ms)
        return Run(self.partition, *(column[wanted] for column in columns))  # type: ignore[arg-type]

    def followed_by(self, other: Run) -> Run:
        """Append later messages of the partition.

        Example:
            >>> one, two = (Run(Partition("orders", 0), [b"a"], range(at, at + 1)) for at in (7, 9))
            >>> one.followed_by(two).offsets
            [7, 9]
        """
        if not len(self) or not len(other):
            return self if len(self) else other
        return Run(
            self.partition,
            [*self.values, *other.values],
            [*self.offsets, *other.offsets],
            [*self.keys, *other.keys],
            [*self.timestamps_ms, *other.timestamps_ms],
        )

    def fitting(self, count: int) -> int:
        """The number of messages to decode together: at most `count`, and no more bytes than a text column can hold."""
        taken = min(count, len(self))
        if taken * len(self.values[0]) < _RUN_BYTES_MAX:  # the client fetches at most this much, unless messages
            return taken  # differ greatly
        size = 0
        for at in range(taken):
            size += len(self.values[at])
            if size > _RUN_BYTES_MAX:
                return max(at, 1)
        return taken


def runs_of(messages: Sequence[Any], topics: Sequence[str], parts: Collection[str], tombstone: bytes) -> Iterator[Run]:
    """Convert the client's messages, which arrive in runs per partition.

    Args:
        messages: messages without errors.
        topics: their topics.
        parts: the parts to keep, ``key`` or ``timestamp``.
        tombstone: the value for messages without a value.
    """
    if not messages:
        return
    kind = type(messages[0])
    for begin, end in pairwise(_bounds(messages, topics)):
        run = messages[begin:end]
        first, last = run[0], run[-1]
        offsets: Sequence[int] = range(first.offset(), last.offset() + 1)
        values = list(map(kind.value, run))
        if not all(values):
            values = [tombstone if value is None else value for value in values]
        stamps = map(kind.timestamp, run) if "timestamp" in parts else ()
        yield Run(
            Partition(first.topic(), first.partition()),
            values,
            offsets if len(offsets) == len(run) else list(map(kind.offset, run)),
            list(map(kind.key, run)) if "key" in parts else (),
            [ms if how != _NO_TIMESTAMP else None for how, ms in stamps],
        )


def _bounds(messages: Sequence[Any], topics: Sequence[str]) -> list[int]:
    """The indices at which the partition changes, including both ends."""
    kind, count = type(messages[0]), len(messages)
    numbers = np.fromiter(map(kind.partition, messages), np.int64, count)
    if len(topics) > 1:
        index = {topic: at << 32 for at, topic in enumerate(topics)}
        numbers += np.fromiter(map(index.__getitem__, map(kind.topic, messages)), np.int64, count)
    return [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), count]
