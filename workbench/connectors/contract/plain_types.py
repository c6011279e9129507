"""Columns as types whose rows can be chosen, put in order and compared.

Arrow can hold text and bytes as *views*, and values as runs of equal ones, but it cannot take rows of either. Tables of
other libraries have such columns (``pyarrow.table(frame)`` of a polars frame has views), so what comes from outside is
brought into the plain form of the same values.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that holds the same values and of which rows can be taken; most types are that already.

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
    """The schema with columns of plain types."""
    return pa.schema([_plain_field(field) for field in schema], schema.metadata)


def plain_table(table: pa.Table) -> pa.Table:
    """The table with columns of plain types; itself, if it has no others.

    Example:
        >>> str(plain_table(pa.table({"word": pa.array(["a"], pa.string_view())})).schema.field(0).type)
        'large_string'
    """
    schema = plain_schema(table.schema)
    if schema.equals(table.schema):
        return table
    columns = [_plain(column, kind) for column, kind in zip(table.columns, schema.types, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    return column if column.type == kind else column.cast(kind)


def _plain_field(field: pa.Field) -> pa.Field:
    kind = plain_type(field.type)
    return field if kind == field.type else field.with_type(kind)
