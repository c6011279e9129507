"""Columns of DuckDB, and the expressions that read them exactly as an Arrow type.

DuckDB gives Arrow the infinity of a date as an ordinary number, 24:00 as a time, wide integers and intervals wrapped
around, and times with an offset without it. So each column is read by an expression for its type and the declared one,
which fails for such values, and pairs without an exact expression are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded
from workbench.errors import SourceError

_Tests = Sequence[Callable[[pa.DataType], bool]]
_NUMBERS: _Tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_INSTANT: _Tests = (pa.types.is_timestamp,)
_NATIVE: Mapping[str, _Tests] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), _NUMBERS),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), _NUMBERS),
    **dict.fromkeys(("FLOAT", "DOUBLE"), (pa.types.is_integer, pa.types.is_floating)),
    "DECIMAL": (pa.types.is_decimal, pa.types.is_integer),
    "BOOLEAN": (pa.types.is_boolean, pa.types.is_integer),
    "BLOB": BYTES,
    "DATE": (pa.types.is_date, *_INSTANT),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), _INSTANT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"), (*_INSTANT, pa.types.is_int64)),
    **dict.fromkeys(("TIME", "TIME_NS"), (pa.types.is_time,)),
    "INTERVAL": (pa.types.is_interval,),
    '"NULL"': (lambda _: True,),
}
"""By type of a column: the Arrow types that DuckDB's own values are converted to."""
_BY_TEXT: Mapping[str, _Tests] = {
    **dict.fromkeys(("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"), _NUMBERS),
    "DECIMAL": (pa.types.is_floating,),
    **dict.fromkeys(
        ("VARCHAR", "ENUM"),
        (*_NUMBERS, *_INSTANT, pa.types.is_date, pa.types.is_time, pa.types.is_boolean),
    ),
}
"""By type of a column: the Arrow types that are converted from DuckDB's text."""
_ENDLESS = ("DATE", "TIME", "TIMESTAMP")
_HOURS_MAX = 2_562_047
"""Of the nanoseconds in Arrow's intervals."""
_PLAIN_LEAVES: _Tests = (*TEXT, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def expression_of(name: str, kind: str, given: pa.DataType, declared: pa.DataType, quoted: str) -> str:
    """The SQL expression that gives the values of a column for an Arrow type.

    Args:
        name: of the column.
        kind: its type, as DuckDB writes it.
        given: the Arrow type of its own values.
        declared: the Arrow type.
        quoted: the name in SQL.

    Raises:
        SourceError: no expression gives them exactly.

    Example:
        >>> expression_of("n", "HUGEINT", pa.decimal128(38), pa.int64(), '"n"')
        '"n"::VARCHAR'
        >>> expression_of("n", "BIGINT", pa.int64(), pa.int64(), '"n"')
        '"n"'
    """
    target, base = decoded(declared), kind.partition("(")[0]
    if kind == "INTERVAL" and pa.types.is_duration(target):
        lasts = f"datepart('year', {quoted}) <> 0 OR datepart('month', {quoted}) <> 0"
        return _failing(name, lasts, f"epoch_us({quoted})", quoted, "months, whose length varies")
    if any(test(target) for test in _NATIVE.get(base, ())):
        if kind == "INTERVAL":
            wraps = f"abs(datepart('hour', {quoted})) >= {_HOURS_MAX}"
            return _failing(name, wraps, quoted, quoted, "more nanoseconds than Arrow's intervals")
        if base.startswith(_ENDLESS):
            odd = f"{quoted}::VARCHAR IN ('infinity', '-infinity', '24:00:00')"
            return _failing(name, odd, quoted, quoted, f"which {declared} does not have")
        return quoted
    if pa.types.is_nested(target) and target == given and "HUGEINT" not in kind and _is_plain(given):
        return quoted
    if base != "BLOB" and any(test(target) for test in (*TEXT, *_BY_TEXT.get(base, ()))):
        return f"{quoted}::VARCHAR"
    fix = (
        "declare pyarrow.binary()"
        if kind == "BLOB"
        else "declare pyarrow.string() for DuckDB's text of it, or CAST it in a view"
    )
    raise SourceError(f"the column {name!r} is {kind}, which cannot be read exactly as {declared}: {fix}")


_AS_WRITTEN = ("VARCHAR", "UUID", "JSON", "ENUM")


def duckdb_change(quoted: str, given: str, declared: str) -> str:
    """The condition under which a column of a table would hold another value; empty: never, or DuckDB refuses.

    Args:
        quoted: the name of the column in SQL.
        given: the type of the rows, as in a definition.
        declared: that of the column.

    Example:
        >>> duckdb_change('"price"', "DECIMAL(10, 4)", "DECIMAL(5,2)")
        'TRY_CAST(TRY_CAST("price" AS DECIMAL(5,2)) AS DECIMAL(10, 4)) IS DISTINCT FROM "price"'
    """
    if given == "VARCHAR" and declared.partition("(")[0] in _AS_WRITTEN:
        return ""
    return f"TRY_CAST(TRY_CAST({quoted} AS {declared}) AS {given}) IS DISTINCT FROM {quoted}"


def _failing(name: str, condition: str, value: str, quoted: str, reason: str) -> str:
    """An expression that fails for a value."""
    place = f"the column {name!r} has ".replace("'", "''")
    told = f", {reason}: declare pyarrow.string(), or CAST it in a view".replace("'", "''")
    return f"CASE WHEN {condition} THEN error('{place}' || {quoted}::VARCHAR || '{told}') ELSE {value} END"


def _is_plain(kind: pa.DataType) -> bool:
    """Whether all values within a nested type are such that DuckDB gives exactly."""
    if pa.types.is_dictionary(kind) or pa.types.is_union(kind):
        return False
    if not pa.types.is_nested(kind):
        return any(test(kind) for test in _PLAIN_LEAVES)
    if pa.types.is_map(kind):
        return _is_plain(kind.key_type) and _is_plain(kind.item_type)
    return all(_is_plain(kind.field(at).type) for at in range(kind.num_fields))
