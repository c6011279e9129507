"""Split a stream into several by conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Mask, Records
from workbench.errors import ExpressionError, PlanError
from workbench.expressions import Compiled, compile_expression
from workbench.expressions.tree.types import type_name
from workbench.operators.contract.base import Operator, Output
from workbench.operators.stateless.projection import NamedExpressions
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class Split:
    """Sends each record to the side output of the first condition that is true; the main output gets the rest.

    Attributes:
        conditions: a boolean expression for each side output, in the order in which they are tried.
        origin: the user's line, for errors.

    Raises:
        PlanError: no condition.
    """

    conditions: NamedExpressions
    origin: Origin | None = field(default=None, repr=False)
    kind: ClassVar[str] = "split"

    def __post_init__(self) -> None:
        if not self.conditions:
            raise PlanError("split needs at least one condition, for example split({'late': 'dep_delay > 15'})")

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        self._compile(inputs[0])
        return inputs[0]

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {name: inputs[0] for name, _ in self.conditions}

    def describe(self) -> str:
        return ", ".join(f"{name}: {condition.sql}" for name, condition in self.conditions)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _Split(self._compile(inputs[0]))

    def _compile(self, schema: pa.Schema) -> dict[str, Compiled]:
        compiled = {}
        for name, condition in self.conditions:
            compiled[name] = compile_expression(condition, schema, self.origin)
            if not pa.types.is_boolean(compiled[name].type):
                raise ExpressionError(
                    f"split needs conditions that are true or false, but {condition.sql!r} of {name!r} is "
                    f"{type_name(compiled[name].type)}: compare it with a value",
                    origin=self.origin,
                )
        return compiled


class _Split(Operator):
    """Evaluates the conditions in turn on whole batches."""

    def __init__(self, conditions: Mapping[str, Compiled]) -> None:
        self._conditions = conditions

    def process(self, records: Records, port: int, out: Output) -> None:
        rest = np.ones(len(records), np.bool_)
        for tag, condition in self._conditions.items():
            chosen = rest & condition(records.batch).fill_null(False).to_numpy(zero_copy_only=False)
            if chosen.any():
                out.emit_side(tag, _rows(records, chosen))
                rest &= ~chosen
        out.emit(_rows(records, rest))


def _rows(records: Records, chosen: Mask) -> Records:
    return records if chosen.all() else records.where(chosen)
