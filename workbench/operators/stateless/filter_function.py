"""Keep the records for which a Python function of columns gives True, interpreted or compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.contract.gather import Gather
from workbench.operators.contract.narrowing import kept_positions, kept_schema
from workbench.operators.functions.column_calls import BoundFunction
from workbench.operators.functions.column_function import ColumnFunction
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.user_function import UserFunction, function_name

_CONDITION = pa.schema({"condition": pa.bool_()})


@dataclass(frozen=True)
class FilterFunction:
    """Drops the records for which `function` gives False or None; event times stay with their records.

    Args:
        function: gives True or False; a record with a null in a column that it takes is dropped.
        kept: the columns that something reads, None for all; the planner leaves the others out.

        on_error: what becomes of a record for which the function raises or returns something else than True, False or
            None; it is called again for other records that came with it.

    Raises:
        RecordError: while running, when there is such a record and it is not a dead letter.

    Example:
        >>> spec = FilterFunction(ColumnFunction("filter", lambda delay: delay > 15, compiled=True))
        >>> spec.output_schema([pa.schema({"origin": pa.string(), "delay": pa.int64()})]).names
        ['origin', 'delay']
    """

    function: ColumnFunction
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    on_error: OnError = "fail"
    kind: ClassVar[str] = "filter"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns that are kept.

        Raises:
            PlanError: the function cannot take these columns or be compiled for them.
        """
        check_on_error(self.on_error, self.function.origin)
        self.function.bind(inputs[0], _CONDITION)
        return kept_schema(inputs[0], self.kept)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

    def describe(self) -> str:
        return function_name(self.function.function)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        gather = Gather(inputs[0], kept_positions(inputs[0], self.kept))
        user = UserFunction(self.kind, self.function.function, self.function.origin)
        poison = PoisonRecords(self.on_error, user)
        return FilterFunctionLogic(self.function.bind(inputs[0], _CONDITION), gather, poison)

    def narrowed(self, used: tuple[str, ...]) -> FilterFunction:
        """The same filter that passes on only these columns."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """What it reads to give these columns."""
        return frozenset((*used, *self.function.names))


class FilterFunctionLogic(Operator):
    """Chooses rows and copies them with their event times."""

    def __init__(self, function: BoundFunction, gather: Gather, poison: PoisonRecords) -> None:
        self._function = function
        self._gather = gather
        self._poison = poison
        self._first = 0  # row of what is being emitted

    def open(self, context: OperatorContext) -> None:
        self._poison.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        for first, kept in self._poison.parts(records, self._chosen):
            self._first = first
            if kept is not None:
                out.emit(kept)
        self._poison.send(out, with_times=records.timestamps is not None)

    def _chosen(self, records: Records) -> Records | None:
        [chosen] = self._function(records.batch)
        return self._gather(records, chosen)

    def parent_of(self, row: int) -> int | None:
        return self._first + self._gather.parent_of(row)
