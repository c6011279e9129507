"""Keep the records for which a condition is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.errors import ExpressionError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.expressions.tree.types import type_name
from workbench.operators.contract.base import Operator, Output
from workbench.operators.contract.gather import Gather
from workbench.operators.contract.narrowing import kept_positions, kept_schema
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class Filter:
    """Drops the records for which `condition` is false or null; event times stay with their records.

    Args:
        condition: a boolean expression.
        origin: the user's line, for errors.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.

    Example:
        >>> Filter(expr("dep_delay IS NOT NULL")).describe()
        'dep_delay IS NOT NULL'
    """

    condition: Expression
    origin: Origin | None = field(default=None, repr=False)
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "filter"
    takes_changes: ClassVar[bool] = True

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        self._compile(inputs[0])
        return kept_schema(inputs[0], self.kept)

    def describe(self) -> str:
        return self.condition.sql

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return FilterLogic(self._compile(inputs[0]), Gather(inputs[0], kept_positions(inputs[0], self.kept)))

    def narrowed(self, used: tuple[str, ...]) -> Filter:
        """The same filter with only these output columns."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The columns that it reads to emit these columns."""
        return frozenset((*used, *self.condition.columns))

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
    """Selects rows and copies them with their event times; a batch that passes entirely is not copied."""

    def __init__(self, condition: Compiled, gather: Gather) -> None:
        self._condition = condition
        self._gather = gather

    def process(self, records: Records, port: int, out: Output) -> None:
        kept = self._gather(records, self._condition.choose(records.batch))
        if kept is not None:
            out.emit(kept)

    def parent_of(self, row: int) -> int | None:
        return self._gather.parent_of(row)
