"""Entries of a Redis stream as records: fields become columns, and IDs are positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import pyarrow as pa

from workbench.operators.functions.dead_letters import as_json

Entry = tuple[bytes, Mapping[bytes, bytes] | None]
"""An ID and its fields, or None if the entry has been deleted."""
Id = tuple[int, int]

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


def shown(entry: Entry) -> str:
    """An entry's fields as JSON text.

    Example:
        >>> shown((b"1-0", {b"n": b"7"}))
        '{"n": "7"}'
    """
    return as_json({_text(field): _text(value) for field, value in (entry[1] or {}).items()})


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
