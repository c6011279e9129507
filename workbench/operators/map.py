"""Turn each record into another with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.base import Operator, Output
from workbench.operators.user_function import Record, SchemaLike, UserFunction, declared_schema, function_name
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
        >>> Map(lambda r: {"hours": r["minutes"] / 60}, {"hours": pa.float64()})
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
        return MapLogic(self, self.output_schema(inputs))


class MapLogic(Operator):
    """Runs the function over each batch."""

    def __init__(self, spec: Map, schema: pa.Schema) -> None:
        self._function = spec.function
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._schema = schema

    def process(self, records: Records, port: int, out: Output) -> None:
        function = self._function
        sources = records.batch.to_pylist()
        rows: list[Record] = []
        for source in sources:
            try:
                rows.append(function(source))
            except Exception as error:
                raise self._user.raised(source, error) from error
        out.emit(Records(self._user.batch(rows, sources, self._schema), records.timestamps))
