"""Keep the records for which a condition is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import ExpressionError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.expressions.types import type_name
from workbench.operators.base import Operator, Output
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class Filter:
    """Drops the records for which `condition` is false or null; event times stay with their records.

    Args:
        condition: a boolean expression.
        origin: the user's line, for errors.

    Example:
        >>> Filter(expr("dep_delay IS NOT NULL")).describe()
        'dep_delay IS NOT NULL'
    """

    condition: Expression
    origin: Origin | None = field(default=None, repr=False)
    kind: ClassVar[str] = "filter"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        self._compile(inputs[0])
        return inputs[0]

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return self.condition.sql

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return FilterLogic(self._compile(inputs[0]))

    def _compile(self, schema: pa.Schema) -> Compiled:
        compiled = compile_expression(self.condition, schema, self.origin)
        if not pa.types.is_boolean(compiled.type):
            raise ExpressionError(
                f"filter needs a condition that is true or false, but {self.condition.sql!r} is "
                f"{type_name(compiled.type)}: compare it with a value",
                origin=self.origin,
            )
        return compiled


class FilterLogic(Operator):
    """Applies one mask to the columns and to the event times; a batch that passes whole is passed on uncopied."""

    def __init__(self, condition: Compiled) -> None:
        self._condition = condition

    def process(self, records: Records, port: int, out: Output) -> None:
        mask = self._condition(records.batch)
        kept = mask.true_count
        if kept == len(records):
            out.emit(records)
        elif kept:
            out.emit(_select(records, mask))


def _select(records: Records, mask: pa.BooleanArray) -> Records:
    batch = records.batch.filter(mask)
    if records.timestamps is None:
        return Records(batch)
    return Records(batch, pa.array(records.timestamps).filter(mask).to_numpy())
