"""Convert each batch to another with a function on Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records, event_times, holds_times
from workbench.errors import PlanError, RecordError, unknown
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.user_function import (
    FailedRowError,
    SchemaLike,
    UserFunction,
    declared_schema,
    function_name,
    record_at,
)
from workbench.origin import Origin
from workbench.raised import PASSING, kind_of, shown

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class MapBatches:
    """Calls `function` once per batch; the runtime decides how records are cut into batches, and may change it.

    Event times: row i of the result keeps the event time of row i of the input, so the function may neither reorder
    rows nor change their number, unless `event_time` names the column of the result that holds each row's event time,
    or the stream has no event times.

    Args:
        function: from a pyarrow.RecordBatch to one with the output schema.
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
        event_time: a timestamp, date or int64 (microseconds) column of the output, or None.
        origin: the user's line, for errors.
        on_error: what happens to records for which the function raises or returns something else: it is called again
            for halves of the batch, until the records that fail by themselves are found.

    Raises:
        RecordError: while running, for such a record, unless it becomes a dead letter.

    Example:
        >>> origins = MapBatches(lambda batch: batch.select(["origin"]), {"origin": pa.string()})
        >>> origins.output_schema([pa.schema({"origin": pa.string(), "delay": pa.int64()})]).names
        ['origin']
    """

    function: BatchFunction
    schema: SchemaLike | None = None
    event_time: str | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "map_batches"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        check_on_error(self.on_error, self.origin)
        schema = inputs[0] if self.schema is None else declared_schema(self.schema, self.kind, self.origin)
        if self.event_time is not None:
            if self.event_time not in schema.names:
                raise PlanError(unknown("event-time column", self.event_time, schema.names), origin=self.origin)
            kind = schema.field(self.event_time).type
            if not holds_times(kind):
                raise PlanError(
                    f"event-time column {self.event_time!r} is {kind}: use a timestamp, a date or int64 microseconds",
                    origin=self.origin,
                )
        return schema

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

    def describe(self) -> str:
        return function_name(self.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return MapBatchesLogic(self, self.output_schema(inputs))


class MapBatchesLogic(Operator):
    """Calls the function and checks its result."""

    def __init__(self, spec: MapBatches, schema: pa.Schema) -> None:
        self._spec = spec
        self._schema = schema
        self._name = f"{spec.kind} function {function_name(spec.function)!r}"
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._poison = PoisonRecords(spec.on_error, self._user)

    def open(self, context: OperatorContext) -> None:
        self._poison.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        for _, made in self._poison.parts(records, self._made):
            if made:
                out.emit(made)
        self._poison.send(out, with_times=records.timestamps is not None)

    def _made(self, records: Records) -> Records:
        spec = self._spec
        try:
            batch = spec.function(records.batch)
        except PASSING:
            raise
        except BaseException as error:
            first = shown([record_at(records.batch, 0)])
            where = f"on a batch of {len(records)} records, the first of which is {first}"
            raise FailedRowError(self._user.raised(error, where), 0) from error
        batch = self._check(batch)
        times = records.timestamps
        if spec.event_time is not None:
            times = event_times(batch.column(spec.event_time), spec.event_time, spec.origin)
        elif times is not None and batch.num_rows != len(records):
            raise RecordError(
                f"{self._name} returned {batch.num_rows} rows for {len(records)}, so their event times are "
                "unknown: keep the number of rows, or name the column that holds them with event_time=...",
                origin=spec.origin,
            )
        return Records(batch, times)

    def _check(self, batch: object) -> pa.RecordBatch:
        if not isinstance(batch, pa.RecordBatch):
            raise RecordError(
                f"{self._name} returned {shown(batch)} ({kind_of(batch)}), expected a pyarrow.RecordBatch",
                origin=self._spec.origin,
            )
        if batch.schema.equals(self._schema, check_metadata=True):
            return batch
        found = [(item.name, item.type) for item in batch.schema]
        wanted = [(item.name, item.type) for item in self._schema]
        if found != wanted:
            raise RecordError(
                f"{self._name} returned the columns {_show(batch.schema)}, expected {_show(self._schema)}: "
                "declare the output with schema=...",
                origin=self._spec.origin,
            )
        return pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)


def _show(schema: pa.Schema) -> str:
    return ", ".join(f"{item.name} {item.type}" for item in schema)
