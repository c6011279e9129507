"""The columns that can be keys, and the conversion of their values for hash tables: int64 numbers or strings.

Equal keys become equal numbers: -0.0 is 0.0, all NaNs are one value, and a null is a key like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Mask
from workbench.errors import PlanError, unknown

_INT64 = pa.int64()
POSSIBLE = "integers, floats, booleans, strings, dates and timestamps can be keys"


def check_keys(keys: Sequence[str], schema: pa.Schema) -> None:
    """Reject key columns that do not exist, occur twice or have a type without a stable hash.

    Raises:
        PlanError: names the column, its type and the possible ones.
    """
    for name in keys:
        if name not in schema.names:
            raise PlanError(unknown("key column", name, schema.names))
        if schema.names.count(name) > 1:
            raise PlanError(f"key column {name!r} occurs {schema.names.count(name)} times: rename one of them")
        kind = schema.field(name).type
        if not can_be_key(kind):
            raise PlanError(f"key column {name!r} has type {kind}: {POSSIBLE}; convert it before key_by")
    if len(set(keys)) < len(keys):
        raise PlanError(f"key_by({', '.join(keys)}) names a column twice: name each key once")


def can_be_key(kind: pa.DataType) -> bool:
    """Whether values of this type have a stable hash."""
    return is_text(kind) or _is_number(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are strings, plain or dictionary-encoded."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    if pa.types.is_float16(kind):  # Arrow cannot compare them
        return False
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp)
    return any(test(kind) for test in tests)


def plain(column: pa.Array) -> pa.Array:
    """The column without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def to_ints(column: pa.Array) -> Int64s:
    """One int64 per value of a column without nulls, equal when the values are equal; without a copy where possible."""
    kind = column.type
    if kind == _INT64:
        plain_numbers: Int64s = column.to_numpy()
        return plain_numbers
    if pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
        values[np.isnan(values)] = np.nan  # one NaN
        values += 0.0  # -0.0 becomes 0.0
        bits: Int64s = values.view(np.int64)
        return bits
    if pa.types.is_boolean(kind):
        truths: Int64s = column.to_numpy(zero_copy_only=False).astype(np.int64)
        return truths
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_temporal(kind) or pa.types.is_uint64(kind):
        column = column.view(pa.int64())
    numbers: Int64s = column.to_numpy()
    return numbers if numbers.dtype == np.int64 else numbers.astype(np.int64)


def from_ints(numbers: Int64s, kind: pa.DataType, null: Mask | None = None) -> pa.Array:
    """The inverse of ``to_ints``: a column of type `kind`, null where `null` is true."""
    if pa.types.is_floating(kind):
        return pa.array(numbers.view(np.float64), mask=null).cast(kind, safe=False)
    column = pa.array(numbers, mask=null)
    if pa.types.is_boolean(kind):
        return column.cast(pa.bool_())
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).view(kind)
    if pa.types.is_temporal(kind) or pa.types.is_uint64(kind):
        return column.view(kind)
    return column.cast(kind)
