"""Calls a user's Python function on records, and describes its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from workbench.errors import PlanError, RecordError, as_error
from workbench.operators.contract.python_rows import python_rows, python_values
from workbench.operators.contract.usable_columns import check_usable
from workbench.operators.functions.record_loop import LoopError, ResultError, RowError, ValuesError
from workbench.origin import Origin
from workbench.raised import VALUE_MAX, described, kind_of, one_line, shown
from workbench.state.values import UnfitError, to_array

Record = dict[str, Any]
"""One record as Python values by column name."""

SchemaLike: TypeAlias = pa.Schema | Mapping[str, pa.DataType]

_EXTRA_MAX = 20


def function_name(function: object) -> str:
    """The displayed name of a function: its qualified name, or its class's."""
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) and name else kind_of(function)


def declared_schema(schema: SchemaLike, operator: str, origin: Origin | None) -> pa.Schema:
    """The output schema that the user declared, as an Arrow schema.

    Raises:
        PlanError: not a schema, no columns, two of one name, or times in an unknown time zone.
    """
    try:
        declared = schema if isinstance(schema, pa.Schema) else pa.schema(list(schema.items()))
    except (AttributeError, TypeError, ValueError) as error:
        raise PlanError(
            f"{operator} got the schema {schema!r}: pass a pyarrow.Schema or a dict such as {{'a': pyarrow.string()}}",
            origin=origin,
        ) from error
    if not len(declared):
        raise PlanError(
            f"{operator} declares no columns: pass a pyarrow.Schema or a dict such as {{'origin': pyarrow.string()}}",
            origin=origin,
        )
    check_usable(declared, f"the schema of {operator}", origin)
    return declared


def on_record(batch: pa.RecordBatch, at: int) -> str:
    """``on record {...}`` for row `at`."""
    return f"on record {shown(record_at(batch, at))}"


def record_at(batch: pa.RecordBatch, at: int) -> Record:
    """Row `at` as Python values; a value that Python cannot represent, such as a time after the year 9999, as text."""
    return python_rows(batch.slice(at, 1))[0]


class UnfitRowError(RecordError):
    """A value that a function returned does not fit its column.

    Attributes:
        row: its index among the returned rows.
    """

    def __init__(self, message: str, row: int, *, origin: Origin | None) -> None:
        super().__init__(message, origin=origin)
        self.row = row


class FailedRowError(RecordError):
    """A function failed on a record whose index in the batch is known.

    Args:
        error: the message.

    Attributes:
        at: the index.
    """

    def __init__(self, error: RecordError, at: int) -> None:
        super().__init__(error.message, origin=error.origin)
        self.at = at


@dataclass(frozen=True)
class UserFunction:
    """A user's function on records, and its error messages.

    Attributes:
        operator: the operator that calls it, for errors.
        function: a callable, or an object with the methods to call.
        origin: the user's line, or None.
    """

    operator: str
    function: object
    origin: Origin | None

    def error(self, fact: str) -> RecordError:
        """An error that names the function."""
        return RecordError(f"{self.operator} function {function_name(self.function)!r} {fact}", origin=self.origin)

    def failed(self, failure: LoopError, schema: pa.Schema, expected: str = "an iterable of dicts") -> RecordError:
        """The error for a loop that stopped.

        Args:
            failure: what it raised.
            schema: the declared one.
            expected: what the function may return, if it may return several rows.
        """
        return self.explained(failure.cause, f"on record {shown(failure.record)}", schema, expected)

    def explained(self, error: BaseException, where: str, schema: pa.Schema, expected: str) -> RecordError:
        """The error for a failed call; `where` names the record, such as ``on record {...}``."""
        if isinstance(error, ValuesError):
            return self.error(
                f"returned {shown(error.row)} ({kind_of(error.row)}), expected a tuple of {len(schema)} values for the "
                f"columns {', '.join(schema.names)}, {where}"
            )
        if isinstance(error, ResultError) or (isinstance(error, RowError) and type(error.row) in (str, bytes)):
            result = error.result if isinstance(error, ResultError) else error.row
            return self.error(
                f"returned {shown(result)} ({kind_of(result)}), expected {expected}, {where}: "
                "return a list or use yield"
            )
        if isinstance(error, RowError):
            return self.error(f"returned {wrong_row(error.row, schema)}, {where}")
        return self.raised(error, where)

    def raised(self, error: BaseException, where: str) -> RecordError:
        """The error for an exception in a call; `where` names the record, such as ``on record {...}``."""
        fact = f"raised {described(error)} {where}"
        if not isinstance(error, Exception):
            fact = f"failed {where}: {as_error(error)}"
        explained = self.error(fact)
        explained.__cause__ = error
        return explained

    def values(self, batch: pa.RecordBatch) -> list[list[Any]]:
        """The columns of a batch as the function receives them, one list of Python values per column.

        Raises:
            RecordError: a value that Python cannot represent, such as an instant after the year 9999.
        """
        try:
            return [column.to_pylist() for column in batch.columns]
        except (OverflowError, ValueError):
            pass
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.to_pylist()
            except (OverflowError, ValueError) as error:
                at = next(at for at, item in enumerate(column) if not _has_value(item))
                raise self.error(
                    f"cannot receive {python_values(column.slice(at, 1))[0]} in column {name!r}, which is out of the "
                    f"range of Python's values of {column.type} ({error}): cast the column to int64 or string first"
                ) from None
        raise AssertionError("every column has values")

    def batch(self, columns: Sequence[list[Any]], schema: pa.Schema, where: Callable[[int], str]) -> pa.RecordBatch:
        """The rows that the function returned, as a batch of `schema`.

        Args:
            columns: their values, one list per column.
            schema: the declared one.
            where: describes the input of row i, such as ``on record {...}``.

        Raises:
            UnfitRowError: a value does not fit its column.
        """
        try:
            arrays = [to_array(values, item.type) for values, item in zip(columns, schema, strict=True)]
        except UnfitError:
            raise self._unfit(columns, schema, where) from None
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _unfit(self, columns: Sequence[list[Any]], schema: pa.Schema, where: Callable[[int], str]) -> UnfitRowError:
        """The error for the first value that does not fit."""
        for values, item in zip(columns, schema, strict=True):
            try:
                to_array(values, item.type)
            except UnfitError as unfit:
                fact = self.error(
                    f"returned {shown(unfit.value)} for column {item.name!r}, which is declared as {item.type}, "
                    f"{where(unfit.at)}"
                )
                return UnfitRowError(fact.message, unfit.at, origin=self.origin)
        raise AssertionError("every value fits")


def _has_value(item: pa.Scalar) -> bool:
    try:
        item.as_py()
    except (OverflowError, ValueError):
        return False
    return True


def wrong_row(row: object, schema: pa.Schema) -> str:
    """What a row is, if not a dict of exactly the columns of `schema`."""
    found = f"{shown(row)} ({kind_of(row)})"
    with suppress(Exception):  # it may be a user's own mapping
        if isinstance(row, Mapping):
            missing = [name for name in schema.names if name not in row]
            extra = [name for name in islice(row, _EXTRA_MAX) if name not in schema.names]
            also = [one_line(name, VALUE_MAX) if isinstance(name, str) else shown(name) for name in extra]
            faults = [f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("has also", also)) if names]
            found = f"a dict that {' and '.join(faults)}"
    return f"{found}, expected a dict with the columns {', '.join(schema.names)}"
