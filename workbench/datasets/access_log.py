"""Synthetic access logs with a known order, and the rules that they follow: the input of E5.

Every entity authenticates, logs in, uses a service, and starts again. Occasionally one uses the service without having
logged in: those are the true alerts, and they follow from the numbers of the events alone. Any other alert is false:
the job has lost or repeated events, or lost the state of an entity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.clock import Clock
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, WaitUntil, counted
from workbench.elements import Int64s, Records
from workbench.errors import SettingError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.process.process_function import ProcessFunction
from workbench.operators.snapshots.pieces import positions_in
from workbench.state.descriptors import ValueState
from workbench.state.layout import State

EVENTS = ("authenticate", "login", "service")
FOLLOWS: dict[str | None, tuple[str, ...]] = {
    None: ("authenticate",),
    "authenticate": ("login",),
    "login": ("service",),
    "service": ("service", "authenticate"),
}
"""The allowed successors of each event."""

SCHEMA = pa.schema([("entity", pa.int64()), ("number", pa.int64()), ("event", pa.string())])
ALERTS = pa.schema([("entity", pa.int64()), ("number", pa.int64()), ("event", pa.string()), ("after", pa.string())])
PARTITIONS = 4


@dataclass(frozen=True)
class AccessLog(Source):
    """A log in four partitions, like those of a message queue: event i exists from ``begin_us + i / rate`` on.

    A reader that falls behind can catch up, unless the log is a *feed*: a feed stores nothing, so a reader that does
    not listen misses events.

    Attributes:
        rate: events that are created per second.
        limit: the number of events; a multiple of 4.
        begin_us: when the first event is created, in the job's time.
        entities: a multiple of 4.
        violation_every: about one login in this many is left out; 0: none.
        kept: whether it can be read again.

    Raises:
        SettingError: a number is out of range.

    Example:
        >>> log = AccessLog(rate=1000, limit=24, begin_us=0, entities=4)
        >>> log.events(1, 0, 4).to_pylist()[2]
        {'entity': 1, 'number': 2, 'event': 'service'}
    """

    rate: float
    limit: int
    begin_us: int
    entities: int = 1_000
    violation_every: int = 0
    kept: bool = True
    kind: ClassVar[str] = "access-log"
    schema: ClassVar[pa.Schema] = SCHEMA

    def __post_init__(self) -> None:
        for name, value in (("limit", self.limit), ("entities", self.entities)):
            if value < PARTITIONS or value % PARTITIONS:
                raise SettingError(f"{name} is {value}: it must be a multiple of {PARTITIONS} above zero")
        if not self.rate > 0:
            raise SettingError(f"rate is {self.rate}: it counts events per second and must be above zero")

    @property
    def resettable(self) -> bool:
        """Whether it can be read again from a position."""
        return self.kept

    @property
    def length(self) -> int:
        """Events of one partition."""
        return self.limit // PARTITIONS

    def describe(self) -> str:
        return f"{self.limit:,} events, {self.rate:,.0f} per second"

    def create(self) -> AccessLogReader:
        return AccessLogReader(self)

    def stream(self) -> Stream:
        """The events as a stream with the columns entity, number (of the entity's events, from 0) and event."""
        return Stream.from_source(self)

    def existing(self, partition: int, now_us: int) -> int:
        """The number of events of a partition that exist by now."""
        return max(0, min(self.length, self._count(partition, now_us)))

    def due_us(self, partition: int, position: int) -> int:
        """When the event at a position of a partition is created."""
        return self.begin_us + -(-(position * PARTITIONS + partition) * 1_000_000 // int(self.rate))

    def events(self, partition: int, first: int, count: int) -> pa.RecordBatch:
        """The events at the positions [first, first + count) of a partition."""
        entity, number = self._places(partition, np.arange(first, first + count))
        codes = np.where(self._violates(entity, number), 2, number % 3)
        names = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(EVENTS)).cast(pa.string())
        return pa.record_batch([pa.array(entity), pa.array(number), names], schema=SCHEMA)

    def alerts(self) -> list[tuple[int, int]]:
        """The true alerts, sorted: entity and number of the event."""
        found: list[tuple[int, int]] = []
        for partition in range(PARTITIONS):
            entity, number = self._places(partition, np.arange(self.length))
            wrong = self._violates(entity, number)
            found += zip(entity[wrong].tolist(), number[wrong].tolist(), strict=True)
        return sorted(found)

    def _count(self, partition: int, now_us: int) -> int:
        elapsed = (now_us - self.begin_us) * int(self.rate) // 1_000_000 - partition
        return elapsed // PARTITIONS + 1

    def _places(self, partition: int, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Entity and number of the events at these positions: the entities of a partition take turns."""
        own = self.entities // PARTITIONS
        return partition + PARTITIONS * (positions % own), positions // own

    def _violates(self, entity: Int64s, number: Int64s) -> Any:
        if not self.violation_every:
            return np.zeros(len(entity), bool)
        return (number % 3 == 1) & ((entity * 31 + number // 3) % self.violation_every == 0)


class AccessLogReader(SourceReader):
    """Reads the partitions of one subtask, the one that is furthest behind first."""

    shares_event_time = False

    def __init__(self, log: AccessLog) -> None:
        self._log = log
        self._positions: dict[int, int] = {}
        self._clock: Clock

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        own = range(context.subtask, PARTITIONS, context.parallelism)
        now_us = context.clock.now_us()
        # A feed is read from now on.
        self._positions = {item: 0 if self._log.kept else self._log.existing(item, now_us) for item in own}

    def splits(self) -> Sequence[str]:
        return [str(item) for item, position in self._positions.items() if position < self._log.length]

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        left = [(position, item) for item, position in self._positions.items() if position < self._log.length]
        if not left:
            return Exhausted()
        now_us = self._clock.now_us()
        for position, item in sorted(left):
            if count := min(max_records, self._log.existing(item, now_us) - position):
                self._positions[item] += count
                where = counted(f"partition {item}, offset", position)
                return Fetched(Records(self._log.events(item, position, count)), str(item), where=where)
        return WaitUntil(min(self._log.due_us(item, position) for position, item in left))

    def snapshot(self) -> Snapshot:
        return {"positions": {str(item): position for item, position in self._positions.items()}}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        if not self._log.kept:
            return
        for snapshot in snapshots:
            for item, position in positions_in(snapshot, self._log.length).items():
                if item in self._positions:
                    self._positions[item] = position

    def close(self) -> None:
        self._positions = {}


class AccessRules(ProcessFunction):
    """The state machine of an entity: an alert for each event that may not follow the one before.

    Example:
        >>> log = AccessLog(rate=1000, limit=24, begin_us=0, entities=4, violation_every=2)
        >>> watch(log.stream()).columns
        ['entity', 'number', 'event', 'after']
    """

    last = ValueState(pa.string())

    def process(self, record: dict[str, Any], state: State) -> dict[str, Any] | None:  # type: ignore[override]
        """One event."""
        event, last = record["event"], state.last
        state.last = event
        if event in FOLLOWS[last]:
            return None
        return {"entity": record["entity"], "number": record["number"], "event": event, "after": last}


def watch(events: Stream) -> Stream:
    """The alerts of a stream of events."""
    return events.key_by("entity").process(AccessRules(), ALERTS)
