"""A user-defined exchange: selects the subtask of each record (F1-3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.errors import PlanError, RecordError, WorkbenchError
from workbench.expressions import Expression
from workbench.expressions.evaluation.compiling import compile_expression
from workbench.origin import Origin
from workbench.raised import PASSING, described, shown

Target = Callable[[pa.RecordBatch], Int64s]
"""From a batch to one number per row."""


@dataclass(frozen=True, slots=True)
class Partitioner:
    """Assigns a number to each record; the record goes to the subtask of that number modulo the number of subtasks.

    The runtime applies the modulus, so that a partitioner is valid at every parallelism.

    Attributes:
        target: an integer expression, or a function from a batch to one integer per row (an Arrow or numpy array, or a
            list). Equal records should get equal numbers: a recovery sends records again.
        origin: the user's line.

    Example:
        >>> from workbench.expressions import expr
        >>> target = Partitioner(expr("length(origin)")).compiled(pa.schema({"origin": pa.string()}))
        >>> target(pa.record_batch({"origin": ["JFK", "Rome"]}))
        array([3, 4])
    """

    target: Expression | Callable[[pa.RecordBatch], Any]
    origin: Origin | None = None

    def describe(self) -> str:
        """The expression, or the function's name."""
        if isinstance(self.target, Expression):
            return self.target.sql
        return str(getattr(self.target, "__name__", type(self.target).__name__))

    def compiled(self, schema: pa.Schema) -> Target:
        """The function that computes the numbers of a batch of `schema`.

        Raises:
            PlanError: the expression does not yield integers.
            ExpressionError: it does not fit the schema.
        """
        if not isinstance(self.target, Expression):
            return self._called(self.target)
        compiled = compile_expression(self.target, schema, self.origin)
        if not pa.types.is_integer(compiled.type):
            raise PlanError(
                f"partition_by({self.describe()!r}) gives {compiled.type}: an exchange needs integers; "
                "to partition by other values use key_by",
                origin=self.origin,
            )
        return lambda batch: self._numbers(compiled(batch), batch.num_rows)

    def _called(self, function: Callable[[pa.RecordBatch], Any]) -> Target:
        def target(batch: pa.RecordBatch) -> Int64s:
            try:
                answer = function(batch)
            except WorkbenchError:
                raise
            except PASSING:
                raise
            except BaseException as error:
                fact = f"partition_by({self.describe()}) failed: {described(error)}"
                raise RecordError(fact, origin=self.origin) from error
            return self._numbers(answer, batch.num_rows)

        return target

    def _numbers(self, answer: Any, rows: int) -> Int64s:
        try:
            column = pa.array(answer)
            fits = pa.types.is_integer(column.type) and len(column) == rows
        except Exception:  # noqa: BLE001  it may be anything, and what it raises when it is read too
            fits = False
        if not fits:
            raise RecordError(
                f"partition_by({self.describe()}) gave {_in_a_line(answer)} for a batch of {rows}: it must give "
                "one integer for each",
                origin=self.origin,
            )
        if column.null_count:
            raise RecordError(
                f"partition_by({self.describe()}) gave no number for {column.null_count} of {rows} records: "
                "say where nulls go, for example with coalesce(..., 0)",
                origin=self.origin,
            )
        numbers: Int64s = column.to_numpy().astype(np.int64, copy=False)
        return numbers


def _in_a_line(answer: object) -> str:
    """As text of at most 80 characters: for an array its values, because its own text has several lines."""
    values = answer.tolist() if isinstance(answer, pa.Array | pa.ChunkedArray | np.ndarray) else answer
    return shown(values, 80)
