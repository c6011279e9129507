"""Columns of PostgreSQL, and the expressions that read them exactly as an Arrow type.

The driver passes values of types that it does not know as the bytes of the wire, money as cents, and the infinity of a
date as an ordinary number. So each column is read by an expression that depends on its type and on the declared one,
and pairs without an exact expression are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded
from workbench.errors import SourceError

SETTINGS = (
    "SELECT set_config('TimeZone', 'UTC', false), set_config('DateStyle', 'ISO, YMD', false), "
    "set_config('IntervalStyle', 'postgres', false), set_config('extra_float_digits', '1', false)"
)
"""Of a session, so that texts of values do not depend on the server's settings."""

COLUMNS = """
WITH RECURSIVE named (name, kind, declared) AS (
    SELECT attname, atttypid, format_type(atttypid, atttypmod)
    FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT n.name, t.typbasetype, n.declared
    FROM named AS n JOIN pg_type AS t ON t.oid = n.kind WHERE t.typtype = 'd'
)
SELECT n.name::text AS name, format_type(n.kind, NULL) AS type, t.typtype::text AS class, n.declared AS declared
FROM named AS n JOIN pg_type AS t ON t.oid = n.kind WHERE t.typtype <> 'd'
"""
"""The columns of the table ``$1``: their types below domains, and as they are declared."""

_INTEGER, _FLOAT = (pa.types.is_integer,), (pa.types.is_floating,)
_DECIMAL, _INSTANT = (pa.types.is_decimal,), (pa.types.is_timestamp,)
_Tests = Sequence[Callable[[pa.DataType], bool]]
_NATIVE: Mapping[str, _Tests] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), (*_INTEGER, *_FLOAT, *_DECIMAL, *TEXT)),
    **dict.fromkeys(("real", "double precision"), (*_INTEGER, *_FLOAT)),
    "boolean": (pa.types.is_boolean, *_INTEGER),
    **dict.fromkeys(
        ("text", "character varying", "character", "name"),
        (*TEXT, *_INTEGER, *_FLOAT, *_DECIMAL, pa.types.is_date, pa.types.is_time, *_INSTANT, pa.types.is_boolean),
    ),
    "bytea": BYTES,
    "date": (pa.types.is_date, *_INSTANT),
    "timestamp without time zone": (*_INSTANT, pa.types.is_int64),
    "timestamp with time zone": (*_INSTANT, pa.types.is_int64),
    "time without time zone": (pa.types.is_time,),
    "interval": (pa.types.is_interval,),
    "uuid": (pa.types.is_fixed_size_binary,),
}
"""By type of a column: the Arrow types that the driver's own values are converted to."""
_CASTS: Mapping[tuple[str, str], str] = {
    ("numeric", "decimal"): "text",
    ("numeric", "integer"): "text",
    ("numeric", "floating"): "float8",
    ("money", "decimal"): "numeric::text",
    ("oid", "integer"): "bigint",
}
_FAMILIES: Mapping[str, _Tests] = {"decimal": _DECIMAL, "integer": _INTEGER, "floating": _FLOAT}
_ELEMENTS = ("smallint", "integer", "bigint", "real", "double precision", "boolean", "text", "character varying")


def expression_of(name: str, kind: str, kind_class: str, declared: pa.DataType, quoted: str) -> str:
    """The SQL expression that gives the values of a column for an Arrow type.

    Args:
        name: of the column.
        kind: its type, as of ``format_type``.
        kind_class: the type's class, as of ``pg_type.typtype``.
        declared: the Arrow type.
        quoted: the name in SQL.

    Raises:
        SourceError: no expression gives them exactly.

    Example:
        >>> expression_of("ident", "uuid", "b", pa.string(), '"ident"')
        '"ident"::text'
        >>> expression_of("ident", "bigint", "b", pa.int64(), '"ident"')
        '"ident"'
    """
    target = decoded(declared)
    is_list = pa.types.is_list(target) or pa.types.is_large_list(target)
    if is_list and kind.removesuffix("[]") in _ELEMENTS and kind.endswith("[]"):
        # The driver makes one dimension of several. No expression of PostgreSQL fails with a sentence of one's own.
        fault = f"the column {name!r} has an array of several dimensions, ".replace("'", "''")
        fails = f"(('{fault}' || {quoted}::text)::date::text)::{kind}"
        return f"CASE WHEN array_ndims({quoted}) > 1 THEN {fails} ELSE {quoted} END"
    if any(test(target) for test in _NATIVE.get("text" if kind_class == "e" else kind, ())):
        return quoted
    family = next((each for each, tests in _FAMILIES.items() if any(test(target) for test in tests)), "")
    if (cast := _CASTS.get((kind, family))) is not None:
        return f"{quoted}::{cast}"
    if any(test(target) for test in TEXT) and kind == "inet":  # whose cast adds a mask
        return f"CASE WHEN {quoted} IS NULL THEN NULL ELSE format('%s', {quoted}) END"
    if any(test(target) for test in TEXT) and kind != "bytea":
        return f"{quoted}::text"
    fix = (
        "declare pyarrow.binary(), or read a column with encode(...)"
        if kind == "bytea"
        else "declare pyarrow.string() for PostgreSQL's text of it, and CAST that"
    )
    raise SourceError(f"the column {name!r} is {kind}, which cannot be read exactly as {declared}: {fix}")


def selected(found: pa.Table, schema: pa.Schema, table: str) -> str:
    """The list of a ``SELECT`` that gives the declared columns of a table.

    Args:
        found: the rows of `COLUMNS`.
        schema: the declared columns.
        table: its name, for messages.

    Raises:
        SourceError: a column cannot be read exactly as its declared type.
    """
    kinds = {row["name"]: row for row in found.to_pylist()}
    expressions = []
    for field in schema:
        name = _quoted(field.name)
        if (row := kinds.get(field.name)) is None:
            expressions.append(name)  # the server says that it does not exist, or has it otherwise
            continue
        try:
            expression = expression_of(field.name, row["type"], row["class"], field.type, name)
        except SourceError as error:
            raise SourceError(f"cannot read {table!r}: {error.message}") from None
        expressions.append(f"{expression} AS {name}")
    return ", ".join(expressions)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def compared(kind: str, kind_class: str, parameter: str) -> str:
    """A parameter as a value that a column can be compared with: of types that Arrow has not, from their text.

    Args:
        kind, kind_class: as of `expression_of`.
        parameter: such as ``$1``.

    Example:
        >>> compared("uuid", "b", "$1"), compared("bigint", "b", "$1")
        ('$1::text::uuid', '$1')
    """
    is_native = kind_class != "e" and kind in _NATIVE and kind not in ("uuid", "interval")
    return parameter if is_native or kind in ("numeric", "oid", "money") else f"{parameter}::text::{kind}"
