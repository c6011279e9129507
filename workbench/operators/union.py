"""Merge two or more streams of the same schema into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import PlanError
from workbench.operators.base import Operator, Output
from workbench.origin import Origin


@dataclass(frozen=True)
class Union:
    """Passes on the records of all inputs as they come; the watermark is the minimum over the inputs.

    The inputs have the same column names and types in the same order; a column is nullable when it is in any input.

    Args:
        origin: the user's line, for errors.
    """

    origin: Origin | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str] = "union"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        if len(inputs) < 2:
            raise PlanError(
                f"union needs at least 2 streams and got {len(inputs)}: pass the other stream to union(...)",
                origin=self.origin,
            )
        for number, schema in enumerate(inputs[1:], start=2):
            self._check(inputs[0], schema, number)
        return pa.schema(
            [
                pa.field(column[0].name, column[0].type, any(item.nullable for item in column))
                for column in zip(*inputs, strict=True)
            ]
        )

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return "all records of all inputs"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return UnionLogic(self.output_schema(inputs))

    def _check(self, first: pa.Schema, other: pa.Schema, number: int) -> None:
        for position, (left, right) in enumerate(zip_longest(first, other), start=1):
            if left is None or right is None or left.name != right.name or left.type != right.type:
                raise PlanError(
                    f"union needs equal columns, but column {position} is {_show(left)} in the first stream "
                    f"and {_show(right)} in stream {number}: make them equal with select",
                    origin=self.origin,
                )


def _show(item: pa.Field | None) -> str:
    return "missing" if item is None else f"{item.name!r} ({item.type})"


class UnionLogic(Operator):
    """Passes records through, under one schema object for all inputs."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.batch.schema.equals(self._schema, check_metadata=True):
            out.emit(records)
        else:
            out.emit(
                Records(pa.RecordBatch.from_arrays(records.batch.columns, schema=self._schema), records.timestamps)
            )
