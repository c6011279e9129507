"""Keep the records for which a Python function of columns gives True, interpreted or compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.base import Operator, Output
from workbench.operators.column_calls import BoundFunction
from workbench.operators.column_function import ColumnFunction
from workbench.operators.gather import Gather
from workbench.operators.narrowing import kept_positions, kept_schema
from workbench.operators.user_function import function_name

_CONDITION = pa.schema({"condition": pa.bool_()})


@dataclass(frozen=True)
class FilterFunction:
    """Drops the records for which `function` gives False or None; event times stay with their records.

    Args:
        function: gives True or False; a record with a null in a column that it takes is dropped.
        kept: the columns that something reads, None for all; the planner leaves the others out.

    Raises:
        RecordError: while running, when the function raises or returns something else than True, False or None.

    Example:
        >>> spec = FilterFunction(ColumnFunction("filter", lambda delay: delay > 15, compiled=True))
        >>> spec.output_schema([pa.schema({"origin": pa.string(), "delay": pa.int64()})]).names
        ['origin', 'delay']
    """

    function: ColumnFunction
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "filter"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns that are kept.

        Raises:
            PlanError: the function cannot take these columns or be compiled for them.
        """
        self.function.bind(inputs[0], _CONDITION)
        return kept_schema(inputs[0], self.kept)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {}

    def describe(self) -> str:
        return function_name(self.function.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        gather = Gather(inputs[0], kept_positions(inputs[0], self.kept))
        return FilterFunctionLogic(self.function.bind(inputs[0], _CONDITION), gather)

    def narrowed(self, used: tuple[str, ...]) -> FilterFunction:
        """The same filter that passes on only these columns."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """What it reads to give these columns."""
        return frozenset((*used, *self.function.names))


class FilterFunctionLogic(Operator):
    """Chooses rows and copies them with their event times."""

    def __init__(self, function: BoundFunction, gather: Gather) -> None:
        self._function = function
        self._gather = gather

    def process(self, records: Records, port: int, out: Output) -> None:
        [chosen] = self._function(records.batch)
        kept = self._gather(records, chosen)
        if kept is not None:
            out.emit(kept)
