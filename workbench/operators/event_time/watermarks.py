"""Watermark generators: they derive watermarks from the records so far (F2-5).

A watermark is a promise about the future, so it is always a guess by some policy. An eager policy (no bound) is fast
and makes more records late; a slow one (a large bound) waits for stragglers. *Periodic* generators are polled for
event time; *punctuated* ones derive it from a marked record.

The policy of a stream (`Watermarks`) is frozen data. It creates a small `WatermarkGenerator` for each split of a source
or subtask of an operator; the generator's state is part of the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import index
from typing import ClassVar, Final, Literal, Protocol

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME, format_duration
from workbench.elements import Int64s, Records
from workbench.errors import PlanError, RecordError
from workbench.expressions import ColumnName
from workbench.from_json import made
from workbench.operators.contract.base import Json
from workbench.operators.contract.event_times import EventTimes
from workbench.raised import PASSING, described

WATERMARK_INTERVAL_US = 100_000
"""How often periodic generators are polled."""


class EventTime(Enum):
    """Event times that do not come from a column."""

    INGESTION = "ingestion"


INGESTION: Final = EventTime.INGESTION
"""Event time is the time at which a record is read: it never decreases, so no record is late."""

EventTimeColumn = ColumnName | Literal[EventTime.INGESTION] | None
"""The origin of a stream's event times: a column, the clock, or none."""

Marks = Sequence[tuple[int, int]]
"""The watermarks within a batch: the number of records before each one, and its value; both increase."""


class WatermarkGenerator:
    """Derives event time from records; subclass it for your own policy.

    Watermarks are microseconds since 1970 in UTC: `t` says that no record with an event time at or below `t` is
    expected any more. A value that does not exceed an earlier one is ignored, so a generator need not be monotone. A
    value beyond all event times (2**63 - 1, say) fires all windows except those at the end of time; the input
    continues.

    Source: F2-5; Flink's ``WatermarkGenerator``.

    Example:
        >>> class HalfAMinuteBehindTheMedian(wb.watermarks.WatermarkGenerator):
        ...     def on_batch(self, batch, times):
        ...         return int(np.median(times)) - 30_000_000
        >>> table = pa.table({"t": [0, 1_000_000]})
        >>> wb.Stream.from_table(table, event_time="t", watermarks=HalfAMinuteBehindTheMedian).columns
        ['t']
    """

    asks_clock: ClassVar[bool] = True
    """Whether ``on_periodic`` may return something new although no record has arrived."""

    def on_batch(self, batch: pa.RecordBatch, times: Int64s) -> int | None:
        """Called for every batch of records.

        Args:
            batch: n records, in the order of their arrival.
            times: shape (n,), their event times in microseconds since 1970, NO_TIME where a record has none.

        Returns:
            The watermark behind the batch's last record, or None for no change now.
        """
        return None

    def on_periodic(self, now_us: int) -> int | None:
        """Called about ten times a second of processing time, even while no records arrive.

        Args:
            now_us: processing time in microseconds since 1970.

        Returns:
            Event time reached, in microseconds since 1970, or None: unchanged.
        """
        return None

    def snapshot(self) -> Json:
        """State that must survive a failure, as JSON values; None if there is none."""
        return None

    def restore(self, state: Json) -> None:
        """Resume from an earlier generator's ``snapshot``.

        Args:
            state: never None.
        """

    def go_on(self, state: Json) -> None:
        """Call ``restore``, which may be a user's.

        Args:
            state: never None.

        Raises:
            RecordError: ``restore`` raised.
        """
        try:
            self.restore(state)
        except Exception as error:
            raise RecordError(
                f"{type(self).__qualname__}.restore failed with {type(error).__name__}: {error}; it receives the value "
                "that snapshot returned"
            ) from error

    def observe(self, records: Records) -> Marks:
        """All watermarks that a batch causes, each with its place in the batch."""
        times = no_times(records) if records.timestamps is None else records.timestamps
        watermark_us = self._called("on_batch", lambda: self.on_batch(records.batch, times))
        return () if watermark_us is None else ((len(records), watermark_us),)

    def ask(self, now_us: int) -> int | None:
        """The result of ``on_periodic``."""
        return self._called("on_periodic", lambda: self.on_periodic(now_us))

    def _called(self, hook: str, call: Callable[[], int | None]) -> int | None:
        """The checked result of a hook, which may be a user's."""
        try:
            told = call()
            return None if told is None else index(told)
        except PASSING:
            raise
        except BaseException as error:
            raise RecordError(
                f"{type(self).__qualname__}.{hook} failed with {described(error)}; it must return whole microseconds "
                "since 1970, or None"
            ) from error


