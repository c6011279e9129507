"""Turn each record into another with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.contract.positions import Parents
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.record_loop import CHUNK, chunks, map_loop
from workbench.operators.functions.user_function import Record, SchemaLike, UserFunction, declared_schema, function_name
from workbench.origin import Origin


@dataclass(frozen=True)
class Map:
    """Calls `function` once per record, with a dict and for a dict; the record's event time stays.

    Python runs for every record, so expressions (`WithColumns`, `Select`) are much faster where they suffice.

    Args:
        function: from a record to a record with exactly the columns of the output schema.
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name; None means that of the input.
        origin: the user's line, for errors.
        on_error: what becomes of a record for which the function raises or returns something else.

    Raises:
        RecordError: while running, when there is such a record and it is not a dead letter.

    Example:
        >>> hours = Map(lambda r: {"hours": r["minutes"] / 60}, {"hours": pa.float64()})
        >>> hours.output_schema([pa.schema({"minutes": pa.int64()})]).names
        ['hours']
    """

    function: Callable[[Record], Record]
    schema: SchemaLike | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "map"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        check_on_error(self.on_error, self.origin)
        return inputs[0] if self.schema is None else declared_schema(self.schema, self.kind, self.origin)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

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
        self._poison = PoisonRecords(spec.on_error, self._user)
        self._parents = Parents()

    def open(self, context: OperatorContext) -> None:
        self._poison.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records:
            out.emit(Records.concat([self._mapped(records.slice(at, CHUNK), at) for at in chunks(records)]))
            self._parents.clear()
            self._poison.send(out, with_times=records.timestamps is not None)

    def parent_of(self, row: int) -> int | None:
        return self._parents.of(row)

    def _mapped(self, records: Records, first: int) -> Records:
        made: list[list[Any]] = [[] for _ in self._schema]
        failed = self._poison.loop(
            records,
            self._user.values(records.batch),
            lambda columns: self._loop(self._function, columns, made),
            made,
            lambda at, failures: at - failures,
            lambda failure: self._user.failed(failure, self._schema),
            first,
        )
        parents = np.delete(np.arange(len(records)), failed) if failed else None
        rows, parents = self._poison.batch(records, made, self._schema, parents, first)
        self._parents.add(rows.num_rows, first, parents)
        times = records.timestamps
        return Records(rows, times if times is None or parents is None else times[parents])
