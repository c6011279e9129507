"""Turn each record into another with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.base import Operator, Output
from workbench.operators.record_loop import CHUNK, LoopError, chunks, map_loop
from workbench.operators.user_function import (
    Record,
    SchemaLike,
    UserFunction,
    declared_schema,
    function_name,
    on_record,
)
from workbench.origin import Origin


@dataclass(frozen=True)
class Map:
    """Calls `function` once per record, with a dict and for a dict; the record's event time stays.

    Python runs for every record, so expressions (`WithColumns`, `Select`) are much faster where they suffice.

    Args:
        function: from a record to a record with exactly the columns of the output schema.
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
        origin: the user's line, for errors.

    Raises:
        RecordError: while running, when the function raises or returns something else.

    Example:
        >>> hours = Map(lambda r: {"hours": r["minutes"] / 60}, {"hours": pa.float64()})
        >>> hours.output_schema([pa.schema({"minutes": pa.int64()})]).names
        ['hours']
    """

    function: Callable[[Record], Record]
    schema: SchemaLike | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str] = "map"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return inputs[0] if self.schema is None else declared_schema(self.schema, self.kind, self.origin)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return function_name(self.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return MapLogic(self, inputs[0], self.output_schema(inputs))


class MapLogic(Operator):
    """Runs the function over each batch."""

    def __init__(self, spec: Map, inputs: pa.Schema, schema: pa.Schema) -> None:
        self._function = spec.function
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._schema = schema
        self._loop = map_loop(inputs, schema)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records:
            out.emit(Records.concat([self._mapped(records.slice(at, CHUNK)) for at in chunks(records)]))

    def _mapped(self, records: Records) -> Records:
        batch = records.batch
        made: list[list[Any]] = [[] for _ in self._schema]
        try:
            self._loop(self._function, [column.to_pylist() for column in batch.columns], made)
        except LoopError as failure:
            raise self._user.failed(failure, self._schema) from failure.__cause__
        rows = self._user.batch(made, self._schema, lambda at: on_record(batch, at))
        return Records(rows, records.timestamps)
