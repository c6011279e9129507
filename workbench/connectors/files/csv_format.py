"""Rows in CSV files, whose first line names the columns."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from workbench.connectors.files.csv_text import NULLS, conversion, csv_batches, names_in
from workbench.connectors.files.file_format import BLOCK_BYTES, AdvisedError, Part, open_text, reading, whole, without
from workbench.connectors.files.guesses import check_exact, guessed_schema, has_wide
from workbench.connectors.files.record_limit import record_bytes, too_large
from workbench.errors import SourceError

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """Comma-separated values; in a column that is not text, an empty value is null, and so are NA, NULL and similar
    ones.

    Attributes:
        delimiter: between values.
    """

    delimiter: str = ","

    def schema(self, path: Path) -> pa.Schema:
        with reading(path):
            for block_bytes in _block_sizes():
                try:
                    with self._opened(path, pc.ConvertOptions(null_values=NULLS), block_bytes) as reader:
                        rows = next(iter(reader), None) or pa.RecordBatch.from_pylist([], reader.schema)
                    self._check_integers(path, rows, block_bytes)
                    return guessed_schema(rows)
                except pa.ArrowInvalid as error:
                    _check_cut(error, block_bytes)
        raise AssertionError("the largest block is the last")

    def _check_integers(self, path: Path, rows: pa.RecordBatch, block_bytes: int) -> None:
        """Refuse to guess doubles for integers that no double equals."""
        wide = [name for name in rows.schema.names if rows.schema.names.count(name) == 1 and has_wide(rows[name])]
        if wide:
            texts = conversion(pa.schema([(name, pa.string()) for name in wide]))
            with self._opened(path, texts, block_bytes) as reader:
                written = next(iter(reader))
            for name in wide:
                values = (value for value in written[name].to_pylist() if _INTEGER.fullmatch(value))
                check_exact(path, name, map(int, values))

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        with reading(path):
            part = whole(path)
            header = header_of(path)
            if not header.strip():
                return [part]
            names = names_in(header, self._parsing())
            known = pa.schema([field for field in schema if field.name in names])
            types = pc.ConvertOptions(column_types=known)  # rejects types that CSV cannot represent, before reading
            pc.read_csv(pa.BufferReader(header + b"\n"), parse_options=self._parsing(), convert_options=types)
        for name in schema.names:
            if (count := names.count(name)) > 1:
                raise SourceError(f"{path} has {count} columns {name!r}: give each a different name in the first line")
        missing = [name for name in schema.names if name not in names]
        if missing:
            raise SourceError(
                f"{path} has no column {missing[0]!r} (its first line names {', '.join(names)}): read files with the "
                "same columns, or declare the columns that all have with schema=..."
            )
        return [part]

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        options = conversion(schema)
        with reading(part.path):
            header = header_of(part.path)
            if not header:
                return
            names = names_in(header, self._parsing())
            for block_bytes in _block_sizes():
                try:
                    with open_text(part.path) as stream:
                        found = csv_batches(stream, names, block_bytes, self._parsing(), options)
                        for batch in without(found, skip):
                            skip += batch.num_rows
                            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                    return
                except pa.ArrowInvalid as error:
                    _check_cut(error, block_bytes)

    @contextmanager
    def _opened(self, path: Path, options: pc.ConvertOptions, block_bytes: int) -> Iterator[Any]:
        # One thread: then errors name the row, and results do not depend on how blocks are distributed.
        how = pc.ReadOptions(block_size=block_bytes, use_threads=False)
        with open_text(path) as stream, pc.open_csv(stream, how, self._parsing(), options) as reader:
            yield reader

    def _parsing(self) -> pc.ParseOptions:
        return pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)


def _block_sizes() -> Iterator[int]:
    """Bytes that are parsed at once: Arrow reads no row that is longer, so larger sizes are tried for longer rows."""
    size, largest = BLOCK_BYTES, record_bytes()
    while size < largest:
        yield size
        size *= 16
    yield largest


def _check_cut(error: pa.ArrowInvalid, block_bytes: int) -> None:
    """Raise the error, unless a row was longer than its block and a larger block size is left."""
    if "straddling object" not in str(error):
        raise error
    if block_bytes == record_bytes():
        raise AdvisedError(f"{too_large('a row')}, or close the quote that is open") from error


def header_of(path: Path) -> bytes:
    """The first line, without its end; quoted names may have line ends. Empty, if the file is."""
    with open_text(path) as stream:
        block: bytes = stream.read(BLOCK_BYTES).removeprefix(BOM_UTF8).lstrip(b"\r\n")
    end = block.find(b"\n")
    while end >= 0 and block.count(b'"', 0, end) % 2:
        end = block.find(b"\n", end + 1)
    return (block if end < 0 else block[:end]).rstrip(b"\r")
