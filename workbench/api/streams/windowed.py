"""Streams grouped by windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.api.streams.building import computed_for_aggregates, located, named_aggregates, operator_node
from workbench.api.streams.joining import by_keys
from workbench.api.streams.missing import Hinting, check_named
from workbench.durations import Duration, parse_duration
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.window_functions import AnyAggregation, HolisticAggregation
from workbench.operators.changelogs.revised_windows import RevisedAggregate, RevisedApply, revises
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.functions.user_function import SchemaLike
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.operators.windows.apply import Applied, WindowApply
from workbench.operators.windows.settings import WindowSettings
from workbench.origin import Origin, caller
from workbench.plan.logical import Input
from workbench.windows import Evictor, WindowAssigner
from workbench.windows.schedule import AT_END, Schedule, TimeKind
from workbench.windows.trigger import Trigger

if TYPE_CHECKING:
    from workbench.api.streams.stream import Stream

LATE = "late"
"""The side output of a window for late records."""


class WindowedStream(Hinting):
    """A stream grouped by windows, to be aggregated or processed by a function.

    Source: F1-6 to F1-10; Flink's ``WindowedStream``.

    Args:
        stream: the records.
        keys: the key columns; none: all records are one group, processed by one subtask.
        window: determines the windows of a record.
        allowed_lateness: how long after its end a window accepts records.
        time: the kind of a record's time.
        trigger: when windows fire; None: at their end.
        evictor: which records of a window stay when it fires; None: all.

    Example:
        >>> wb.Stream.from_table(pa.table({"t": [0]}), event_time="t").window(wb.tumbling("1h"))
        WindowedStream, tumbling 1h; aggregate(...) or apply(...) comes next
    """

    def __init__(
        self,
        stream: Stream,
        keys: Sequence[str],
        window: WindowAssigner,
        *,
        allowed_lateness: Duration = "0s",
        time: TimeKind = "event",
        trigger: Schedule | Trigger | None = None,
        evictor: Evictor | None = None,
    ) -> None:
        self._stream = stream
        self._keys = tuple(keys)
        lateness_us = parse_duration(allowed_lateness, "allowed_lateness")
        with located(caller()):
            when = AT_END if trigger is None else trigger
            self._settings = WindowSettings(window, time, lateness_us, when, evictor)

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"WindowedStream{by}, {self._settings.describe()}; aggregate(...) or apply(...) comes next"

    def aggregate(self, *unnamed: object, **aggregates: AnyAggregation) -> Stream:
        """One record per key and window when it fires: the keys, ``window_start``, ``window_end``, the aggregates.

        The bounds of count windows are positions among the key's records; the global window has none. Counts, sums,
        minima, maxima and means are folded as records arrive; with ``wb.median``, ``wb.top_k`` or ``wb.collect_list``
        among them, or an evictor, the window keeps its records until it ends.

        Sessions with allowed lateness, or with a trigger that fires early and does not purge, are a changelog: a record
        that lengthens or merges sessions takes back the rows that they have emitted.

        Source: F1-7; Flink's ``aggregate``.

        Args:
            unnamed: refused with a sentence, because each aggregate needs a name.
            aggregates: by the name of the column: ``n=wb.count()``, ``middle=wb.median("dep_delay")``.

        Raises:
            PlanError: no aggregate, or one that is not defined for the column's type.
            ExpressionError: an unknown column.

        Example:
            >>> import pyarrow as pa
            >>> import workbench as wb
            >>> stream = wb.Stream.from_table(pa.table({"k": ["a"], "v": [1]}))
            >>> fours = stream.key_by("k").window(wb.windows.count_tumbling(4))
            >>> fours.aggregate(n=wb.count(), mid=wb.median("v")).columns
            ['k', 'window_start', 'window_end', 'n', 'mid']
        """
        origin = caller()
        check_named(unnamed, "aggregate", "aggregate(n=wb.count())", origin)
        end, named = named_aggregates(self._stream._end, aggregates, (Aggregation, HolisticAggregation), origin)
        of = self._settings
        kind = RevisedAggregate if revises(of) else WindowAggregate
        spec = kind(
            self._keys,
            of.window,
            named,
            of.allowed_lateness_us,
            LATE,
            of.time,
            of.trigger,
            of.evictor,
        )
        return self._then(spec, end, origin)

    def apply(self, function: Applied, schema: SchemaLike) -> Stream:
        """Call a Python function with all records of a window when it fires.

        Source: F1-6 to F1-9; Flink's ``ProcessWindowFunction``.

        Args:
            function: ``function(key, window, records)``: the key's value (a tuple of several, None without keys), the
                `wb.windows.Window`, and a `pyarrow.Table` of its records in the order of arrival. It returns a record
                (a dict), several, or None.
            schema: of its results; the keys, ``window_start`` and ``window_end`` precede them.

        Raises:
            PlanError: no valid schema.
            RecordError: while running, when the function fails or returns something else.

        Example:
            >>> import pyarrow as pa
            >>> import workbench as wb
            >>> def spread(key, window, records):
            ...     values = records["v"].to_pylist()
            ...     return {"spread": max(values) - min(values)}
            >>> stream = wb.Stream.from_table(pa.table({"k": ["a"], "v": [1]}))
            >>> stream.key_by("k").window(wb.windows.count_tumbling(4)).apply(spread, {"spread": pa.int64()}).columns
            ['k', 'window_start', 'window_end', 'spread']
        """
        origin = caller()
        kind = RevisedApply if revises(self._settings) else WindowApply
        return self._then(kind(self._keys, self._settings, function, schema, LATE, origin), self._stream._end, origin)

    def _then(self, spec: OperatorSpec, end: Input, origin: Origin | None) -> Stream:
        hidden = computed_for_aggregates(end, self._stream._end)
        if self._keys:
            return self._stream._made(operator_node(spec, (by_keys(end, self._keys),), origin), hidden)
        node = operator_node(spec, (replace(end, exchange="rebalance", partitioner=None),), origin)
        return self._stream._made(replace(node, parallelism=1), hidden)
