"""Merge two or more streams of the same schema into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import PlanError
from workbench.operators.contract.base import Operator, Output
from workbench.operators.contract.narrowing import kept_positions, kept_schema
from workbench.origin import Origin


@dataclass(frozen=True)
class Union:
    """Passes on the records of all inputs as they arrive; the watermark is the minimum over the inputs.

    The inputs have the same column names and types in the same order; a column is nullable if it is in any input.

    Args:
        origin: the user's line, for errors.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.
    """

    origin: Origin | None = field(default=None, repr=False, compare=False)
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "union"
    takes_changes: ClassVar[bool] = True

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        if len(inputs) < 2:
            raise PlanError(
                f"union needs at least 2 streams and got {len(inputs)}: pass the other stream to union(...)",
                origin=self.origin,
            )
        inputs = [kept_schema(schema, self.kept) for schema in inputs]
        for number, schema in enumerate(inputs[1:], start=2):
            self._check(inputs[0], schema, number)
        return pa.schema([_together(column) for column in zip(*inputs, strict=True)])

    def describe(self) -> str:
        return "all records of all inputs"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return UnionLogic(self.output_schema(inputs), [kept_positions(schema, self.kept) for schema in inputs])

    def narrowed(self, used: tuple[str, ...]) -> Union:
        """The same union with only these output columns."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The columns that it passes on."""
        return frozenset(used)

    def _check(self, first: pa.Schema, other: pa.Schema, number: int) -> None:
        for position, (left, right) in enumerate(zip_longest(first, other), start=1):
            if left is None or right is None or left.name != right.name or left.type != right.type:
                raise PlanError(
                    f"union needs equal columns, but column {position} is {_show(left)} in the first stream "
                    f"and {_show(right)} in stream {number}: make them equal with select",
                    origin=self.origin,
                )


def _together(column: Sequence[pa.Field]) -> pa.Field:
    """The column of all inputs; metadata of single inputs is not kept."""
    first = column[0]
    known = first.metadata if all(item.metadata == first.metadata for item in column) else None
    return pa.field(first.name, first.type, any(item.nullable for item in column), known)


def _show(item: pa.Field | None) -> str:
    return "missing" if item is None else f"{item.name!r} ({item.type})"


class UnionLogic(Operator):
    """Passes records through, with one schema object for all inputs."""

    def __init__(self, schema: pa.Schema, columns: Sequence[Sequence[int]]) -> None:
        self._schema = schema
        self._columns = columns

    def process(self, records: Records, port: int, out: Output) -> None:
        batch = records.batch
        if not batch.schema.equals(self._schema, check_metadata=True):
            kept = [batch.column(column) for column in self._columns[port]]
            records = Records(pa.RecordBatch.from_arrays(kept, schema=self._schema), records.timestamps)
        out.emit(records)
