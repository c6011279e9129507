"""Arrow tables with one thing changed, and IPC streams with messages dropped, doubled, moved or edited."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa

from . import octets, values

TYPES = (
    *(pa.null(), pa.bool_(), pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.binary(3), pa.date32(), pa.timestamp("s")),
    *(
        pa.timestamp("ns"),
        pa.timestamp("us", "UTC"),
        pa.duration("us"),
        pa.time64("us"),
    ),
    *(pa.decimal128(38, 10), pa.decimal256(76, 0), pa.list_(pa.int64()), pa.large_list(pa.string())),
    *(pa.list_(pa.int64(), 2), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())),
    *(pa.dictionary(pa.int32(), pa.string()), pa.string_view(), pa.month_day_nano_interval()),
    pa.dense_union([pa.field("a", pa.int64())]),
)
_TYPES: tuple[pa.DataType, ...] = TYPES


def changed(chance: Random, table: pa.Table) -> pa.Table:
    """A table with other columns, types, values or rows, most likely."""
    if not table.num_columns:
        return pa.table({"x": [1]})
    at = chance.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match chance.randrange(10):
        case 0 | 1 | 2:
            return table.set_column(at, name, _of_type(chance.choice(_TYPES), column))
        case 3:
            return table.remove_column(at)
        case 4:
            return table.add_column(chance.randrange(table.num_columns + 1), name, column)
        case 5:
            return table.rename_columns([_name(chance, old) if old == name else old for old in table.column_names])
        case 6:
            return table.select(chance.sample(range(table.num_columns), table.num_columns))
        case 7:
            return _other_rows(chance, table)
        case 8:
            key = chance.choice(("workbench.repeats", "pandas", "ARROW:extension:name", "x"))
            return table.replace_schema_metadata({key: values.as_text(chance, {"columns": table.column_names})})
    return table.set_column(at, name, _other_values(chance, column))


def _name(chance: Random, old: str) -> str:
    new = chance.choice((*values.NAMES, old.upper(), old * 2))
    return new.encode("utf-8", "replace").decode()


def _of_type(kind: pa.DataType, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in another type, of nulls where its values have none there."""
    with suppress(pa.ArrowException):
        return column.cast(kind, safe=False)
    return pa.chunked_array([pa.nulls(len(column), kind)])


def _other_rows(chance: Random, table: pa.Table) -> pa.Table:
    rows = table.num_rows
    orders: tuple[Callable[[], Any], ...] = (
        lambda: table.slice(chance.randrange(rows + 1)),
        lambda: table.slice(0, 0),
        lambda: pa.concat_tables([table] * 3),
        lambda: table.take(pa.array(chance.sample(range(rows), rows), pa.int64())),
        lambda: pa.concat_tables(
            [table, pa.table({n: pa.nulls(1, k) for n, k in _fields(table)}, schema=_nullable(table))]
        ),
    )
    with suppress(pa.ArrowException, ValueError):
        return chance.choice(orders)()
    return table.slice(0, 0)


def _fields(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in table.schema]


def _nullable(table: pa.Table) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in table.schema])


def _other_values(chance: Random, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """One value of the column is another: as large, small, long or odd as its type takes."""
    if not 0 < len(column) < 10_000:
        return column
    found = column.to_pylist()
    at = chance.randrange(len(found))
    for _ in range(20):
        new = chance.choice((None, *values.NUMBERS, *values.NAMES[:40], b"\xff", True, [], {}))
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.chunked_array([pa.array([*found[:at], new, *found[at + 1 :]], column.type)])
    return column


def changed_stream(chance: Random, data: bytes) -> bytes:
    """The bytes of IPC streams, one behind the other, with a message dropped, doubled, moved or edited."""
    messages = _messages(data)
    if len(messages) < 2:
        return octets.changed(chance, data)
    at, other = chance.randrange(len(messages)), chance.randrange(len(messages))
    match chance.randrange(6):
        case 0:
            del messages[at]
        case 1:
            messages.insert(other, messages[at])
        case 2:
            messages[at], messages[other] = messages[other], messages[at]
        case 3:
            messages[at] = octets.changed(chance, messages[at])
        case _:  # sizes, counts and offsets stand in front of the body
            size = 8 + int.from_bytes(messages[at][4:8], "little")
            messages[at] = octets.with_integer(chance, messages[at][:size]) + messages[at][size:]
    return b"".join(messages)


def _messages(data: bytes) -> list[bytes]:
    """The messages of IPC streams; the ends of streams are such, too."""
    found: list[bytes] = []
    at = 0
    while data[at : at + 4] == b"\xff\xff\xff\xff":
        size = 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        if size > 8:
            try:
                message = pa.ipc.read_message(pa.py_buffer(data[at:]))
            except (pa.ArrowException, OSError, EOFError):
                break
            size += message.body.size if message.body is not None else 0
        found.append(data[at : at + size])
        at += size
    return [*found, data[at:]] if at < len(data) else found
