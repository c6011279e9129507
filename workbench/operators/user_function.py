"""Calling a user's Python function on records, and saying clearly what went wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from workbench.errors import PlanError, RecordError
from workbench.origin import Origin

Record = dict[str, Any]
"""One record as Python values by column name."""

SchemaLike: TypeAlias = pa.Schema | Mapping[str, pa.DataType]

_SHOWN = 200
_CONVERSION_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    TypeError,
    ValueError,
    OverflowError,
)


def function_name(function: Callable[..., object]) -> str:
    """The name under which a function is shown: its qualified name, or its class's."""
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def declared_schema(schema: SchemaLike, operator: str, origin: Origin | None) -> pa.Schema:
    """The output schema that the user declared, as an Arrow schema.

    Raises:
        PlanError: not a schema, or without columns.
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
    return declared


def shorten(value: object) -> str:
    """The value as text of at most about 200 characters."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True)
class UserFunction:
    """A user's function on records, and what is said when it goes wrong.

    Attributes:
        operator: the operator that calls it, for errors.
        function: takes one record.
        origin: the user's line, or None.
    """

    operator: str
    function: Callable[..., object]
    origin: Origin | None

    def error(self, fact: str) -> RecordError:
        """An error that names the function."""
        return RecordError(f"{self.operator} function {function_name(self.function)!r} {fact}", origin=self.origin)

    def raised(self, record: Record, error: Exception) -> RecordError:
        """The error for an exception in the function."""
        return self.error(f"raised {type(error).__name__}: {error} on record {shorten(record)}")

    def batch(self, rows: Sequence[Record], sources: Sequence[Record], schema: pa.Schema) -> pa.RecordBatch:
        """The rows that the function returned as a batch of `schema`.

        Args:
            rows: what the function returned.
            sources: for each row the record that it was made from.
            schema: the declared one.

        Raises:
            RecordError: a row is not a dict of exactly the schema's columns, or a value does not fit its type.
        """
        names = set(schema.names)
        for row, source in zip(rows, sources, strict=True):
            if not isinstance(row, dict) or row.keys() != names:
                raise self._wrong_columns(row, source, schema)
        columns = [self._column([row[item.name] for row in rows], sources, item) for item in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, values: list[Any], sources: Sequence[Record], item: pa.Field) -> pa.Array:
        # Arrow cuts the fraction off a float that goes into a column of integers.
        if pa.types.is_integer(item.type) and any(issubclass(type_, float) for type_ in set(map(type, values))):
            for value, source in zip(values, sources, strict=True):
                if isinstance(value, float) and not value.is_integer():
                    raise self._unfit(value, source, item)
        try:
            return pa.array(values, item.type)
        except _CONVERSION_ERRORS as error:
            for value, source in zip(values, sources, strict=True):
                try:
                    pa.array([value], item.type)
                except _CONVERSION_ERRORS:
                    raise self._unfit(value, source, item) from error
            raise

    def _unfit(self, value: object, source: Record, item: pa.Field) -> RecordError:
        return self.error(
            f"returned {shorten(value)} for column {item.name!r}, which is declared as {item.type}, "
            f"on record {shorten(source)}"
        )

    def _wrong_columns(self, row: object, source: Record, schema: pa.Schema) -> RecordError:
        found = f"{shorten(row)} ({type(row).__name__})"
        if isinstance(row, dict):
            missing = [name for name in schema.names if name not in row]
            extra = [str(name) for name in row if name not in schema.names]
            faults = [
                f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("has also", extra)) if names
            ]
            found = f"a dict that {' and '.join(faults)}"
        return self.error(
            f"returned {found}, expected a dict with the columns {', '.join(schema.names)}, on record {shorten(source)}"
        )
