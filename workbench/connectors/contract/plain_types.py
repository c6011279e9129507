"""Conversion of columns to types whose rows can be selected, sorted and compared.

Arrow can represent text and bytes as *views*, and values as runs of equal ones, but cannot select rows of either.
Tables of other libraries have such columns (``pyarrow.table(frame)`` of a polars frame has views), so sources convert
them to the plain type with the same values. The field's metadata records a view type, and is kept wherever the column
passes unchanged; sinks that keep Arrow types convert it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_GIVEN = b"workbench:type"
"""Field metadata with the type that a column had in its source, as a serialized schema."""


TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
TypeTests = Mapping[str, Sequence[Callable[[pa.DataType], bool]]]
"""Names of type families, each with the predicates of its types."""


def family_of(kind: pa.DataType, families: TypeTests) -> str | None:
    """The first family that a type belongs to."""
    return next((name for name, tests in families.items() if any(test(kind) for test in tests)), None)


def decoded(kind: pa.DataType) -> pa.DataType:
    """The type of the values, if they are dictionary-encoded."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with the same values whose rows can be selected; most types are plain already.

    Example:
        >>> plain_type(pa.list_(pa.string_view()))
        ListType(list<item: large_string>)
    """
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with columns of plain types, whose metadata records the original types."""
    return pa.schema([_remembering(field) for field in schema], schema.metadata)


def plain_table(table: pa.Table) -> pa.Table:
    """The table with columns of plain types; itself, if all of them are plain.

    Example:
        >>> str(plain_table(pa.table({"word": pa.array(["a"], pa.string_view())})).schema.field(0).type)
        'large_string'
    """
    schema = plain_schema(table.schema)
    if schema.equals(table.schema):
        return table
    columns = [_plain(column, kind) for column, kind in zip(table.columns, schema.types, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def forgetting(schema: pa.Schema) -> pa.Schema:
    """The schema without the recorded types, for display."""
    return pa.schema([_split(field)[0] for field in schema], schema.metadata)


def given_table(table: pa.Table, schema: pa.Schema, *, nested: bool = True) -> pa.Table:
    """The table with the types that its columns had in their sources, for readers outside of the job.

    Args:
        table: the table in the job's types.
        schema: of the same columns, with the recorded types.
        nested: also convert views within lists, structs and maps.

    Example:
        >>> words = pa.table({"word": pa.array(["a"], pa.string_view())})
        >>> given_table(plain_table(words), plain_schema(words.schema)).schema == words.schema
        True
    """
    if not any(_GIVEN in (field.metadata or {}) for field in schema):
        return table
    fields = [_given_field(field, nested) for field in schema]
    columns = [column.cast(field.type) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, schema.metadata))


def _given_field(field: pa.Field, nested: bool) -> pa.Field:
    field, given = _split(field)
    if given is None or not (nested or field.type.num_fields == 0):
        return field
    kind = pa.ipc.read_schema(pa.py_buffer(given)).field(0).type
    # An operator may have changed the type of the column under the same name, as for the keys of an outer join.
    return field.with_type(kind) if plain_type(kind) == field.type else field


def _split(field: pa.Field) -> tuple[pa.Field, bytes | None]:
    """The field without the recorded type, and that type."""
    metadata = dict(field.metadata or {})
    given = metadata.pop(_GIVEN, None)
    return (field if given is None else field.with_metadata(metadata or None)), given


def _remembering(field: pa.Field) -> pa.Field:
    plain = _plain_field(field)
    if plain is field:
        return field
    try:
        pa.nulls(0, plain.type).cast(field.type)
    except pa.ArrowNotImplementedError:  # runs within other values
        return plain
    given = pa.schema([field.remove_metadata()]).serialize().to_pybytes()
    return plain.with_metadata({**(field.metadata or {}), _GIVEN: given})


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    return column if column.type == kind else column.cast(kind)


def _plain_field(field: pa.Field) -> pa.Field:
    kind = plain_type(field.type)
    return field if kind == field.type else field.with_type(kind)
