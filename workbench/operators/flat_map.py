"""Turn each record into any number of records with a Python function."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.operators.base import Operator, Output
from workbench.operators.record_loop import CHUNK, LoopError, chunks, flat_map_loop
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
class FlatMap:
    """Calls `function` once per record; each record that it returns or yields inherits the record's event time.

    Args:
        function: from a record (a dict) to an iterable of records (none, one or several dicts; a generator will do).
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name.
        origin: the user's line, for errors.

    Raises:
        RecordError: while running, when the function raises or returns something else.

    Example:
        >>> words = FlatMap(lambda r: ({"word": w} for w in r["line"].split()), {"word": pa.string()})
        >>> words.output_schema([pa.schema({"line": pa.string()})]).names
        ['word']
    """

    function: Callable[[Record], Iterable[Record]]
    schema: SchemaLike
    origin: Origin | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str] = "flat_map"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return declared_schema(self.schema, self.kind, self.origin)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return function_name(self.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return FlatMapLogic(self, inputs[0], self.output_schema(inputs))


class FlatMapLogic(Operator):
    """Runs the function over each batch and emits all that came of it as one batch."""

    def __init__(self, spec: FlatMap, inputs: pa.Schema, schema: pa.Schema) -> None:
        self._function = spec.function
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._schema = schema
        self._loop = flat_map_loop(inputs, schema)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records:
            made = Records.concat([self._made(records.slice(at, CHUNK)) for at in chunks(records)])
            if made:
                out.emit(made)

    def _made(self, records: Records) -> Records:
        batch = records.batch
        made: list[list[Any]] = [[] for _ in self._schema]
        ends: list[int] = []
        try:
            self._loop(self._function, [column.to_pylist() for column in batch.columns], made, ends)
        except LoopError as failure:
            raise self._user.failed(failure, self._schema) from failure.__cause__
        rows = self._user.batch(made, self._schema, lambda at: on_record(batch, bisect_right(ends, at)))
        times = records.timestamps
        return Records(rows, None if times is None else np.repeat(times, np.diff(ends, prepend=0)))
