"""How operators call a user's function: once per record, or compiled, once per batch.

The convention is the same for all operators. Without `columns` the function receives the record, a dict, and returns a
record. With `columns` it receives the values of these columns as its arguments, in that order, and returns the value of
the declared column, or a tuple with a value for each. A null is None, and an instant is a ``datetime``: with the zone
of its column, or without one where the column has none.

Machine code has neither None nor datetimes. So a compiled function is not called for a record with a null among its
columns, whose results are null, and its instants and durations are whole microseconds (since 1970).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from workbench.arguments import as_given
from workbench.compiled.machinery.row_loop import NotCompilableError, RowFunction, RowLoop
from workbench.elements import Int64s, Records
from workbench.errors import PlanError, unknown
from workbench.operators.contract.base import OperatorContext, Output
from workbench.operators.functions.compiled_calls import CompiledCalls, plain_type
from workbench.operators.functions.dead_letters import OnError, PoisonRecords, check_on_error, side_schemas
from workbench.operators.functions.record_loop import CHUNK, call_loop, chunks
from workbench.operators.functions.user_function import UserFunction, function_name
from workbench.origin import Origin

_DTYPES: dict[pa.DataType, np.dtype[Any]] = {
    kind: np.dtype(kind.to_pandas_dtype())
    for kind in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.float32(), pa.float64()),
    )
}
_COMPILED_TYPES = "integers except uint64, float32, float64, booleans, timestamps and durations"


@dataclass(frozen=True)
class CalledFunction:
    """A user's function, its arguments, and what happens to a record for which it fails.

    Attributes:
        operator: the operator that calls it, for errors.
        function: of a record, or of the values of `columns`.
        columns: its arguments, in this order; None: it takes the record.
        compiled: whether it runs as machine code; it then takes columns.
        on_error: what happens to a record for which it raises or returns something else. A compiled function is called
            again for some of the records of the same batch.
        origin: the user's line, or None.
        machine_code: what has been compiled so far.

    Example:
        >>> late = CalledFunction("filter", lambda delay: delay > 15, ("dep_delay",))
        >>> schema = pa.schema({"origin": pa.string(), "dep_delay": pa.int64()})
        >>> calls = late.bind(schema, pa.schema({"late": pa.bool_()}), values=True)
        >>> made, parents = calls(Records(pa.record_batch([["JFK", "LGA"], [20, 3]], schema=schema)))
        >>> made.column("late").to_pylist()
        [True, False]
    """

    operator: str
    function: Callable[..., Any]
    columns: tuple[str, ...] | None = None
    compiled: bool = False
    on_error: OnError = "fail"
    origin: Origin | None = field(default=None, repr=False, compare=False)
    machine_code: RowFunction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "machine_code", RowFunction(self.function))

    @property
    def name(self) -> str:
        """The displayed name."""
        return function_name(self.function)

    def side_schemas(self) -> Mapping[str, pa.Schema]:
        """The side output of its dead letters."""
        return side_schemas(self.on_error)

    def columns_read(self) -> frozenset[str] | None:
        """The columns that it takes; None where it takes the record."""
        return None if self.columns is None else frozenset(self.columns)

    def check(self, inputs: pa.Schema, outputs: pa.Schema) -> None:
        """Reject a function that cannot be called for records of `inputs` to return `outputs`.

        Raises:
            PlanError: an unknown column or policy, a function of other arguments, or one that cannot be compiled.
        """
        check_on_error(self.on_error, self.origin)
        if not callable(self.function):
            raise PlanError(f"{self.operator} got {as_given(self.function)}: pass a function", origin=self.origin)
        if self.columns is None:
            if self.compiled:
                raise self._refused("it takes a record: name the columns that it takes, such as columns=['dep_delay']")
            self._check_arguments(({},), "a record", ": name the columns that it takes, such as columns=['dep_delay']")
            return
        for name in self.columns:
            if name not in inputs.names:
                raise PlanError(unknown("column", name, inputs.names), origin=self.origin)
        taken = f"the columns {', '.join(self.columns)}" if self.columns else "no column"
        self._check_arguments(self.columns, taken, "")
        if self.compiled:
            self._loop(inputs, outputs)

    def _check_arguments(self, arguments: Sequence[object], what: str, hint: str) -> None:
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return  # written in C: its signature is not known
        try:
            signature.bind(*arguments)
        except TypeError as error:
            raise PlanError(
                f"{self.operator} function {self.name!r} cannot be called with {what} ({error}){hint}",
                origin=self.origin,
            ) from None

    def bind(self, inputs: pa.Schema, outputs: pa.Schema, *, values: bool = False, several: bool = False) -> Calls:
        """The object that calls the function for batches of `inputs` and returns columns `outputs`.

        Args:
            inputs: the columns at hand.
            outputs: the declared ones.
            values: it returns values even where it takes a record.
            several: it returns any number of rows for each record.
        """
        user = UserFunction(self.operator, self.function, self.origin)
        poison = PoisonRecords(self.on_error, user)
        if self.compiled:
            assert self.columns is not None
            taken = pa.schema([inputs.field(name) for name in self.columns])
            return CompiledCalls(user, poison, taken, outputs, self._loop(inputs, outputs))
        return RecordCalls(self, user, poison, inputs, outputs, values=values, several=several)

    def _loop(self, inputs: pa.Schema, outputs: pa.Schema) -> RowLoop:
        assert self.columns is not None
        kinds = [(name, plain_type(inputs.field(name).type)) for name in self.columns]
        for name, kind in kinds:
            if kind not in _DTYPES:
                raise self._refused(
                    f"column {name!r} is {kind}, and compiled functions take {_COMPILED_TYPES}: leave out compiled=True"
                )
        try:
            loop = self.machine_code.compile([_DTYPES[kind] for _, kind in kinds])
        except NotCompilableError as error:
            raise self._refused(f"{error.reason}; rewrite it, or leave out compiled=True", error.origin) from error
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
            f"{self.operator} function {self.name!r} cannot be compiled: {reason}", origin=origin or self.origin
        )


class RecordCalls:
    """Calls a function once per record."""

    def __init__(
        self,
        called: CalledFunction,
        user: UserFunction,
        poison: PoisonRecords,
        inputs: pa.Schema,
        outputs: pa.Schema,
        *,
        values: bool,
        several: bool,
    ) -> None:
        columns = called.columns
        self._function = called.function
        self._user = user
        self._poison = poison
        self._taken = inputs.names if columns is None else columns
        self._outputs = outputs
        self._several = several
        taken = pa.schema([inputs.field(name) for name in self._taken])
        of_values = columns is not None
        self._loop = call_loop(taken, outputs, of_values=of_values, values=values or of_values, several=several)

    def open(self, context: OperatorContext) -> None:
        """Receive the operator's context, which dead letters need."""
        self._poison.open(context)

    def __call__(self, records: Records) -> tuple[pa.RecordBatch, Int64s | None]:
        """The declared columns, and the index of the record that each row came from; None: row i came from record i.

        Raises:
            RecordError: the function fails on a record that does not become a dead letter.
        """
        made = [(at, *self._rows(records.slice(at, CHUNK), at)) for at in chunks(records)]
        if len(made) == 1:
            return made[0][1:]
        batch = pa.concat_batches([rows for _, rows, _ in made])
        if all(parents is None for *_, parents in made):
            return batch, None
        places = [at + (np.arange(rows.num_rows) if parents is None else parents) for at, rows, parents in made]
        return batch, np.concatenate(places)

    def send(self, out: Output, records: Records) -> None:
        """Emit the dead letters among these records."""
        self._poison.send(out, with_times=records.timestamps is not None)

    def _rows(self, records: Records, first: int) -> tuple[pa.RecordBatch, Int64s | None]:
        made: list[list[Any]] = [[] for _ in self._outputs]
        ends: list[int] = []  # the number of rows after each record, where it returns any number

        def rows_before(at: int, failures: int) -> int:
            if not self._several:
                return at - failures
            ends.append(ends[-1] if ends else 0)  # rows that it returned before it failed are removed
            return ends[-1]

        failed = self._poison.loop(
            records,
            self._user.values(records.batch.select(self._taken)),
            lambda columns: self._loop(self._function, columns, made, ends),
            made,
            rows_before,
            lambda failure: self._user.failed(failure, self._outputs),
            first,
        )
        parents: Int64s | None = None
        if self._several:
            parents = np.repeat(np.arange(len(records)), np.diff(ends, prepend=0))
        elif failed:
            parents = np.delete(np.arange(len(records)), failed)
        return self._poison.batch(records, made, self._outputs, parents, first)


Calls: TypeAlias = RecordCalls | CompiledCalls
"""A function bound to the columns at hand."""


def _fits(given: np.dtype[Any], declared: pa.DataType) -> bool:
    """Whether values of a compiled function can be stored in a column at all; each value is checked later."""
    if given == np.bool_:
        return bool(pa.types.is_boolean(declared) or pa.types.is_integer(declared))
    return bool(pa.types.is_integer(declared) or declared in (pa.float32(), pa.float64()))
