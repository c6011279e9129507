"""Calling a user's Python function on records, and saying clearly what went wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from workbench.errors import PlanError, RecordError
from workbench.origin import Origin

Record = dict[str, Any]
"""One record as Python values by column name."""

SchemaLike = pa.Schema | Mapping[str, pa.DataType]

_SHOWN = 200


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
    except (AttributeError, TypeError) as error:
        raise PlanError(
            f"{operator} got the schema {schema!r}: pass a pyarrow.Schema or a dict such as {{'origin': pyarrow.string()}}",
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


def raised(
    operator: str, function: Callable[..., object], record: object, error: Exception, origin: Origin | None
) -> RecordError:
    """The error for an exception in a user's function."""
    return RecordError(
        f"{operator} function {function_name(function)!r} raised {type(error).__name__}: {error} on record {shorten(record)}",
        origin=origin,
    )


def build_batch(
    rows: Sequence[Record],
    sources: Sequence[Record],
    schema: pa.Schema,
    operator: str,
    function: Callable[..., object],
    origin: Origin | None,
) -> pa.RecordBatch:
    """The rows that a function returned as a batch of `schema`.

    Args:
        rows: what the function returned.
        sources: for each row the record that it was made from.

    Raises:
        RecordError: a row is not a dict of exactly the schema's columns, or a value does not fit its type.
    """
    names = set(schema.names)
    for row, source in zip(rows, sources, strict=True):
        if not isinstance(row, dict) or row.keys() != names:
            raise _misfit(row, source, schema, operator, function, origin)
    try:
        return pa.RecordBatch.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError, ValueError) as error:
        raise _unfit_value(rows, sources, schema, operator, function, origin) from error


def _misfit(
    row: object,
    source: Record,
    schema: pa.Schema,
    operator: str,
    function: Callable[..., object],
    origin: Origin | None,
) -> RecordError:
    wanted = f"a dict with the columns {', '.join(schema.names)}"
    if isinstance(row, dict):
        missing = [name for name in schema.names if name not in row]
        extra = [str(name) for name in row if name not in schema.names]
        faults = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has the undeclared {', '.join(extra)}"] * bool(
            extra
        )
        found = f"a dict that {' and '.join(faults)}"
    else:
        found = f"{shorten(row)} ({type(row).__name__})"
    return RecordError(
        f"{operator} function {function_name(function)!r} returned {found}, expected {wanted}, on record {shorten(source)}",
        origin=origin,
    )


def _unfit_value(
    rows: Sequence[Record],
    sources: Sequence[Record],
    schema: pa.Schema,
    operator: str,
    function: Callable[..., object],
    origin: Origin | None,
) -> RecordError:
    for row, source in zip(rows, sources, strict=True):
        for item in schema:
            try:
                pa.array([row[item.name]], item.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError, ValueError):
                return RecordError(
                    f"{operator} function {function_name(function)!r} returned {shorten(row[item.name])} for column {item.name!r}, "
                    f"which is declared as {item.type}, on record {shorten(source)}",
                    origin=origin,
                )
    return RecordError(
        f"{operator} function {function_name(function)!r} returned values that do not fit {schema.names}", origin=origin
    )
