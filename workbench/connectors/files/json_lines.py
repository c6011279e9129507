"""Rows as JSON objects, one per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from workbench.connectors.contract.text_check import check_text
from workbench.connectors.files.exact_cast import exact_cast
from workbench.connectors.files.file_format import (
    BLOCK_BYTES,
    AdvisedError,
    Part,
    in_one_batch,
    open_text,
    reading,
    whole,
    without,
)
from workbench.connectors.files.guesses import check_exact, guessed_schema
from workbench.connectors.files.json_times import TimeUnit, has_times, told, with_numbers
from workbench.connectors.files.record_limit import record_bytes, too_large
from workbench.errors import SourceError
from workbench.raised import first_line_of

_SHOWN = 80
_DEPTH_MAX = 100
_NULL = "null is not a JSON object"
_EMPTY_BYTES = 8
"""Bytes of memory of a value that is missing or empty."""
_LONG = re.compile(rb"[0-9]{16}")
"""In integers that no double may equal."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NULL_FIRST = re.compile(rb"(\xef\xbb\xbf)?\s*null")
_NULL_RECORD = re.compile(rb"\}\s*null")
"""Takes as long as parsing, so it is searched for only where it could produce a row."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Newline-delimited JSON; missing values are null, and values without a column are ignored.

    Attributes:
        unit: what numbers in columns of timestamps count; None: they are refused.
    """

    unit: TimeUnit | None = None

    def schema(self, path: Path) -> pa.Schema:
        with reading(path), open_text(path) as stream:
            block = next(_blocks(stream), b"")
            if not block.strip():
                raise SourceError(f"{path} is empty, so its columns are unknown: name them with schema=...")
            _check_first(block)
            if (depth := _depth(block)) > _DEPTH_MAX:
                raise SourceError(
                    f"{path} has values that are nested {depth:,} levels deep, and columns can be inferred up to "
                    f"{_DEPTH_MAX} levels: declare them with schema=..."
                )
            table = pj.read_json(pa.BufferReader(block), pj.ReadOptions(block_size=len(block) + 1))
            # Names that are not UTF-8 raise an error only when they are converted.
            if _LONG.search(block):
                _check_integers(path, block, table.schema)
            return guessed_schema(table)

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        with reading(path):
            parse_json(b"{}\n", schema)  # rejects types that JSON cannot represent, before reading
            return [whole(path)]

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        with reading(part.path), open_text(part.path) as stream:
            yield from without(self._parsed(part.path, stream, schema), skip)

    def _parsed(self, path: Path, stream: pa.NativeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        line = 1
        for block in _blocks(stream):
            try:
                yield parse_json(block, schema, self.unit)
            except pa.ArrowInvalid as error:
                place, text, own = _culprit(block, schema, self.unit, error)
                shown = f" in {text!r}; fix the line, or declare the types with schema=..."
                if isinstance(own, AdvisedError):
                    shown = f", in {text!r}"
                raise SourceError(
                    f"{path}, line {line + place}, is not a record of these columns: {first_line_of(own)}{shown}"
                ) from error
            line += block.count(b"\n")


def parse_json(block: bytes, schema: pa.Schema, unit: TimeUnit | None = None) -> pa.RecordBatch:
    """The objects of a block of whole lines as one batch of `schema`.

    Args:
        block: the lines.
        schema: of the records.
        unit: what numbers in columns of timestamps count, since 1970 in UTC; None: they are refused.

    Raises:
        pa.ArrowInvalid: a line is not a JSON object, or a value does not fit its column.
        pa.ArrowNotImplementedError: JSON cannot represent a column's type.
    """
    if not block.strip():
        return pa.RecordBatch.from_pylist([], schema=schema)
    _check_first(block)
    _check_items(block, schema)
    written = pa.schema([field.with_type(_as_written(field.type)) for field in schema])
    try:
        batch = _parsed(block, written, unit)
    except pa.ArrowInvalid as error:
        if written == schema:
            raise told(error, schema) from None
        try:
            batch = _parsed(block, schema, unit)  # dates and times as numbers, in the unit of the column
        except pa.ArrowInvalid as again:
            raise told(again, schema) from None
    if batch.schema != schema:
        batch = pa.RecordBatch.from_arrays([exact_cast(batch[field.name], field) for field in schema], schema=schema)
    if all(column.null_count for column in batch.columns) and _NULL_RECORD.search(block):
        raise pa.ArrowInvalid(_NULL)
    check_text(batch)
    return batch


def _parsed(block: bytes, schema: pa.Schema, unit: TimeUnit | None) -> pa.RecordBatch:
    try:
        return _parsed_as(block, schema)
    except pa.ArrowInvalid:
        if unit is None or not has_times(schema):
            raise
        return with_numbers(lambda columns: _parsed_as(block, columns), schema, unit)


def _parsed_as(block: bytes, schema: pa.Schema) -> pa.RecordBatch:
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    how = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return in_one_batch(pj.read_json(pa.BufferReader(block), how, options), schema)


def _as_written(kind: pa.DataType) -> pa.DataType:
    """The type as which a sink writes a column to JSON, and as which Arrow reads it."""
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    return pa.int64() if pa.types.is_duration(kind) else kind


def _check_items(block: bytes, schema: pa.Schema) -> None:
    """Reject a line whose lists take too much memory: each of their objects has all columns, even those it lacks."""
    width, limit = max(map(_item_bytes, schema.types), default=0), record_bytes()
    if (
        width * len(block) // len(b"{},") > limit
        and width * max(line.count(b"{") for line in block.split(b"\n")) > limit
    ):
        raise AdvisedError(too_large())


def _item_bytes(kind: pa.DataType) -> int:
    """Bytes that an object takes at the most, if a value can have any number of them; 0: it cannot."""
    parts = [kind.field(at).type for at in range(kind.num_fields)]
    inner = max(map(_item_bytes, parts), default=0)
    return (
        max(inner, *map(_object_bytes, parts)) if pa.types.is_nested(kind) and not pa.types.is_struct(kind) else inner
    )


def _object_bytes(kind: pa.DataType) -> int:
    """Bytes that a value without content takes."""
    if pa.types.is_struct(kind):
        return sum(_object_bytes(field.type) for field in kind) + _EMPTY_BYTES
    return _EMPTY_BYTES + (int(kind.byte_width) if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else 0)


def _check_integers(path: Path, block: bytes, schema: pa.Schema) -> None:
    """Refuse to guess doubles for integers that no double equals."""
    text, decoder = block.decode("utf-8", "replace"), json.JSONDecoder()
    at = len(text) - len(text.lstrip())
    try:
        while at < len(text):
            record, at = decoder.raw_decode(text, at)
            while at < len(text) and text[at].isspace():
                at += 1
            for field in schema:
                check_exact(path, field.name, _integers(record.get(field.name), field.type))
    except (ValueError, RecursionError):
        return  # reading will name the line


def _integers(value: Any, kind: pa.DataType) -> Iterator[int]:
    """The integers in a value that become doubles."""
    if type(value) is int and pa.types.is_floating(kind):
        yield value
    elif isinstance(value, list) and pa.types.is_list(kind):
        for each in value:
            yield from _integers(each, kind.value_type)
    elif isinstance(value, dict) and pa.types.is_struct(kind):
        for field in kind:
            yield from _integers(value.get(field.name), field.type)


def _check_first(block: bytes) -> None:
    """Reject a block that begins with null: Arrow's reader would crash the process."""
    if _NULL_FIRST.match(block):
        raise pa.ArrowInvalid(_NULL)


def _depth(block: bytes) -> int:
    """The nesting depth of values; Arrow's reader recurses for each level of a column that it infers."""
    marks = np.frombuffer(_STRING.sub(b"", block), np.uint8)
    opened = (marks == ord("{")) | (marks == ord("["))
    closed = (marks == ord("}")) | (marks == ord("]"))
    return int(np.cumsum(opened.astype(np.int64) - closed).max(initial=0))


def _blocks(stream: pa.NativeFile) -> Iterator[bytes]:
    """Blocks of whole lines; the last line may lack its end.

    Raises:
        AdvisedError: a line is longer than a record may be.
    """
    rest: list[bytes] = []  # pieces of a line that is longer than a block
    length, line, limit = 0, 1, record_bytes()
    while chunk := stream.read(BLOCK_BYTES):
        lines, newline, rest_of_chunk = chunk.rpartition(b"\n")
        if newline:
            line += chunk.count(b"\n")
            yield b"".join((*rest, lines, newline))
            rest.clear()
            length = 0
        rest.append(rest_of_chunk)
        length += len(rest_of_chunk)
        if length > limit:
            raise AdvisedError(too_large(f"line {line:,}"))
    if any(rest):
        yield b"".join(rest)


def _culprit(
    block: bytes, schema: pa.Schema, unit: TimeUnit | None, error: pa.ArrowInvalid
) -> tuple[int, str, pa.ArrowInvalid]:
    """The first line that cannot be parsed by itself: its index in the block, its text and the error."""
    lines = block.split(b"\n")
    begin, end = 0, len(lines)
    while end - begin > 1:  # a block has many thousands, and one is parsed alone in a tenth of a millisecond
        middle = (begin + end) // 2
        if _refused(b"\n".join(lines[begin:middle]), schema, unit) is None:
            begin = middle
        else:
            end = middle
    own = _refused(lines[begin], schema, unit)
    if own is None:  # a record that spans several lines
        return 0, "", error
    return begin, lines[begin][:_SHOWN].decode("utf-8", "replace"), own


def _refused(block: bytes, schema: pa.Schema, unit: TimeUnit | None) -> pa.ArrowInvalid | None:
    """Why these lines cannot be parsed; None if they can."""
    try:
        parse_json(block, schema, unit)
    except pa.ArrowInvalid as error:
        return error
    return None
