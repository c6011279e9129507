"""Entries of a Redis stream as records: fields become columns, and IDs are positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import pyarrow as pa

from workbench.from_arrow import tables_in
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.functions.dead_letters import DeadLetter, as_json, row_bytes
from workbench.raised import fact_of

Entry = tuple[bytes, Mapping[bytes, bytes] | None]
"""An ID and its fields, or None if the entry has been deleted."""
Id = tuple[int, int]

FORMAT = "fields"
"""The format of the bytes of dead letters: an Arrow IPC stream with a map of the fields."""
_FIELDS = pa.map_(pa.binary(), pa.binary())

BEGINNING: Id = (0, 0)
_ID = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")
_MAX = 2**64


def parsed_id(text: str) -> Id:
    """Parse an ID: milliseconds, and a sequence number within the millisecond.

    Raises:
        ValueError: it is not an ID.

    Example:
        >>> parsed_id("1526919030474-55"), parsed_id("7")
        ((1526919030474, 55), (7, 0))
    """
    found = _ID.fullmatch(text)
    if found is None or max(number := (int(found[1]), int(found[2] or 0))) >= _MAX:
        raise ValueError(f"{text[:60]!r} is not the ID of an entry, such as '1526919030474-0'")
    return number


def written_id(position: Id) -> str:
    """The ID as Redis writes it.

    Example:
        >>> written_id((7, 0))
        '7-0'
    """
    return f"{position[0]}-{position[1]}"


def before(position: Id) -> Id:
    """The greatest ID that is less than another one.

    Example:
        >>> before((7, 3)), before((7, 0)) == (6, 2**64 - 1)
        ((7, 2), True)
    """
    time, number = position
    return (time, number - 1) if number else (time - 1, _MAX - 1)


def mark_of(entry: Entry) -> str:
    """A digest of an entry: another stream that has its ID has another one, unless its fields are equal, too.

    Example:
        >>> mark_of((b"7-0", {b"n": b"1"})) == mark_of((b"7-0", {b"n": b"2"}))
        False
    """
    identity, fields = entry
    return blake2b(repr((identity, sorted((fields or {}).items()))).encode(), digest_size=16).hexdigest()


def records(entries: Sequence[Entry], schema: pa.Schema) -> pa.RecordBatch:
    """Convert entries to a batch; a missing field is null, and fields that are not columns are ignored.

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
            if pa.types.is_timestamp(kind) and kind.tz is not None:
                values = values.cast(pa.timestamp(kind.unit, "UTC"))
        columns.append(values.cast(kind))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
