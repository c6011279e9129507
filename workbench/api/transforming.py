"""From records to records: the methods of `Stream` that filter, choose columns and call functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.api.building import expression
from workbench.api.preparing import compiling
from workbench.arguments import as_given, true_or_false
from workbench.errors import PlanError
from workbench.expressions import Expression, col
from workbench.operators.base import OperatorSpec
from workbench.operators.column_function import ColumnFunction, takes_columns
from workbench.operators.dead_letters import OnError
from workbench.operators.filter import Filter
from workbench.operators.filter_function import FilterFunction
from workbench.operators.flat_map import FlatMap
from workbench.operators.map import Map
from workbench.operators.map_batches import MapBatches
from workbench.operators.map_columns import MapColumns
from workbench.operators.select import Select
from workbench.operators.union import Union
from workbench.operators.user_function import Record, SchemaLike
from workbench.operators.with_columns import WithColumns
from workbench.origin import Origin, caller

if TYPE_CHECKING:
    from workbench.api.stream import Stream


class StreamTransforms:
    """The transformations that keep nothing from one record to the next; `Stream` inherits them."""

    if TYPE_CHECKING:

        @property
        def schema(self) -> pa.Schema: ...

        def _then(self, spec: OperatorSpec, origin: Origin | None, *others: Stream) -> Stream: ...

        def _check_column(self, name: str, origin: Origin | None) -> None: ...

    def filter(
        self,
        condition: str | Expression | Callable[..., bool | None],
        *,
        compiled: bool = False,
        on_error: OnError = "fail",
    ) -> Stream:
        """Keep the records for which a condition holds: ``"dep_delay > 15"`` or ``col("dep_delay") > 15``.

        A record for which the condition is null is dropped, as in SQL.

        Source: E1 (grep); Flink's ``filter``.

        Args:
            condition: an expression, or a Python function of columns by their names: ``def late(dep_delay)``.
            compiled: make the function machine code; see `map`.
            on_error: what becomes of a record with which the function fails; see `map`. Expressions give null instead.

        Raises:
            ExpressionError: an unknown column, or no condition.
            PlanError: a function whose parameters are no columns, or that cannot be compiled.
            RecordError: while running, when a function fails; with the record.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, None, 3]}))
            >>> job = numbers.filter("n > 1").sink_to(wb.TableSink("large")).run("filter")
            >>> job.wait("60s"), job.table()["n"].to_pylist()
            ('FINISHED', [3])
        """
        origin = caller()
        true_or_false(compiled, "compiled")
        if callable(condition) and not isinstance(condition, Expression):
            function = ColumnFunction("filter", condition, compiled, origin)
            return self._of_columns(FilterFunction(function, on_error=on_error), origin)
        if on_error != "fail":
            raise PlanError(
                "no record fails an expression: what has no result is null, and is not kept; leave out on_error",
                origin=origin,
            )
        if compiled:
            raise PlanError(
                "filter compiles functions, such as def late(dep_delay); expressions run compiled as they are: leave "
                "out compiled=True",
                origin=origin,
            )
        return self._then(Filter(expression(condition, origin), origin), origin)

    def with_columns(self, **columns: str | Expression | float | bool | None) -> Stream:
        """Add or replace columns: ``with_columns(late=col("dep_delay") > 15)``.

        Source: Spark's ``withColumns``.

        Args:
            columns: by name: an expression, SQL text or a constant number; None is a null. Existing columns keep their
                place.

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

        Source: Spark's ``select``.

        Args:
            columns: names of columns to keep.
            named: computed columns by name, as expressions or SQL text.

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
        on_error: OnError = "fail",
    ) -> Stream:
        """Turn each record into another with a Python function.

        Source: F1-4; Flink's ``map``.

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
            on_error: what becomes of a record for which the function raises or returns something else: ``"fail"`` fails
                the task, ``"dead_letter"`` sends it to ``dead_letters()`` and goes on with the next. A function of
                columns is then called again for some of the records that came with it.

        Raises:
            PlanError: the function does not fit the columns, or cannot be compiled; with its line and the reason.
            RecordError: while running, for such a record, unless it becomes a dead letter.

        Example:
            >>> def fare(distance, minutes):
            ...     return distance * 1.2 + minutes * 0.3
            >>> trips = wb.Stream.from_table(pa.table({"cab": ["a"], "distance": [8.5], "minutes": [20]}))
            >>> trips.map(fare, {"fare": pa.float64()}, keep=["cab"], compiled=True).columns
            ['cab', 'fare']
        """
        origin = caller()
        if true_or_false(compiled, "compiled") or keep or takes_columns(function, self.schema):
            of_columns = ColumnFunction("map", function, compiled, origin)
            if not isinstance(keep, Sequence):
                raise PlanError(f"keep is {as_given(keep)}: name the columns to keep, such as ['cab']", origin=origin)
            kept = (keep,) if isinstance(keep, str) else tuple(keep)
            spec = MapColumns(of_columns, schema, kept, on_error=on_error)
            return self._of_columns(spec, origin)
        return self._then(Map(function, schema, origin, on_error), origin)

    def flat_map(
        self, function: Callable[[Record], Iterable[Record]], schema: SchemaLike, *, on_error: OnError = "fail"
    ) -> Stream:
        """Turn each record into any number of records with a Python function.

        Source: F1-4; Flink's ``flatMap``.

        Args:
            function: from a record (a dict) to any number of records: a list, a generator, or nothing. Each has the
                event time of the record that it was called for.
            schema: of the records that it gives, a pyarrow.Schema or a dict of Arrow types by name.
            on_error: what becomes of a record with which it fails; see `map`. Nothing of what it gave is kept.

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
        return self._then(FlatMap(function, schema, origin, on_error), origin)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        schema: SchemaLike | None = None,
        *,
        event_time: str | None = None,
        on_error: OnError = "fail",
    ) -> Stream:
        """Turn each Arrow batch into another.

        Source: F1-4; Spark's ``mapInArrow``.

        Args:
            function: from a `pyarrow.RecordBatch` (n rows) to another; how records are cut into batches must not matter
                to it.
            schema: of what it gives, a pyarrow.Schema or a dict of Arrow types by name; None: that of the input.
            event_time: column of the result that holds the event times, needed where rows are added, dropped or
                reordered; None: row i keeps the event time of row i.
            on_error: what becomes of records with which it fails; see `map`. It is called again for halves of the
                batch, so that good records are not lost with bad ones.

        Raises:
            PlanError: no schema that can be used, or no such event-time column.
            RecordError: while it runs, when the function fails, or returns another schema or number of rows.

        Example:
            >>> def doubled(batch):
            ...     return pa.RecordBatch.from_arrays([pa.compute.multiply(batch.column("n"), 2)], names=["n"])
            >>> wb.Stream.from_table(pa.table({"n": [1, 2]})).map_batches(doubled).columns
            ['n']
        """
        origin = caller()
        return self._then(MapBatches(function, schema, event_time, origin, on_error), origin)

    def union(self, *others: Stream) -> Stream:
        """The records of this stream and of others with the same columns.

        Records of one stream keep their order; which stream's comes first is open. Event time is as far as that of the
        slowest (F2-6).

        Source: F1-4; Flink's ``union``.

        Args:
            others: streams with the same columns.

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

    def _of_columns(self, spec: MapColumns | FilterFunction, origin: Origin | None) -> Stream:
        if not spec.function.compiled:
            return self._then(spec, origin)
        with compiling(spec.describe()):
            return self._then(spec, origin)
