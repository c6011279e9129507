"""Convert each record to another one, or to any number of records, with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from workbench.elements import Int64s, Records
from workbench.errors import PlanError, unknown
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.functions.called_function import CalledFunction, Calls
from workbench.operators.functions.dead_letters import OnError
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import Origin


@dataclass(frozen=True)
class Map:
    """Calls `function` for each record; the result has the record's event time.

    Python runs for every record, so expressions (`WithColumns`, `Select`) are much faster where they suffice.

    Args:
        function: of the record or of `columns`; see `CalledFunction`.
        schema: of its results, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
        columns: its arguments; None: it takes the record.
        keep: input columns that come first in the output, unchanged.
        compiled: whether it runs as machine code.
        origin: the user's line, for errors.
        on_error: what happens to a record for which the function raises or returns something else.

    Raises:
        RecordError: while running, for such a record, unless it becomes a dead letter.

    Example:
        >>> hours = Map(lambda minutes: minutes / 60, {"hours": pa.float64()}, ("minutes",), keep=("cab",))
        >>> hours.output_schema([pa.schema({"cab": pa.string(), "minutes": pa.int64()})]).names
        ['cab', 'hours']
    """

    function: Callable[..., Any]
    schema: SchemaLike | None = None
    columns: tuple[str, ...] | None = None
    keep: tuple[str, ...] = ()
    compiled: bool = False
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    called: CalledFunction = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "map"
    several: ClassVar[bool] = False

    def __post_init__(self) -> None:
        called = CalledFunction(self.kind, self.function, self.columns, self.compiled, self.on_error, self.origin)
        object.__setattr__(self, "called", called)

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The kept columns and the declared ones.

        Raises:
            PlanError: the function cannot be called with these columns, or a column to keep does not exist.
        """
        for name in self.keep:
            if name not in inputs[0].names:
                raise PlanError(unknown("column", name, inputs[0].names), origin=self.origin)
        given = self._given(inputs[0])
        self.called.check(inputs[0], given)
        twice = set(self.keep).intersection(given.names)
        if twice:
            raise PlanError(
                f"{self.kind} keeps the column {min(twice)!r} and computes it too: leave it out of keep, or give the "
                "computed one another name",
                origin=self.origin,
            )
        return pa.schema([*(inputs[0].field(name) for name in self.keep), *given]) if self.keep else given

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return self.called.side_schemas()

    def describe(self) -> str:
        return self.called.name

    def columns_read(self) -> frozenset[str] | None:
        """The columns that it keeps and that the function takes; None if the function takes the record."""
        taken = self.called.columns_read()
        return None if taken is None else taken.union(self.keep)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        calls = self.called.bind(inputs[0], self._given(inputs[0]), several=self.several)
        return MapLogic(calls, self.keep, self.output_schema(inputs))

    def _given(self, schema: pa.Schema) -> pa.Schema:
        return schema if self.schema is None else declared_schema(self.schema, self.kind, self.origin)


class FlatMap(Map):
    """Calls `function` for each record; it returns any number of the results of a `Map`: a list, or a generator.

    Example:
        >>> words = FlatMap(str.split, {"word": pa.string()}, ("line",))
        >>> words.output_schema([pa.schema({"line": pa.string()})]).names
        ['word']
    """

    kind: ClassVar[str] = "flat_map"
    several: ClassVar[bool] = True


class MapLogic(Operator):
    """Calls the function for each batch and emits all results as one batch."""

    def __init__(self, calls: Calls, keep: tuple[str, ...], schema: pa.Schema) -> None:
        self._calls = calls
        self._keep = keep
        self._schema = schema
        self._parents: Int64s | None = None  # of the rows that are being emitted

    def open(self, context: OperatorContext) -> None:
        self._calls.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if not records:
            return
        made, parents = self._calls(records)
        self._parents = parents
        times = records.timestamps
        kept = [records.batch.column(name) for name in self._keep]
        if parents is not None:
            kept = [column.take(pa.array(parents)) for column in kept]
            times = None if times is None else times[parents]
        if made.num_rows:
            out.emit(Records(pa.RecordBatch.from_arrays([*kept, *made.columns], schema=self._schema), times))
        self._parents = None
        self._calls.send(out, records)

    def parent_of(self, row: int) -> int | None:
        return row if self._parents is None else int(self._parents[row])
