"""Streams: immutable descriptions; every method returns a new one, and nothing runs until a pipeline does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.api.pipeline import Pipeline
from workbench.connectors.base import Sink, Source
from workbench.connectors.generator_source import GeneratorSource
from workbench.connectors.replay_log import ReplayLog
from workbench.connectors.replay_source import ReplaySource
from workbench.connectors.table_source import TableSource
from workbench.durations import parse_duration, parse_speed
from workbench.errors import ExpressionError, PlanError, SettingError, WorkbenchError, unknown
from workbench.expressions import Expression, col, expr, lit
from workbench.operators.aggregate import RollingAggregate
from workbench.operators.aggregations import Aggregation
from workbench.operators.base import OperatorSpec
from workbench.operators.filter import Filter
from workbench.operators.flat_map import FlatMap
from workbench.operators.map import Map
from workbench.operators.map_batches import MapBatches
from workbench.operators.select import Select
from workbench.operators.union import Union
from workbench.operators.user_function import SchemaLike
from workbench.operators.window_aggregate import WindowAggregate
from workbench.operators.with_columns import WithColumns
from workbench.origin import Origin, caller
from workbench.plan.logical import ExchangeKind, Input, Node, WatermarkStrategy
from workbench.windows import Tumbling

if TYPE_CHECKING:
    from workbench.spark.history import History

LATE = "late"
"""The side output of a window for records that come too late."""

Record = dict[str, Any]


class Stream:
    """A stream of records with named, typed columns.

    Streams are made by the class methods (``replay``, ``from_table``, ``from_generator``) and by the operators of other
    streams. A stream remembers how it was made and nothing else.

    Example:
        >>> table = pa.table({"n": [1, 2, 3]})
        >>> Stream.from_table(table).filter("n > 1").columns
        ['n']
    """

    def __init__(self, node: Node, *, exchange: ExchangeKind | None = None, tag: str | None = None) -> None:
        self._node = node
        self._exchange: ExchangeKind | None = exchange
        self._tag = tag

    # sources -----------------------------------------------------------------------------------------------------

    @classmethod
    def replay(
        cls,
        history: History | ReplayLog | str | Path,
        *,
        speed: str | float = "max",
        out_of_orderness: str = "0s",
        idle_after: str | None = None,
    ) -> Stream:
        """Replay a history: its records come in the order, and at a multiple of the pace, in which they arrived.

        Args:
            history: a `History`, an open replay log, or the path of one (no JVM is needed).
            speed: seconds of history per second (``"600x"``), or ``"max"``; a running job can be tuned.
            out_of_orderness: how much later than a record with a later event time a record may come; the watermark
                stays that far behind the largest event time seen on each channel.
            idle_after: a channel without records for so long (of the clock) no longer holds the watermark back.

        Raises:
            SettingError: a bad speed or duration.
            HistoryError: no replay log at that path.
        """
        log = _open_log(history)
        return cls._source(ReplaySource(log, parse_speed(speed)), out_of_orderness, idle_after)

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        *,
        event_time: str | None = None,
        out_of_orderness: str = "0s",
        rate: float | None = None,
        idle_after: str | None = None,
    ) -> Stream:
        """Stream the rows of an Arrow table in order.

        Args:
            table: the rows.
            event_time: column that carries event time, or None.
            out_of_orderness, idle_after: as for `replay`.
            rate: records per second over all subtasks; None for full speed.
        """
        return cls._source(TableSource(table, event_time=event_time, rate=rate), out_of_orderness, idle_after)

    @classmethod
    def from_generator(
        cls,
        function: Callable[[int, int], pa.RecordBatch],
        schema: SchemaLike,
        *,
        event_time: str | None = None,
        out_of_orderness: str = "0s",
        rate: float | None = None,
        limit: int | None = None,
        idle_after: str | None = None,
    ) -> Stream:
        """Stream what a function computes: ``function(first, n)`` gives the `n` rows that start with row `first`.

        Args:
            function: deterministic, so that a recovery reads the same rows again.
            schema: of the rows.
            event_time, out_of_orderness, rate, idle_after: as for `from_table`.
            limit: number of rows; None for a stream without end.
        """
        fields = schema if isinstance(schema, pa.Schema) else pa.schema(list(schema.items()))
        source = GeneratorSource(function, fields, event_time=event_time, rate=rate, limit=limit)
        return cls._source(source, out_of_orderness, idle_after)

    @classmethod
    def _source(cls, spec: Source, out_of_orderness: str, idle_after: str | None) -> Stream:
        strategy = WatermarkStrategy(
            parse_duration(out_of_orderness, "out_of_orderness"),
            None if idle_after is None else parse_duration(idle_after, "idle_after"),
        )
        watermarks = strategy if spec.event_time is not None else None
        return cls(Node(spec, (), spec.schema, {}, watermarks, caller()))

    # what it is --------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._node.schema if self._tag is None else self._node.side_schemas[self._tag]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Stream({fields}); nothing runs until sink_to(...).run(...)"

    # operators ---------------------------------------------------------------------------------------------------

    def filter(self, condition: str | Expression) -> Stream:
        """Keep the records for which a condition holds: ``"dep_delay > 15"`` or ``col("dep_delay") > 15``."""
        origin = caller()
        return self._then(Filter(_expression(condition, origin), origin), origin)

    def with_columns(self, **columns: str | Expression | float | bool | None) -> Stream:
        """Add or replace columns: ``with_columns(late=col("dep_delay") > 15)``."""
        origin = caller()
        named = tuple((name, _expression(value, origin)) for name, value in columns.items())
        return self._then(WithColumns(named, origin), origin)

    def select(self, *columns: str, **named: str | Expression) -> Stream:
        """Keep these columns, in this order, and computed ones after them."""
        origin = caller()
        for name in columns:
            self._check_column(name, origin)
        chosen = [(name, col(name)) for name in columns]
        chosen += [(name, _expression(value, origin)) for name, value in named.items()]
        return self._then(Select(tuple(chosen), origin), origin)

    def map(self, function: Callable[[Record], Record], schema: SchemaLike | None = None) -> Stream:
        """Turn each record (a dict) into another with a Python function; `schema` None means that of the input."""
        origin = caller()
        return self._then(Map(function, schema, origin), origin)

    def flat_map(self, function: Callable[[Record], Iterable[Record]], schema: SchemaLike) -> Stream:
        """Turn each record into any number of records with a Python function."""
        origin = caller()
        return self._then(FlatMap(function, schema, origin), origin)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: SchemaLike | None = None,
        *,
        event_time: str | None = None,
    ) -> Stream:
        """Turn each Arrow batch into another; with another number of rows, name the column with their event times."""
        origin = caller()
        return self._then(MapBatches(function, schema, event_time, origin), origin)

    def union(self, *others: Stream) -> Stream:
        """The records of this stream and of others with the same columns."""
        origin = caller()
        return self._then(Union(origin), origin, *others)

    def rebalance(self) -> Stream:
        """Send the records to the next operator's subtasks in turn (F1-3)."""
        return self._exchanged("rebalance")

    def broadcast(self) -> Stream:
        """Send every record to every subtask of the next operator (F1-3)."""
        return self._exchanged("broadcast")

    def key_by(self, *keys: str) -> KeyedStream:
        """Partition by key: all records with equal keys go to one subtask."""
        origin = caller()
        if not keys:
            raise PlanError("key_by needs at least one column, for example key_by('origin')", origin=origin)
        for key in keys:
            self._check_column(key, origin)
        return KeyedStream(self, keys)

    def window(self, window: Tumbling, *, allowed_lateness: str = "0s") -> WindowedStream:
        """Group all records by event-time windows, in one subtask; see `KeyedStream.window`."""
        return WindowedStream(self, (), window, parse_duration(allowed_lateness, "allowed_lateness"))

    def side_output(self, tag: str) -> Stream:
        """A side output of the operator that made this stream: ``"late"`` of a window aggregate."""
        if tag not in self._node.side_schemas:
            raise PlanError(unknown("side output", tag, self._node.side_schemas), origin=caller())
        return Stream(self._node, tag=tag)

    def uid(self, uid: str) -> Stream:
        """Name the operator that made this stream; a checkpoint finds its state by this name."""
        return Stream(replace(self._node, uid=uid), exchange=self._exchange, tag=self._tag)

    def with_parallelism(self, parallelism: int) -> Stream:
        """The number of subtasks of the operator that made this stream; otherwise it is the job's."""
        if parallelism < 1:
            raise SettingError(f"parallelism is {parallelism}: it must be above zero")
        return Stream(replace(self._node, parallelism=parallelism), exchange=self._exchange, tag=self._tag)

    def sink_to(self, sink: Sink) -> Pipeline:
        """End the stream in a sink; what comes back can be run."""
        origin = caller()
        try:
            sink.check(self.schema)
        except WorkbenchError as error:
            raise _located(error, origin) from None
        return Pipeline((Node(sink, (self._input(),), self.schema, {}, None, origin),))

    # building ----------------------------------------------------------------------------------------------------

    def _input(self, exchange: ExchangeKind | None = None, keys: tuple[str, ...] = ()) -> Input:
        return Input(self._node, exchange or self._exchange, keys, self._tag)

    def _exchanged(self, exchange: ExchangeKind) -> Stream:
        return Stream(self._node, exchange=exchange, tag=self._tag)

    def _then(self, spec: OperatorSpec, origin: Origin | None, *others: Stream) -> Stream:
        return Stream(_operator_node(spec, (self._input(), *(other._input() for other in others)), origin))

    def _check_column(self, name: str, origin: Origin | None) -> None:
        if name not in self.schema.names:
            raise ExpressionError(unknown("column", name, self.schema.names), origin=origin)


