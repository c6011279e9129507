"""Rows in CSV files, whose first line names the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from workbench.connectors.file_format import BLOCK_BYTES, Part, open_text, reading, whole, without
from workbench.errors import SourceError


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """Comma-separated values; in a column that is not text an empty value is null, and so are NA, NaN, NULL and their
    like.

    Attributes:
        delimiter: between values.
    """

    delimiter: str = ","

    def schema(self, path: Path) -> pa.Schema:
        with reading(path), self._opened(path, pc.ConvertOptions()) as reader:
            fields = [_guessed(field) for field in reader.schema]
        return pa.schema(fields)

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        with reading(path):
            part = whole(path)
            with open_text(path) as stream:
                header = stream.read(BLOCK_BYTES).split(b"\n", 1)[0]
        if not header.strip():
            return [part]
        names = pc.read_csv(pa.BufferReader(header + b"\n"), parse_options=self._parsing()).column_names
        missing = [name for name in schema.names if name not in names]
        if missing:
            raise SourceError(
                f"{path} has no column {missing[0]!r} (its first line names {', '.join(names)}): read files of one"
                " kind, or name the columns that all have with schema=..."
            )
        return [part]

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        options = pc.ConvertOptions(column_types=schema, include_columns=schema.names, strings_can_be_null=False)
        with reading(part.path):
            if _blank(part.path):
                return
            with self._opened(part.path, options) as reader:
                for batch in without(iter(reader), skip):
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    @contextmanager
    def _opened(self, path: Path, options: pc.ConvertOptions) -> Iterator[Any]:
        # One thread: then errors can tell the row, and reading does not depend on how blocks are shared out.
        how = pc.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
        with open_text(path) as stream, pc.open_csv(stream, how, self._parsing(), options) as reader:
            yield reader

    def _parsing(self) -> pc.ParseOptions:
        return pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)


def _blank(path: Path) -> bool:
    with open_text(path) as stream:
        return not stream.read(1)


def _guessed(field: pa.Field) -> pa.Field:
    """What to take a column for that had no value in the first rows; instants without a zone count microseconds."""
    if pa.types.is_null(field.type):
        return pa.field(field.name, pa.string())
    if pa.types.is_timestamp(field.type):
        return pa.field(field.name, pa.timestamp("us", field.type.tz))
    return field
