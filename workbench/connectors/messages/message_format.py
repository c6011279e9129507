"""The interface of message formats, and the formats that need no additional package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from workbench.connectors.contract.plain_types import BYTES, TEXT, decoded
from workbench.connectors.contract.text_check import check_text
from workbench.connectors.files.exact_cast import exact_cast
from workbench.connectors.files.json_lines import parse_json
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.files.line_parser import parse_lines
from workbench.connectors.files.record_limit import check_sizes, record_bytes, too_large
from workbench.connectors.parts.part_formats import encode_json, with_base64
from workbench.errors import PlanError
from workbench.from_arrow import Unfolding, tables_in
from workbench.raised import first_line_of


class MessageFormat(Protocol):
    """The encoding of a message's value.

    Attributes:
        several: whether a message can hold several records.
    """

    @property
    def several(self) -> bool: ...

    def check(self, schema: pa.Schema) -> None:
        """Reject columns that messages of this format cannot contain.

        Raises:
            PlanError: names the column.
        """

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        """Decode messages to records: one each, unless a message holds several.

        Raises:
            ValueError: a message is not a record of these columns, or larger than `record_bytes`; ``pa.ArrowInvalid``
                and ``UnicodeDecodeError`` are subclasses.
        """

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        """Encode rows to messages: one each, unless a message holds several."""


@dataclass(frozen=True, slots=True)
class JsonMessages:
    """A JSON object per message; missing values are null, and values without a column are ignored.

    Attributes:
        unit: what numbers in columns of timestamps count; None: they are refused.
    """

    unit: TimeUnit | None = None

    several = False

    def check(self, schema: pa.Schema) -> None:
        try:
            parse_json(b"{}\n", schema)
        except pa.ArrowException as error:
            raise PlanError(f"messages of JSON cannot have these columns: {error}") from None

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        check_sizes(values)
        block = b"\n".join(values)
        if not _is_a_line_each(block, len(values)):
            block = b"\n".join(_one_line(value) for value in values)
        return _counted(parse_json(block, schema, self.unit), len(values))

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        return bytes(encode_json(pa.Table.from_batches([rows]))).split(b"\n")[:-1]


@dataclass(frozen=True, slots=True)
class CsvMessages:
    """Comma-separated values per message, without a header."""

    several = False

    def check(self, schema: pa.Schema) -> None:
        try:
            parse_lines([b",".join([b""] * len(schema))], "csv", schema, "messages")
        except pa.ArrowException as error:
            raise PlanError(f"messages of CSV cannot have these columns: {error}") from None

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        if not all(values):
            raise ValueError("it is empty")
        check_sizes(values)
        return _counted(parse_lines(values, "csv", schema, "messages"), len(values))

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        texts = [_text_column(column).to_pylist() for column in with_base64(pa.Table.from_batches([rows])).columns]
        return [",".join(map(_csv_value, row)).encode() for row in zip(*texts, strict=True)]


@dataclass(frozen=True, slots=True)
class RawMessages:
    """The unchanged message, in one column of text or bytes."""

    several = False

    def check(self, schema: pa.Schema) -> None:
        kinds = [decoded(field.type) for field in schema]
        if len(kinds) != 1 or not any(fits(kinds[0]) for fits in (*BYTES, *TEXT)):
            raise PlanError(
                f"raw messages have one column of text or bytes, not {', '.join(map(str, schema)) or 'none'}: "
                "declare it as pa.binary() or pa.string(), or choose another format"
            )

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        check_sizes(values)
        column = pa.array(values, pa.binary()).cast(schema.field(0).type)
        batch = pa.RecordBatch.from_arrays([column], schema=schema)
        check_text(batch)
        return batch

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        column = rows.column(0)
        values: list[bytes | None] = column.cast(decoded(column.type)).cast(pa.large_binary()).to_pylist()
        return [value or b"" for value in values]


@dataclass(frozen=True, slots=True)
class ArrowMessages:
    """An Arrow IPC stream per message, with any number of rows: the fastest format."""

    several = True

    def check(self, schema: pa.Schema) -> None:
        check_kinds(schema)

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        check_sizes(values)
        batches: list[pa.RecordBatch] = []
        for value in values:
            if not value:
                raise ValueError("it is empty")
            try:
                tables = list(tables_in(value, Unfolding(len(value), record_bytes(), too_large())))
            except OSError as error:  # as which Arrow tells of a stream that was cut
                raise ValueError(first_line_of(error)) from None
            for table in tables:
                has = table.schema.names
                for name in schema.names:
                    if (count := has.count(name)) != 1:
                        fact = f"{count} columns" if count else "no column"
                        raise ValueError(f"it has {fact} {name!r}, but {', '.join(has)}")
                columns = [exact_cast(table.column(item.name), item) for item in schema]
                batches += pa.Table.from_arrays(columns, schema=schema).to_batches()
        return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=schema)

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        plain = pa.Table.from_batches([rows])
        for at, field in enumerate(rows.schema):
            if pa.types.is_dictionary(field.type):
                plain = plain.set_column(at, field.name, plain.column(at).cast(decoded(field.type)))
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, plain.schema) as writer:
            writer.write_table(plain)
        return [buffer.getvalue().to_pybytes()]


def check_kinds(schema: pa.Schema) -> None:
    """Reject columns of types of which no batch without rows can be made: those of unions.

    Raises:
        PlanError: names the type.
    """
    try:
        schema.empty_table()
    except pa.ArrowNotImplementedError as error:
        raise PlanError(f"messages cannot have columns of the type {error}: declare another type") from None


def _is_a_line_each(block: bytes, count: int) -> bool:
    """Whether each line begins and ends with a brace. Then no object spans two lines, and an equal number of rows means
    one per line."""
    letters = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if len(ends) != count - 1 or block[:1] != b"{" or block[-1:] != b"}":
        return False
    return bool((letters[ends - 1] == ord("}")).all() and (letters[ends + 1] == ord("{")).all())


def _one_line(value: bytes) -> bytes:
    line = value.strip().replace(b"\n", b" ").replace(b"\r", b" ")
    if line[:1] != b"{" or line[-1:] != b"}":
        raise ValueError("it is not a JSON object")
    return line


def _counted(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """Raise an error unless there is one record per message."""
    if batch.num_rows != count:
        raise ValueError(f"it has {batch.num_rows} records instead of {count}")
    return batch


def _text_column(column: pa.Array) -> pa.Array:
    kind = decoded(column.type)
    return column.cast(kind).cast(pa.large_string())


def _csv_value(value: str | None) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if value == "" or any(mark in value for mark in '",\r\n') else value