class KeyedStream:
    """A stream partitioned by key; what follows keeps its state per key."""

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream = stream
        self._keys = keys

    def __repr__(self) -> str:
        return f"KeyedStream by {', '.join(self._keys)} of {self._stream!r}"

    def window(self, window: Tumbling, *, allowed_lateness: str = "0s") -> WindowedStream:
        """Group the records of each key by event-time windows.

        Args:
            window: for example ``wb.tumbling("1h")``.
            allowed_lateness: how long after it fired a window takes further records; each makes it fire again with
                the corrected result. Records that come later still go to the side output ``"late"``.
        """
        return WindowedStream(self._stream, self._keys, window, parse_duration(allowed_lateness, "allowed_lateness"))

    def aggregate(self, **aggregates: Aggregation) -> Stream:
        """Rolling aggregates: for every record one record out, with the keys and the aggregates so far (F1-5)."""
        origin = caller()
        spec = RollingAggregate(self._keys, _named(aggregates, origin))
        return Stream(_operator_node(spec, (self._stream._input("hash", self._keys),), origin))


class WindowedStream:
    """A stream grouped by windows, to be aggregated."""

    def __init__(self, stream: Stream, keys: tuple[str, ...], window: Tumbling, allowed_lateness_us: int) -> None:
        self._stream = stream
        self._keys = keys
        self._window = window
        self._allowed_lateness_us = allowed_lateness_us

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"WindowedStream{by}, {self._window.describe()}; aggregate(...) comes next"

    def aggregate(self, **aggregates: Aggregation) -> Stream:
        """One record per key and window when it fires: the keys, ``window_start``, ``window_end``, the aggregates."""
        origin = caller()
        spec = WindowAggregate(
            self._keys, self._window, _named(aggregates, origin), self._allowed_lateness_us, late_tag=LATE
        )
        item = self._stream._input("hash", self._keys) if self._keys else self._stream._input("rebalance")
        node = _operator_node(spec, (item,), origin)
        return Stream(node if self._keys else replace(node, parallelism=1))


