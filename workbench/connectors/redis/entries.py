"""Entries of a Redis stream as records: fields become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import pyarrow as pa

from workbench.connectors.files.exact_cast import exact_cast
from workbench.connectors.files.file_format import AdvisedError
from workbench.connectors.files.json_times import SAY, TimeUnit
from workbench.from_arrow import tables_in
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.functions.dead_letters import DeadLetter, as_json, row_bytes
from workbench.raised import fact_of

Entry = tuple[bytes, Mapping[bytes, bytes] | None]
"""An ID and its fields, or None if the entry has been deleted."""

FORMAT = "fields"
"""The format of the bytes of dead letters: an Arrow IPC stream with a map of the fields."""
_FIELDS = pa.map_(pa.binary(), pa.binary())


def mark_of(entry: Entry) -> str:
    """A digest of an entry: another stream that has its ID has another one, unless its fields are equal, too.

    Example:
        >>> mark_of((b"7-0", {b"n": b"1"})) == mark_of((b"7-0", {b"n": b"2"}))
        False
    """
    identity, fields = entry
    return blake2b(repr((identity, sorted((fields or {}).items()))).encode(), digest_size=16).hexdigest()


def records(entries: Sequence[Entry], schema: pa.Schema, unit: TimeUnit | None = None) -> pa.RecordBatch:
    """Convert entries to a batch; a missing field is null, and fields that are not columns are ignored.

    Args:
        entries: of one stream.
        schema: of the batch.
        unit: what numbers in columns of timestamps count, since 1970 in UTC; None: they are refused.

    Raises:
        pa.ArrowInvalid: a value does not have the type of its column.

    Example:
        >>> records([(b"1-0", {b"n": b"7"}), (b"2-0", {})], pa.schema({"n": pa.int64()})).to_pydict()
        {'n': [7, None]}
    """
    columns = []
    for column in schema:
        name = column.name.encode()
        values = pa.array([(fields or {}).get(name) for _, fields in entries], pa.binary())
        kind = column.type
        if not pa.types.is_binary(kind):
            values = values.cast(pa.string())
        columns.append(_times(values, column, unit) if pa.types.is_timestamp(kind) else values.cast(kind))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _times(texts: pa.Array, column: pa.Field, unit: TimeUnit | None) -> pa.Array:
    kind = column.type
    try:
        return texts.cast(kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")).cast(kind)
    except pa.ArrowInvalid:
        try:
            numbers = texts.cast(pa.int64())
        except pa.ArrowInvalid:
            numbers = None
        if numbers is None:
            raise
        if unit is None:
            raise AdvisedError(f"the column {column.name!r} is a timestamp, and its value is a number: {SAY}") from None
    return exact_cast(numbers.cast(pa.timestamp(unit, kind.tz)), column)


def position_of(entry: Entry, stream: str, server: object) -> Position:
    """The position of an entry of a stream."""
    identity = entry[0].decode()
    return Position(f"{stream} of {server}, entry {identity}", Parts("redis", stream, id=identity))


def letter_of(entry: Entry, place: str, error: Exception) -> DeadLetter:
    """The dead letter of an entry: its fields as JSON text, and exactly.

    Example:
        >>> letter = letter_of((b"1-0", {b"n": b"7"}), "clicks, entry 1-0", ValueError("no number"))
        >>> letter.record, fields_in(letter.raw)
        ('{"n": "7"}', {b'n': b'7'})
    """
    fields = entry[1] or {}
    shown = as_json({_text(field): _text(value) for field, value in fields.items()})
    raw = row_bytes(pa.record_batch([pa.array([list(fields.items())], _FIELDS)], ["fields"]), 0)
    return DeadLetter(fact_of(error), shown, raw, FORMAT, position=place)


def fields_in(raw: bytes) -> dict[bytes, bytes]:
    """The fields of an entry in the bytes of a dead letter.

    Raises:
        ValueError: the bytes hold something else.
    """
    tables = list(tables_in(raw))
    if len(tables) != 1 or tables[0].schema.types != [_FIELDS] or tables[0].num_rows != 1:
        raise ValueError("it does not hold the fields of one entry")
    return dict(tables[0].column(0)[0].as_py())


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
