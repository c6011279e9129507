"""Users' functions that take columns by their names: ``def fare(distance, minutes)`` gets two values of each record.

The same text runs in the interpreter, record by record, and compiled, batch by batch, with the same results:

* a value that is null means that the function is not called: what it would have given is null;
* instants and durations are whole microseconds (instants since 1970), both as arguments and as results;
* compiled, the only types are int64, float64 and boolean, and whole numbers beyond int64 wrap around without a word;
  everything else that does not fit its declared column is an error in both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.compiled.machinery.row_loop import NotCompilableError, RowFunction, RowLoop
from workbench.errors import PlanError, unknown
from workbench.operators.functions.column_calls import BoundFunction, CompiledFunction, InterpretedFunction, plain_type
from workbench.operators.functions.user_function import UserFunction, function_name
from workbench.origin import Origin

_DTYPES: dict[pa.DataType, np.dtype[Any]] = {
    pa.bool_(): np.dtype(np.bool_),
    pa.int8(): np.dtype(np.int8),
    pa.int16(): np.dtype(np.int16),
    pa.int32(): np.dtype(np.int32),
    pa.int64(): np.dtype(np.int64),
    pa.uint8(): np.dtype(np.uint8),
    pa.uint16(): np.dtype(np.uint16),
    pa.uint32(): np.dtype(np.uint32),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
}
_COMPILED_TYPES = "integers (but uint64), float32, float64, booleans, timestamps and durations"


def columns_taken(function: Callable[..., Any], schema: pa.Schema) -> tuple[str, ...] | None:
    """The columns that a function takes by the names of its parameters; None when it takes a whole record.

    Every parameter without a default must be a column; one with a default is given the column of its name, if any.

    Example:
        >>> columns_taken(lambda distance, rate=1.2: distance * rate, pa.schema({"distance": pa.float64()}))
        ('distance',)
        >>> columns_taken(lambda record: record["distance"], pa.schema({"distance": pa.float64()}))
    """
    parameters = _parameters(function)
    if parameters is None:
        return None
    if any(item.default is item.empty and item.name not in schema.names for item in parameters):
        return None
    return tuple(item.name for item in parameters if item.name in schema.names) or None


def takes_columns(function: Callable[..., Any], schema: pa.Schema) -> bool:
    """Whether a function is meant for columns and not for a record: it names some, or needs more than one argument."""
    needed = sum(item.default is item.empty for item in _parameters(function) or ())
    return needed > 1 or columns_taken(function, schema) is not None


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return parameters if all(item.kind is item.POSITIONAL_OR_KEYWORD for item in parameters) else None


@dataclass(frozen=True)
class ColumnFunction:
    """A function on columns, bound to an operator.

    Attributes:
        operator: that calls it, for errors.
        function: of the columns that its parameters name; gives one value, or a tuple of as many as are declared.
        compiled: whether it runs as machine code.
        origin: the user's line, or None.
        machine_code: what has been compiled so far.
    """

    operator: str
    function: Callable[..., Any]
    compiled: bool = False
    origin: Origin | None = field(default=None, repr=False, compare=False)
    machine_code: RowFunction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "machine_code", RowFunction(self.function))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(item.name for item in _parameters(self.function) or ())

    def taken(self, schema: pa.Schema) -> tuple[str, ...]:
        """The columns that it takes.

        Raises:
            PlanError: it takes something else; names the parameter that is no column.
        """
        taken = columns_taken(self.function, schema)
        if taken is not None:
            return taken
        strange = next((name for name in self.names if name not in schema.names), None)
        fault = "it names no column" if strange is None else unknown("column", strange, schema.names)
        raise PlanError(
            f"{self.operator} function {function_name(self.function)!r} takes its columns as arguments by their names, "
            f"such as def fare(distance, minutes): {fault}",
            origin=self.origin,
        )

    def bind(self, inputs: pa.Schema, outputs: pa.Schema) -> BoundFunction:
        """What computes the columns `outputs` of a batch of `inputs`.

        Raises:
            PlanError: it takes other columns, or cannot be compiled for these.
        """
        taken = pa.schema([inputs.field(name) for name in self.taken(inputs)])
        user = UserFunction(self.operator, self.function, self.origin)
        if not self.compiled:
            return InterpretedFunction(user, taken, outputs)
        return CompiledFunction(user, taken, outputs, self._loop(taken, outputs))

    def _loop(self, taken: pa.Schema, outputs: pa.Schema) -> RowLoop:
        for item in taken:
            if plain_type(item.type) not in _DTYPES:
                raise self._refused(
                    f"column {item.name!r} is {item.type}, and compiled functions take {_COMPILED_TYPES}: leave out "
                    "compiled=True"
                )
        try:
            loop = self.machine_code.compile({item.name: _DTYPES[plain_type(item.type)] for item in taken})
        except NotCompilableError as error:
            raise self._refused(
                f"{error.reason}; write it otherwise, or leave out compiled=True", error.origin
            ) from error
        if len(loop.values) != len(outputs):
            raise self._refused(
                f"it returns {len(loop.values)} values for the columns {', '.join(outputs.names)}: return one for each"
            )
        for value, item in zip(loop.values, outputs, strict=True):
            if not _fits(value.dtype, plain_type(item.type)):
                raise self._refused(f"it returns {value.dtype} for {item.name!r}, which is declared as {item.type}")
        return loop

    def _refused(self, reason: str, origin: Origin | None = None) -> PlanError:
        return PlanError(
            f"{self.operator} function {function_name(self.function)!r} cannot be compiled: {reason}",
            origin=origin or self.origin,
        )


def _fits(given: np.dtype[Any], declared: pa.DataType) -> bool:
    """Whether values of a compiled function can go into a column at all; each is checked when it comes."""
    if given == np.bool_:
        return bool(pa.types.is_boolean(declared) or pa.types.is_integer(declared))
    return bool(pa.types.is_integer(declared) or declared in (pa.float32(), pa.float64()))
