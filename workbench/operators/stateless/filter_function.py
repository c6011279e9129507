"""Keep the records for which a Python function returns True."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.contract.gather import Gather
from workbench.operators.contract.narrowing import kept_positions, kept_schema
from workbench.operators.functions.called_function import CalledFunction, Calls

_CONDITION = pa.schema({"condition": pa.bool_()})


@dataclass(frozen=True)
class FilterFunction:
    """Drops the records for which a function returns False or None; event times stay with their records.

    Args:
        function: returns True, False or None.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.

    Raises:
        RecordError: while running, when it raises or returns something else and the record does not become a dead
        letter.

    Example:
        >>> spec = FilterFunction(CalledFunction("filter", lambda delay: delay > 15, ("delay",), compiled=True))
        >>> spec.output_schema([pa.schema({"origin": pa.string(), "delay": pa.int64()})]).names
        ['origin', 'delay']
    """

    function: CalledFunction
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "filter"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns that are kept.

        Raises:
            PlanError: the function cannot take these columns or be compiled for them.
        """
        self.function.check(inputs[0], _CONDITION)
        return kept_schema(inputs[0], self.kept)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return self.function.side_schemas()

    def describe(self) -> str:
        return self.function.name

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        gather = Gather(inputs[0], kept_positions(inputs[0], self.kept))
        return FilterFunctionLogic(self.function.bind(inputs[0], _CONDITION, values=True), gather)

    def narrowed(self, used: tuple[str, ...]) -> FilterFunction:
        """The same filter with only these output columns."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str] | None:
        """The columns that it reads to emit these columns; None: all."""
        taken = self.function.columns_read()
        return None if taken is None else taken.union(used)


class FilterFunctionLogic(Operator):
    """Selects rows and copies them with their event times."""

    def __init__(self, calls: Calls, gather: Gather) -> None:
        self._calls = calls
        self._gather = gather

    def open(self, context: OperatorContext) -> None:
        self._calls.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if not records:
            return
        made, parents = self._calls(records)
        choice = made.column(0)
        if parents is not None:
            choice = parents[np.flatnonzero(choice.fill_null(False).to_numpy(zero_copy_only=False))].astype(np.int32)
        kept = self._gather(records, choice)
        if kept is not None:
            out.emit(kept)
        self._calls.send(out, records)

    def parent_of(self, row: int) -> int | None:
        return self._gather.parent_of(row)