def _operator_node(spec: OperatorSpec, inputs: tuple[Input, ...], origin: Origin | None) -> Node:
    schemas = [item.schema for item in inputs]
    try:
        return Node(spec, inputs, spec.output_schema(schemas), dict(spec.side_schemas(schemas)), None, origin)
    except WorkbenchError as error:
        raise _located(error, origin) from None


def _located(error: WorkbenchError, origin: Origin | None) -> WorkbenchError:
    return error if error.origin is not None else type(error)(error.message, origin=origin)


def _expression(value: str | Expression | float | bool | None, origin: Origin | None) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        try:
            return expr(value)
        except WorkbenchError as error:
            raise _located(error, origin) from None
    return lit(value)


def _named(aggregates: dict[str, Aggregation], origin: Origin | None) -> tuple[tuple[str, Aggregation], ...]:
    if not aggregates:
        raise PlanError("aggregate needs at least one, for example aggregate(flights=wb.count())", origin=origin)
    for name, value in aggregates.items():
        if not isinstance(value, Aggregation):
            raise PlanError(
                f"the aggregate {name!r} is {value!r}: write for example {name}=wb.mean('dep_delay')", origin=origin
            )
    return tuple(aggregates.items())


def _open_log(history: History | ReplayLog | str | Path) -> ReplayLog:
    if isinstance(history, ReplayLog):
        return history
    if isinstance(history, str | Path):
        return ReplayLog.open(Path(history))
    return history.log
