"""Decodes the bytes of dead letters: messages and lines in their format, entries of Redis, and rows."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from workbench.connectors.files.csv_text import csv_rows
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.files.quoted_lines import QuotedLines
from workbench.connectors.messages.choosing import FORMAT_NAMES, message_format
from workbench.connectors.messages.message_format import ArrowMessages
from workbench.from_arrow import tables_in
from workbench.operators.functions.dead_letters import ROW
from workbench.raised import shown

LetterFormat = Literal["json", "csv", "tsv", "avro", "arrow", "raw", "fields", "row"]
LETTER_FORMATS: tuple[LetterFormat, ...] = (*FORMAT_NAMES, "tsv", "fields", "row")
_TABS = QuotedLines("\t")


@dataclass(frozen=True, slots=True)
class Letters:
    """Some dead letters, as columns of Python values.

    Attributes:
        raw: the bytes, or their base64.
        sizes: the number of bytes that each record had.
        formats: of the bytes.
        operators: that could not process them.
    """

    raw: Sequence[bytes | str | None]
    sizes: Sequence[int | None]
    formats: Sequence[str | None]
    operators: Sequence[str | None]

    def bytes_of(self, at: int) -> bytes:
        """All bytes of a record.

        Raises:
            ValueError: the letter does not have them.

        Example:
            >>> Letters(["aGVsbG8="], [5], ["raw"], ["kafka"]).bytes_of(0)
            b'hello'
        """
        raw, size = self.raw[at], self.sizes[at]
        if raw is None:
            raise ValueError("it has no bytes: its column raw is null")
        if isinstance(raw, str):
            try:
                raw = b64decode(raw, validate=True)
            except ValueError:
                raise ValueError(f"its column raw is {shown(raw)}, which is no base64") from None
        if size != len(raw):
            raise ValueError(
                f"it has {len(raw):,} bytes of its record's {size or 0:,}: a dead letter keeps the first megabyte, so "
                "read this record from its source again"
            )
        return raw

    def kept_of(self, at: int) -> bytes:
        """The bytes that a letter has, which may be fewer, or not valid base64."""
        raw = self.raw[at] or b""
        if isinstance(raw, bytes):
            return raw
        try:
            return b64decode(raw, validate=True)
        except ValueError:
            return raw.encode()


@dataclass(frozen=True, slots=True)
class Decoding:
    """How dead letters become records.

    Attributes:
        schema: of the records, without columns that hold metadata.
        format: of the bytes; None: each letter says so.
        avro_schema: the writer's schema, as JSON, for Avro.
        unit: what numbers in columns of timestamps count, in JSON.
        declared: the user declared the columns; otherwise they are those of the first row.
    """

    schema: pa.Schema
    format: LetterFormat | None
    avro_schema: str | None
    unit: TimeUnit | None
    declared: bool = True

    def check(self) -> None:
        """Reject columns that the format cannot contain, and Avro without its schema.

        Raises:
            PlanError: names the column.
            SettingError: the Avro schema is missing, unexpected or invalid.
        """
        name = self.format or (None if self.avro_schema is None else "avro")
        if name in FORMAT_NAMES and len(self.schema):
            message_format(name, self.avro_schema).check(self.schema)

    def decode(self, letters: Letters, begin: int, end: int) -> tuple[pa.RecordBatch, list[int]]:
        """Decode consecutive letters.

        Returns:
            The records, and the index of the letter of each.

        Raises:
            ValueError: a letter is not a record of these columns, or they have several formats.
        """
        form = self._format_of(letters, begin)
        if any(self._format_of(letters, at) != form for at in range(begin + 1, end)):
            raise ValueError("they are of several formats")
        values = [letters.bytes_of(at) for at in range(begin, end)]
        if form == "arrow":
            parts = [ArrowMessages().decode([value], self.schema) for value in values]
            kept = [begin + at for at, part in enumerate(parts) for _ in range(part.num_rows)]
            return pa.concat_batches(parts), kept
        batch = self._records(form, values)
        if batch.num_rows != len(values):
            raise ValueError(f"it has {batch.num_rows} records instead of {len(values)}")
        return batch, list(range(begin, end))

    def _format_of(self, letters: Letters, at: int) -> str | None:
        says, operator = letters.formats[at], shown(letters.operators[at])
        if says == ROW and self.format not in (None, ROW):
            raise ValueError(
                f"it is a row of the operator {operator}, not a message of {self.format}: leave out format=, or choose "
                "the letters of the source with operator=..."
            )
        if not self.declared and says != ROW:
            raise ValueError(f"it is not a row but a message of {says}: declare its columns with columns=...")
        return self.format or says

    def _records(self, form: str | None, values: Sequence[bytes]) -> pa.RecordBatch:
        match form:
            case "row":
                for value in values:
                    if (count := sum(table.num_rows for table in tables_in(value))) != 1:
                        raise ValueError(f"it has {count} rows instead of one")
                return ArrowMessages().decode(values, self.schema)
            case "fields":
                from workbench.connectors.redis.entries import fields_in, records  # which no other letters need

                return records([(b"", fields_in(value)) for value in values], self.schema, self.unit)
            case "tsv":
                return csv_rows(values, self.schema, _TABS)
            case str() if form in FORMAT_NAMES:
                unit = self.unit if form == "json" else None
                return message_format(form, self.avro_schema if form == "avro" else None, unit).decode(
                    values, self.schema
                )
        raise ValueError(
            f"its format is {shown(form)}, which is none of {', '.join(LETTER_FORMATS)}: name it in format="
        )


def schema_of_row(raw: bytes) -> pa.Schema:
    """The columns of a row in the bytes of a dead letter.

    Raises:
        ValueError: the bytes hold something else.
    """
    return next(tables_in(raw)).schema