class Watermarks(Protocol):
    """The frozen description of a policy."""

    def describe(self) -> str:
        """A few words for the graph."""

    def create(self, schema: pa.Schema) -> WatermarkGenerator:
        """A new generator for records of `schema`; raises a WorkbenchError when they do not fit."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """Periodic: the largest event time so far, minus a bound on the lateness of further records.

    Args:
        out_of_orderness_us: the bound; 0 for event times that never decrease.
    """

    out_of_orderness_us: int = 0

    def describe(self) -> str:
        bound = self.out_of_orderness_us
        return f"at most {format_duration(bound)} out of order" if bound else "in order"

    def create(self, schema: pa.Schema) -> WatermarkGenerator:
        return BoundedGenerator(self.out_of_orderness_us)


@dataclass(frozen=True, slots=True)
class Custom:
    """A generator that a user wrote.

    Args:
        factory: called without arguments for each generator; usually the class.
    """

    factory: Callable[[], WatermarkGenerator]

    def describe(self) -> str:
        return str(getattr(self.factory, "__name__", type(self.factory).__name__))

    def create(self, schema: pa.Schema) -> WatermarkGenerator:
        generator = self.factory()
        if not isinstance(generator, WatermarkGenerator):
            raise PlanError(
                f"watermarks={self.describe()} made {type(generator).__name__}: pass a subclass of"
                " wb.watermarks.WatermarkGenerator, or a function that returns one"
            )
        return generator


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Records carry the time at which they were read, so event time follows the clock."""

    def describe(self) -> str:
        return "ingestion time"

    def create(self, schema: pa.Schema) -> WatermarkGenerator:
        return IngestionGenerator()


class BoundedGenerator(WatermarkGenerator):
    """Keeps the largest event time."""

    asks_clock = False

    def __init__(self, out_of_orderness_us: int) -> None:
        self.bound_us = out_of_orderness_us
        self.largest_us = NO_TIME

    def observe(self, records: Records) -> Marks:
        if records.timestamps is not None:
            latest_us = records.latest_us
            if latest_us is None:
                latest_us = int(np.maximum.reduce(records.timestamps))
            self.largest_us = max(self.largest_us, latest_us)
        return ()

    def on_periodic(self, now_us: int) -> int | None:
        return None if self.largest_us == NO_TIME else self.largest_us - self.bound_us - 1

    ask = on_periodic

    def snapshot(self) -> Json:
        return None if self.largest_us == NO_TIME else self.largest_us

    def restore(self, state: Json) -> None:
        self.largest_us = max(self.largest_us, made(int, state, "the largest event time"))

    go_on = restore


class IngestionGenerator(WatermarkGenerator):
    """Assigns the clock's time to records; event time also advances between them."""

    def __init__(self) -> None:
        self._latest_us = NO_TIME

    def stamp(self, batch: pa.RecordBatch, now_us: int) -> Records:
        """The batch with `now_us` as the event time of every record, or a later time if one was assigned before.

        A job that resumes in another process may find that the machine's clock was set back.
        """
        self._latest_us = max(self._latest_us, now_us)
        return Records(batch, np.full(batch.num_rows, self._latest_us, np.int64))

    def on_periodic(self, now_us: int) -> int | None:
        return max(self._latest_us, now_us) - 1

    def snapshot(self) -> Json:
        return None if self._latest_us == NO_TIME else self._latest_us

    def restore(self, state: Json) -> None:
        self._latest_us = max(self._latest_us, made(int, state, "the latest event time"))

    go_on = restore


def note_times(generator: WatermarkGenerator, records: Records, seen: EventTimes, now_us: int) -> None:
    """Let `seen` look at a batch before the generator observes it."""
    if isinstance(generator, BoundedGenerator):
        seen.bound_us = generator.bound_us
        seen.read(records.timestamps, generator.largest_us, now_us)
    else:
        seen.read(records.timestamps, None, now_us)


def no_times(records: Records) -> Int64s:
    """Event times for records without any."""
    return np.full(len(records), NO_TIME, np.int64)


def monotonous() -> Watermarks:
    """Event times that never decrease within a split: the watermark directly follows the largest one so far.

    Source: F2-5; Flink's ``forMonotonousTimestamps``.

    Example:
        >>> monotonous().describe()
        'in order'
    """
    return Bounded(0)
