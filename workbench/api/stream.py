"""Streams: immutable descriptions; every method returns a new one, and nothing runs until a pipeline does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.api.building import expression, located, operator_node
from workbench.api.event_time import StreamEventTime
from workbench.api.exchanging import StreamExchanges
from workbench.api.joining import StreamJoins
from workbench.api.keyed import KeyedStream
from workbench.api.pipeline import Pipeline
from workbench.api.preparing import compiling
from workbench.api.sources import StreamSources
from workbench.api.windowed import WindowedStream
from workbench.connectors.base import Sink
from workbench.durations import parse_duration
from workbench.errors import ExpressionError, PlanError, SettingError, WorkbenchError, unknown
from workbench.expressions import Expression, col
from workbench.operators.base import OperatorSpec
from workbench.operators.column_function import ColumnFunction, takes_columns
from workbench.operators.filter import Filter
from workbench.operators.filter_function import FilterFunction
from workbench.operators.flat_map import FlatMap
from workbench.operators.map import Map
from workbench.operators.map_batches import MapBatches
from workbench.operators.map_columns import MapColumns
from workbench.operators.select import Select
from workbench.operators.union import Union
from workbench.operators.user_function import SchemaLike
from workbench.operators.with_columns import WithColumns
from workbench.origin import Origin, caller
from workbench.plan.logical import ExchangeKind, Input, Node
from workbench.plan.partitioner import Partitioner
from workbench.windows import Evictor, Schedule, TimeKind, Trigger, WindowAssigner

if TYPE_CHECKING:
    pass

Record = dict[str, Any]


class Stream(StreamSources, StreamEventTime, StreamExchanges, StreamJoins):
    """A stream of records with named, typed columns.

    Streams are made by the class methods (``replay``, ``from_table``, ``from_files``, ``from_socket``, ...) and by the
    operators of other streams. A stream remembers how it was made and nothing else.

    Example:
        >>> table = pa.table({"n": [1, 2, 3]})
        >>> Stream.from_table(table).filter("n > 1").columns
        ['n']
    """

    def __init__(
        self,
        node: Node,
        *,
        exchange: ExchangeKind | None = None,
        tag: str | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        super().__init__(node)
        self._exchange: ExchangeKind | None = exchange
        self._tag = tag
        self._partitioner = partitioner

    # what it is --------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1]})).schema.field("n").type
            DataType(int64)
        """
        return self._node.schema if self._tag is None else self._node.side_schemas[self._tag]

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"a": [1], "b": [2]})).columns
            ['a', 'b']
        """
        return list(self.schema.names)

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Stream({fields}); nothing runs until sink_to(...).run(...)"

    # operators ---------------------------------------------------------------------------------------------------

    def filter(self, condition: str | Expression | Callable[..., bool | None], *, compiled: bool = False) -> Stream:
        """Keep the records for which a condition holds: ``"dep_delay > 15"`` or ``col("dep_delay") > 15``.

        Args:
            condition: an expression, or a Python function of columns by their names: ``def late(dep_delay)``.
            compiled: make the function machine code; see `map`.

        Raises:
            ExpressionError, PlanError: the condition does not fit the columns, or cannot be compiled.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, None, 3]}))
            >>> job = numbers.filter("n > 1").sink_to(wb.TableSink("large")).run("filter")
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [3])
        """
        origin = caller()
        if callable(condition) and not isinstance(condition, Expression):
            return self._of_columns(FilterFunction(ColumnFunction("filter", condition, compiled, origin)), origin)
        if compiled:
            raise PlanError(
                "filter compiles functions, such as def late(dep_delay); expressions run compiled as they are: leave "
                "out compiled=True",
                origin=origin,
            )
        return self._then(Filter(expression(condition, origin), origin), origin)

    def with_columns(self, **columns: str | Expression | float | bool | None) -> Stream:
        """Add or replace columns: ``with_columns(late=col("dep_delay") > 15)``.

        Raises:
            ExpressionError: an unknown column or a type that does not fit.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"dep_delay": [20, 3]}))
            >>> flights.with_columns(late=col("dep_delay") > 15, hours="dep_delay / 60").columns
            ['dep_delay', 'late', 'hours']
        """
        origin = caller()
        named = tuple((name, expression(value, origin)) for name, value in columns.items())
        return self._then(WithColumns(named, origin), origin)

    def select(self, *columns: str, **named: str | Expression) -> Stream:
        """Keep these columns, in this order, and computed ones after them.

        Raises:
            ExpressionError: an unknown column, with the nearest name, or two of one name.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK"], "dep_delay": [20]}))
            >>> flights.select("origin", hours="dep_delay / 60").columns
            ['origin', 'hours']
        """
        origin = caller()
        for name in columns:
            self._check_column(name, origin)
        chosen = [(name, col(name)) for name in columns]
        chosen += [(name, expression(value, origin)) for name, value in named.items()]
        return self._then(Select(tuple(chosen), origin), origin)

    def map(
        self,
        function: Callable[..., Any],
        schema: SchemaLike | None = None,
        *,
        keep: Sequence[str] = (),
        compiled: bool = False,
    ) -> Stream:
        """Turn each record into another with a Python function.

        Args:
            function: from a record (a dict) to a record; or of columns, when its parameters are named like columns, as
                in ``def fare(distance, minutes)``: then it gives the value of the declared column, or a tuple with a
                value for each, and gets whole microseconds (since 1970) for instants and durations. It is not called
                where one of its columns is null: what it would have given is null.
            schema: of what it gives, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
            keep: for a function of columns, the input columns that come first in the output, unchanged.
            compiled: make a function of columns machine code. It takes and gives integers, floats, booleans, instants
                and durations; computes with int64 and float64; and whole numbers beyond int64 wrap around. What it
                reads from outside, such as a global number, stays as it is now.

        Raises:
            PlanError: the function does not fit the columns, or cannot be compiled; with its line and the reason.
            RecordError: while running, when the function raises or returns something else.

        Example:
            >>> def fare(distance, minutes):
            ...     return distance * 1.2 + minutes * 0.3
            >>> trips = Stream.from_table(pa.table({"cab": ["a"], "distance": [8.5], "minutes": [20]}))
            >>> trips.map(fare, {"fare": pa.float64()}, keep=["cab"], compiled=True).columns
            ['cab', 'fare']
        """
        origin = caller()
        if compiled or keep or takes_columns(function, self.schema):
            spec = MapColumns(ColumnFunction("map", function, compiled, origin), schema, tuple(keep))
            return self._of_columns(spec, origin)
        return self._then(Map(function, schema, origin), origin)

    def flat_map(self, function: Callable[[Record], Iterable[Record]], schema: SchemaLike) -> Stream:
        """Turn each record into any number of records with a Python function.

        Raises:
            PlanError: no schema that can be used.
            RecordError: while it runs, when the function fails or returns something else; with the record.

        Example:
            >>> lines = wb.Stream.from_table(pa.table({"line": ["a b"]}))
            >>> schema = {"word": pa.string()}
            >>> words = lines.flat_map(lambda record: [{"word": word} for word in record["line"].split()], schema)
            >>> job = words.sink_to(wb.TableSink("words")).run("flat_map")
            >>> job.wait("60s"), job.table()["word"].to_pylist()
            ('FINISHED', ['a', 'b'])
        """
        origin = caller()
        return self._then(FlatMap(function, schema, origin), origin)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: SchemaLike | None = None,
        *,
        event_time: str | None = None,
    ) -> Stream:
        """Turn each Arrow batch into another; with another number of rows, name the column with their event times.

        Raises:
            PlanError: no schema that can be used.
            RecordError: while it runs, when the function fails or returns another schema.

        Example:
            >>> def doubled(batch):
            ...     return pa.RecordBatch.from_arrays([pa.compute.multiply(batch.column("n"), 2)], names=["n"])
            >>> wb.Stream.from_table(pa.table({"n": [1, 2]})).map_batches(doubled).columns
            ['n']
        """
        origin = caller()
        return self._then(MapBatches(function, schema, event_time, origin), origin)

    def union(self, *others: Stream) -> Stream:
        """The records of this stream and of others with the same columns.

        Raises:
            PlanError: the streams' columns differ.

        Example:
            >>> here, there = (wb.Stream.from_table(pa.table({"n": [n]})) for n in (1, 2))
            >>> job = here.union(there).sink_to(wb.TableSink("both")).run("union")
            >>> job.wait("60s"), sorted(job.table()["n"].to_pylist())
            ('FINISHED', [1, 2])
        """
        origin = caller()
        return self._then(Union(origin), origin, *others)

    def key_by(self, *keys: str) -> KeyedStream:
        """Partition by key: all records with equal keys go to one subtask.

        Raises:
            PlanError: no key.
            ExpressionError: an unknown column, with the nearest name.

        Example:
            >>> flights = wb.Stream.from_table(pa.table({"origin": ["JFK", "LGA", "JFK"]}))
            >>> counts = flights.key_by("origin").aggregate(flights=wb.count())
            >>> job = counts.sink_to(wb.TableSink("counts", upsert="origin")).run("key_by", parallelism=2)
            >>> job.wait("60s"), sorted(job.table()["flights"].to_pylist())
            ('FINISHED', [1, 2])
        """
        origin = caller()
        if not keys:
            raise PlanError("key_by needs at least one column, for example key_by('origin')", origin=origin)
        for key in keys:
            self._check_column(key, origin)
        return KeyedStream(self, keys)

    def window(
        self,
        window: WindowAssigner,
        *,
        time: TimeKind = "event",
        allowed_lateness: str = "0s",
        trigger: Schedule | Trigger | None = None,
        evictor: Evictor | None = None,
    ) -> WindowedStream:
        """Group all records by windows, in one subtask; see `KeyedStream.window`.

        Raises:
            SettingError: a lateness that is no duration, or settings that do not go together.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"t": [0, 1, 1_000_000]}), event_time="t")
            >>> job = clicks.window(wb.tumbling("1s")).aggregate(n=wb.count()).sink_to(wb.TableSink("n")).run("window")
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [2, 1])
        """
        lateness_us = parse_duration(allowed_lateness, "allowed_lateness")
        return WindowedStream(self, (), window, lateness_us, time=time, trigger=trigger, evictor=evictor)

    def side_output(self, tag: str) -> Stream:
        """A side output of the operator that made this stream: ``"late"`` of a window aggregate.

        Raises:
            PlanError: the operator has no such side output; names those that it has.

        Example:
            >>> clicks = wb.Stream.from_table(pa.table({"t": [0]}), event_time="t")
            >>> counts = clicks.window(wb.tumbling("1s")).aggregate(n=wb.count())
            >>> counts.side_output("late").columns  # the records themselves
            ['t']
        """
        if tag not in self._node.side_schemas:
            raise PlanError(unknown("side output", tag, self._node.side_schemas), origin=caller())
        return Stream(self._node, tag=tag)

    def uid(self, uid: str) -> Stream:
        """Name the operator that made this stream; a checkpoint finds its state by this name.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).uid("numbers")
            >>> stream.sink_to(wb.DiscardSink())
            Pipeline: numbers -> discard
        """
        return self._with_node(replace(self._node, uid=uid))

    def with_parallelism(self, parallelism: int) -> Stream:
        """The number of subtasks of the operator that made this stream; otherwise it is the job's.

        Raises:
            SettingError: a number below 1.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).with_parallelism(1)
            >>> stream.sink_to(wb.DiscardSink()).explain(parallelism=4).channels  # one reads, four write
            4
        """
        if parallelism < 1:
            raise SettingError(f"parallelism is {parallelism}: it must be above zero")
        return self._with_node(replace(self._node, parallelism=parallelism))

    def slot_sharing_group(self, name: str) -> Stream:
        """Keep the operator that made this stream, and those after it, out of the slots of other groups (F2-2).

        By default all operators share slots, so a slot holds one parallel slice of the whole pipeline.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"n": [1]})).filter("n > 0").slot_sharing_group("filters")
            >>> len(stream.sink_to(wb.DiscardSink()).explain(parallelism=2).slots)  # two for the source, two more
            4
        """
        return self._with_node(replace(self._node, slot_sharing_group=name))

    def sink_to(self, sink: Sink) -> Pipeline:
        """End the stream in a sink; what comes back can be run.

        Raises:
            SinkError: the sink cannot write these columns.

        Example:
            >>> wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("numbers"))
            Pipeline: table -> numbers
        """
        origin = caller()
        try:
            sink.check(self.schema)
        except WorkbenchError as error:
            raise located(error, origin) from None
        return Pipeline((Node(sink, (self._input(),), self.schema, {}, None, origin),))

    # building ----------------------------------------------------------------------------------------------------

    def _input(self, exchange: ExchangeKind | None = None, keys: tuple[str, ...] = ()) -> Input:
        if exchange is not None:
            return Input(self._node, exchange, keys, self._tag)
        return Input(self._node, self._exchange, keys, self._tag, self._partitioner)

    def _derived(self, node: Node) -> Stream:
        return Stream(node)

    def _with_node(self, node: Node) -> Stream:
        return Stream(node, exchange=self._exchange, tag=self._tag, partitioner=self._partitioner)

    def _exchanged(self, exchange: ExchangeKind, partitioner: Partitioner | None = None) -> Stream:
        return Stream(self._node, exchange=exchange, tag=self._tag, partitioner=partitioner)

    def _then(self, spec: OperatorSpec, origin: Origin | None, *others: Stream) -> Stream:
        return Stream(operator_node(spec, (self._input(), *(other._input() for other in others)), origin))

    def _of_columns(self, spec: MapColumns | FilterFunction, origin: Origin | None) -> Stream:
        if not spec.function.compiled:
            return self._then(spec, origin)
        with compiling(spec.describe()):
            return self._then(spec, origin)

    def _check_column(self, name: str, origin: Origin | None) -> None:
        if name not in self.schema.names:
            raise ExpressionError(unknown("column", name, self.schema.names), origin=origin)
