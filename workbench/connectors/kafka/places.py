"""Positions in topics: partitions, their offsets, and where reading starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zlib import crc32

from workbench.arguments import as_given, whole_number
from workbench.durations import parse_instant
from workbench.errors import SettingError

Start = str | datetime | Mapping[str, int]
Named = Literal["earliest", "latest"]


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A partition of a topic.

    Example:
        >>> str(Partition("orders", 3)), Partition.named("orders/3")
        ('orders/3', Partition(topic='orders', number=3))
    """

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"

    @classmethod
    def named(cls, text: str) -> Partition:
        """Parse the name of a partition.

        Raises:
            ValueError: it is not the name of a partition.
        """
        topic, _, number = text.rpartition("/")
        if not topic or not number.isdecimal():
            raise ValueError(f"{text[:60]!r} is not a partition, such as 'orders/0'")
        return cls(topic, int(number))

    def belongs_to(self, subtask: int, parallelism: int) -> bool:
        """Whether this subtask reads it. The partitions of a topic are distributed evenly, and topics start at
        different subtasks."""
        return (crc32(self.topic.encode()) + self.number) % parallelism == subtask


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where to start without a checkpoint.

    Attributes:
        named: ``earliest`` or ``latest``, or None.
        since_ms: the time of the first message to read, in milliseconds since 1970, or None.
        offsets: the offset of each partition; other partitions start at their first message.
    """

    named: Named | None = None
    since_ms: int | None = None
    offsets: Mapping[Partition, int] | None = None

    @classmethod
    def of(cls, start: object) -> Beginning:
        """Parse a user's ``start``.

        Raises:
            SettingError: it is not valid.

        Example:
            >>> Beginning.of("latest"), Beginning.of("1970-01-01T00:00:01Z").since_ms
            (Beginning(named='latest', since_ms=None, offsets=None), 1000)
        """
        fix = "write 'earliest', 'latest', a time such as '2026-03-29T01:30:00Z', or offsets such as {'orders/0': 17}"
        if start == "earliest":
            return cls("earliest")
        if start == "latest":
            return cls("latest")
        if isinstance(start, Mapping):
            try:
                named = {Partition.named(name): whole_number(at, "an offset", 0) for name, at in start.items()}
            except (ValueError, AttributeError) as error:
                raise SettingError(f"start is {as_given(dict(start))} ({error}): {fix}") from None
            return cls(offsets=named)
        if not isinstance(start, str | datetime):
            raise SettingError(f"start is {as_given(start)}: {fix}")
        try:
            return cls(since_ms=parse_instant(start, "start") // 1_000)
        except SettingError as error:
            raise SettingError(f"{error}; or {fix}") from None
