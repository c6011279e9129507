"""Turn each record into another with a Python function of columns, interpreted or compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import PlanError, unknown
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.functions.column_calls import BoundFunction
from workbench.operators.functions.column_function import ColumnFunction
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.user_function import SchemaLike, UserFunction, declared_schema, function_name
from workbench.origin import Origin


@dataclass(frozen=True)
class MapColumns:
    """Computes columns with a function of columns; the record's event time stays.

    Args:
        function: gives the value of the declared column, or a tuple with a value for each, in their order.
        schema: of what it gives, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
        keep: input columns that come first in the output, unchanged.
        origin: the user's line, for errors.
        on_error: what becomes of a record for which the function raises or returns something else; it is called again
            for other records that came with it.

    Raises:
        RecordError: while running, when there is such a record and it is not a dead letter.

    Example:
        >>> def fare(distance, minutes):
        ...     return distance * 1.2 + minutes * 0.3
        >>> spec = MapColumns(ColumnFunction("map", fare, compiled=True), {"fare": pa.float64()})
        >>> spec.output_schema([pa.schema({"distance": pa.float64(), "minutes": pa.int32()})]).names
        ['fare']
    """

    function: ColumnFunction
    schema: SchemaLike | None = None
    keep: tuple[str, ...] = ()
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "map"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The kept columns and the declared ones.

        Raises:
            PlanError: the function cannot take these columns or be compiled for them, or a column is not known.
        """
        check_on_error(self.on_error, self.origin)
        for name in self.keep:
            if name not in inputs[0].names:
                raise PlanError(unknown("column", name, inputs[0].names), origin=self.origin)
        given = self._given(inputs[0])
        self.function.bind(inputs[0], given)
        kept = [inputs[0].field(name) for name in self.keep]
        twice = set(self.keep).intersection(given.names)
        if twice:
            raise PlanError(
                f"map keeps the column {min(twice)!r} and computes it too: leave it out of keep, or give the "
                "computed one another name",
                origin=self.origin,
            )
        return pa.schema([*kept, *given])

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

    def describe(self) -> str:
        return function_name(self.function.function)

    def columns_read(self) -> frozenset[str]:
        """What it keeps, and all that its parameters name."""
        return frozenset((*self.keep, *self.function.names))

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        bound = self.function.bind(inputs[0], self._given(inputs[0]))
        user = UserFunction(self.kind, self.function.function, self.origin)
        return MapColumnsLogic(bound, self.keep, self.output_schema(inputs), PoisonRecords(self.on_error, user))

    def _given(self, schema: pa.Schema) -> pa.Schema:
        return schema if self.schema is None else declared_schema(self.schema, self.kind, self.origin)


class MapColumnsLogic(Operator):
    """Computes the columns of each batch at once."""

    def __init__(
        self, function: BoundFunction, keep: tuple[str, ...], schema: pa.Schema, poison: PoisonRecords
    ) -> None:
        self._function = function
        self._poison = poison
        self._keep = keep
        self._schema = schema
        self._first = 0  # row of what is being emitted

    def open(self, context: OperatorContext) -> None:
        self._poison.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records:
            for first, made in self._poison.parts(records, self._mapped):
                self._first = first
                out.emit(made)
            self._poison.send(out, with_times=records.timestamps is not None)

    def parent_of(self, row: int) -> int | None:
        return self._first + row

    def _mapped(self, records: Records) -> Records:
        batch = records.batch
        columns = [*(batch.column(name) for name in self._keep), *self._function(batch)]
        return Records(pa.RecordBatch.from_arrays(columns, schema=self._schema), records.timestamps)
