"""Turn each record into any number of records with a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.contract.positions import Parents
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.record_loop import CHUNK, chunks, flat_map_loop
from workbench.operators.functions.user_function import Record, SchemaLike, UserFunction, declared_schema, function_name
from workbench.origin import Origin


@dataclass(frozen=True)
class FlatMap:
    """Calls `function` once per record; each record that it returns or yields inherits the record's event time.

    Args:
        function: from a record (a dict) to an iterable of records (none, one or several dicts; a generator will do).
        schema: of the output, a pyarrow.Schema or a dict of Arrow types by name.
        origin: the user's line, for errors.
        on_error: what becomes of a record for which the function raises or returns something else.

    Raises:
        RecordError: while running, when there is such a record and it is not a dead letter.

    Example:
        >>> words = FlatMap(lambda r: ({"word": w} for w in r["line"].split()), {"word": pa.string()})
        >>> words.output_schema([pa.schema({"line": pa.string()})]).names
        ['word']
    """

    function: Callable[[Record], Iterable[Record]]
    schema: SchemaLike
    origin: Origin | None = field(default=None, repr=False, compare=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "flat_map"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        check_on_error(self.on_error, self.origin)
        return declared_schema(self.schema, self.kind, self.origin)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

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
        self._poison = PoisonRecords(spec.on_error, self._user)
        self._parents = Parents()

    def open(self, context: OperatorContext) -> None:
        self._poison.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records:
            made = Records.concat([self._made(records.slice(at, CHUNK), at) for at in chunks(records)])
            if made:
                out.emit(made)
            self._parents.clear()
            self._poison.send(out, with_times=records.timestamps is not None)

    def parent_of(self, row: int) -> int | None:
        return self._parents.of(row)

    def _made(self, records: Records, first: int) -> Records:
        made: list[list[Any]] = [[] for _ in self._schema]
        ends: list[int] = []  # the rows so far, after each record

        def rows_before(at: int, failures: int) -> int:
            ends.append(ends[-1] if ends else 0)  # of what it gave before it failed nothing stays
            return ends[-1]

        self._poison.loop(
            records,
            self._user.values(records.batch),
            lambda columns: self._loop(self._function, columns, made, ends),
            made,
            rows_before,
            lambda failure: self._user.failed(failure, self._schema),
            first,
        )
        counts = np.array(ends)
        counts[1:] -= counts[:-1].copy()
        parents = np.repeat(np.arange(len(records)), counts)
        rows, kept = self._poison.batch(records, made, self._schema, parents, first)
        parents = parents if kept is None else kept
        self._parents.add(rows.num_rows, first, parents)
        times = records.timestamps
        return Records(rows, None if times is None else times[parents])
