"""Entries of a Redis stream as records: their fields are columns, and their IDs positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from workbench.elements import event_times
from workbench.errors import RecordError, SourceError
from workbench.operators.functions.dead_letters import DeadLetter, as_json
from workbench.raised import first_line_of

Entry = tuple[bytes, Mapping[bytes, bytes] | None]
"""An ID and its fields; None: it was deleted since."""
Id = tuple[int, int]

BEGINNING: Id = (0, 0)
_ID = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")
_MAX = 2**64


def parsed_id(text: str) -> Id:
    """An ID: milliseconds, and a number within them.

    Raises:
        ValueError: not one.

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


def records(entries: Sequence[Entry], schema: pa.Schema, event_time: str | None) -> pa.RecordBatch:
    """Entries as a batch; a missing field is null, and fields that are not columns are ignored.

    Raises:
        pa.ArrowInvalid, RecordError: a value has not the type of its column.

    Example:
        >>> records([(b"1-0", {b"n": b"7"}), (b"2-0", {})], pa.schema({"n": pa.int64()}), None).to_pydict()
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
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    if event_time is not None:
        event_times(batch.column(event_time), event_time)
    return batch


def sorted_out(
    entries: Sequence[Entry], place: str, schema: pa.Schema, event_time: str | None, *, lenient: bool
) -> tuple[pa.RecordBatch, list[bytes], list[DeadLetter]]:
    """The records among some entries, the ID of each, and dead letters of the others.

    Args:
        entries: of one stream.
        place: the stream and its server, for errors.
        schema: of the records.
        event_time: the column with event times, or None.
        lenient: whether entries that are no records become dead letters.

    Raises:
        SourceError: an entry is not a record; names it and its ID.
    """
    good: list[pa.RecordBatch] = []
    ids: list[bytes] = []
    letters: list[DeadLetter] = []
    make = partial(records, schema=schema, event_time=event_time)

    def sort_out(part: Sequence[Entry]) -> None:
        try:
            good.append(make(part))
            ids.extend(name for name, _ in part)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, RecordError) as error:
            if len(part) > 1:
                sort_out(part[: len(part) // 2])
                sort_out(part[len(part) // 2 :])
                return
            name, fields = part[0]
            shown = as_json({_text(field): _text(value) for field, value in (fields or {}).items()})
            where = f"{place}, entry {name.decode()}"
            if not lenient:
                raise SourceError(
                    f"{where} is no record of these columns: {first_line_of(error)}, in {shown[:200]}; mend the writer,"
                    " declare other types, or keep such entries with on_error='dead_letter'"
                ) from error
            letters.append(DeadLetter(first_line_of(error), shown, position=where))

    sort_out(entries)
    batch = pa.concat_batches(good) if good else pa.RecordBatch.from_pylist([], schema=schema)
    return batch, ids, letters


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
