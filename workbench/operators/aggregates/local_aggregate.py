"""Aggregation before the exchange: a large batch is sent as one row for each key and window.

Event-time windows that compute counts, sums, minima, maxima and means need no single records: the sender can aggregate
a batch, and the receiver merges the results. Nothing is kept between batches, so snapshots, barriers and watermarks
are not affected; the contents of windows, and which records are late, are the same as without it.

Where records are few, they are sent singly and can be observed. So are batches with a record that is already late at
the sender, and batches that aggregation would hardly make smaller.

Source: two-phase aggregation, Flink SQL's ``LocalWindowAggregate`` and ``GlobalWindowAggregate``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import RecordError
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.preaggregated import RECORDS, Folding, is_preaggregated
from workbench.operators.aggregates.tumbling_entries import TumblingEntries
from workbench.operators.contract.conforming import conforms
from workbench.windows.tumbling import Tumbling

_KNOWN_KEYS = 16_384
"""Number of key codes that are remembered; looking up new ones takes longer."""


@dataclass(frozen=True, slots=True)
class Worthwhile:
    """When a batch is aggregated before it is sent.

    Attributes:
        rows: the minimum number of rows.
        shrinks: the minimum factor by which it becomes smaller; with many keys, finding their entries twice costs more
            than moving the records.
        pause: the number of batches sent unchanged after one that was aggregated in vain, so that trying costs a few
            percent at most.
    """

    rows: int = 1_024
    shrinks: int = 16
    pause: int = 15


WORTHWHILE = Worthwhile()
"""The default."""


@dataclass(frozen=True)
class LocalAggregation:
    """The aggregation before the exchange that leads to a window.

    Attributes:
        keys: the key columns.
        window: the windows.
        aggregations: the functions.
        allowed_lateness_us: how long after its end a window accepts records.
    """

    keys: tuple[str, ...]
    window: Tumbling
    aggregations: tuple[Aggregation, ...]
    allowed_lateness_us: int

    def suits(self, schema: pa.Schema) -> bool:
        """Whether such records can be aggregated in any order and grouping with a bit-identical result.

        Sums of floats cannot: rounding depends on how they are grouped.

        Example:
            >>> from workbench.operators.aggregates.aggregations import max, sum
            >>> schema = pa.schema({"k": pa.string(), "x": pa.float64()})
            >>> [LocalAggregation(("k",), Tumbling(10), (make("x"),), 0).suits(schema) for make in (max, sum)]
            [True, False]
        """
        rounds = (
            item.function in ("sum", "mean") and pa.types.is_floating(schema.field(item.column).type)
            for item in self.aggregations
        )
        return RECORDS not in schema.names and not any(rounds)

    def create(self, schema: pa.Schema, worthwhile: Worthwhile) -> LocalAggregate:
        """The logic for one sender."""
        return LocalAggregate(self, schema, worthwhile)


@runtime_checkable
class AggregatesLocally(Protocol):
    """A spec of an operator that may receive partials instead of records."""

    def local_aggregation(self) -> LocalAggregation | None:
        """How they are made; None if the operator needs the records themselves."""


def aggregates_locally(spec: object) -> TypeGuard[AggregatesLocally]:
    """Whether an operator may receive partials."""
    return conforms(spec, AggregatesLocally)


class LocalAggregate:
    """Makes partials of batches where that is worthwhile; see `LocalAggregation.create`.

    Example:
        >>> from workbench.operators.aggregates.aggregations import sum
        >>> schema = pa.schema({"k": pa.string(), "n": pa.int64()})
        >>> local = LocalAggregation(("k",), Tumbling(10), (sum("n"),), 0).create(schema, Worthwhile(rows=4, shrinks=2))
        >>> batch = pa.record_batch([["a", "b", "a", "a"], [1, 2, 3, 4]], schema=schema)
        >>> partials = local.fold(Records(batch, np.array([5, 6, 7, 8])), 0).batch
        >>> partials.select(["k", "cell:sum(n)", "$records"]).to_pylist()
        [{'k': 'a', 'cell:sum(n)': 8, '$records': 3}, {'k': 'b', 'cell:sum(n)': 2, '$records': 1}]
    """

    __slots__ = (
        "_entries",
        "_folding",
        "_groups",
        "_keys",
        "_lateness_us",
        "_pause",
        "_schema",
        "_window",
        "_worthwhile",
    )

    def __init__(self, what: LocalAggregation, schema: pa.Schema, worthwhile: Worthwhile) -> None:
        self._window = what.window
        self._keys: Sequence[str] = what.keys
        self._lateness_us = what.allowed_lateness_us
        self._schema = schema
        self._worthwhile = worthwhile
        self._folding = Folding(what.aggregations, schema)
        self._entries = self._none()
        self._groups: Int64s = np.empty(0, np.int64)
        self._pause = 0

    def _none(self) -> TumblingEntries:
        return TumblingEntries(self._window, self._keys, self._schema, counting=True)

    def fold(self, records: Records, watermark_us: int) -> Records | None:
        """The partials of a batch in the order of their first records; None if the batch is to be sent unchanged.

        Args:
            watermark_us: the watermark at the sender.
        """
        rows, times = len(records), records.timestamps
        if rows < self._worthwhile.rows or times is None or is_preaggregated(records.batch):
            return None
        if self._pause:
            self._pause -= 1
            return None
        partials = self._folded(records, watermark_us, rows // self._worthwhile.shrinks)
        if partials is None:
            self._pause = self._worthwhile.pause
        return partials

    def _folded(self, records: Records, watermark_us: int, most: int) -> Records | None:
        batch, times = records.batch, records.timestamps
        assert times is not None
        entries = self._entries
        if len(entries.index) > _KNOWN_KEYS:
            entries = self._entries = self._none()
        entries.clear()
        closed_start = max(NO_TIME, watermark_us - self._window.size_us + 1 - self._lateness_us)
        if len(self._groups) < len(records):
            self._groups = np.empty(len(records), np.int64)
        groups = self._groups[: len(records)]
        placed = entries.place(batch, times, closed_start, groups, most)
        if placed is None or placed.late or placed.timeless or len(entries) > most:
            return None
        starts, keys = entries.starts_and_keys()
        earliest = np.maximum(starts, times.min())
        try:
            sizes = entries.counts[: len(entries)]
            return self._folding.fold(batch, groups, sizes, entries.index.keys_table(keys), earliest)
        except RecordError:
            return None  # a partial sum exceeds its range: whether the total does is decided by the receiver
