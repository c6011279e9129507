"""Comma-separated text, read to its very end: a quote that nothing closes is an error.

Arrow's parser takes the end of its input for the end of a quoted value. So a file that ends within one, because it was
cut or a quote is stray, would become a row with a value that nobody wrote. Therefore a line follows the text that is
not a row: if the parser does not refuse that line by itself, it is within a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from workbench.connectors.files.file_format import AdvisedError, in_one_batch
from workbench.connectors.files.quoted_lines import QuotedLines

NULLS = ("", "#N/A", "#N/A N/A", "#NA", "N/A", "NA", "NULL", "n/a", "null")
"""Values that are null in a column that is not text: those of Arrow without the ones that are numbers, such as NaN."""

OPEN_QUOTE = "a quote is not closed: the text ends within a quoted value"
_MARK = "\0end of the text"
_NUMBERED = re.compile(r"^In CSV column #([0-9]+)")
_MARKED = _MARK.encode()


class _Ended:
    """A file that yields the bytes of a stream, a line end, and then, by themselves, those of the last line."""

    closed = False

    def __init__(self, stream: Any, last: bytes) -> None:
        self._stream = stream
        self._left = [b"\n", last]
        self._before = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        found: bytes = self._stream.read(size)
        while len(found) < size and len(self._left) == 2:  # a header alone has to be read together with its end
            more = self._stream.read(size - len(found))
            found += more or self._left.pop(0)
        if not found and self._left:
            return self._left.pop()
        if b"\0" in found and _MARKED in self._before + found:  # would end the text early
            raise pa.ArrowInvalid(f"it has the characters {_MARK!r}, which no text has")
        self._before = found[-len(_MARKED) :]
        return found

    def close(self) -> None:
        """The stream is closed by its owner."""


def csv_batches(
    stream: Any, names: Sequence[str], block_bytes: int, parsing: pc.ParseOptions, options: pc.ConvertOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of a stream of comma-separated text.

    Args:
        stream: of bytes; stays open.
        names: of all columns.
        block_bytes: parsed at once; no row may be longer.
        parsing, options: of Arrow's reader.

    Raises:
        pa.ArrowInvalid: a line is not a row, or a quote is not closed.
    """
    columns = len(names)
    last = _MARK if columns > 1 else f"{_MARK}{parsing.delimiter}"
    refused = f"Expected {columns} columns, got {1 if columns > 1 else 2}: {last}"
    # One thread: then errors name the row, and results do not depend on how blocks are distributed.
    how = pc.ReadOptions(block_size=block_bytes, use_threads=False)
    held: pa.RecordBatch | None = None  # a value that is not closed is in the last batch, which must not be passed on
    try:
        with pc.open_csv(_Ended(stream, last.encode()), how, parsing, options) as reader:
            for batch in reader:
                if held is not None:
                    yield held
                held = batch
    except pa.ArrowInvalid as error:
        ended = str(error).endswith(refused)
        if not ended and _MARK in str(error):
            raise pa.ArrowInvalid(OPEN_QUOTE) from error
        if held is not None:
            yield held
        if ended:
            return
        raise _naming(error, names) from error
    raise pa.ArrowInvalid(OPEN_QUOTE)


def conversion(schema: pa.Schema) -> pc.ConvertOptions:
    """How values become the columns of `schema`, which may be some of the file's."""
    return pc.ConvertOptions(
        column_types=schema, include_columns=schema.names, strings_can_be_null=False, null_values=NULLS
    )


def csv_rows(
    lines: Sequence[bytes], schema: pa.Schema, quoting: QuotedLines, header: bytes | None = None
) -> pa.RecordBatch:
    """The rows of records in comma-separated text, as one batch; blank records are ignored.

    Args:
        lines: a record each, without the line ends.
        schema: of the rows.
        quoting: has the delimiter.
        header: names the columns, of which `schema` has some; None: they are those of `schema`.

    Raises:
        pa.ArrowInvalid: a record is not a row, or a quote is not closed.
    """
    filled = [line for line in lines if line.strip()]
    if not filled:
        return pa.RecordBatch.from_pylist([], schema=schema)
    if quoting.is_open(filled[-1]):
        raise pa.ArrowInvalid(OPEN_QUOTE)
    head = [] if header is None else [header]
    block = b"\n".join(head + filled) + b"\n"
    if block.count(b"\n") > len(head + filled) and not all(map(quoting.is_whole, _with_line_ends(filled))):
        raise pa.ArrowInvalid("text follows the quote that ends a value")
    how = pc.ReadOptions(block_size=len(block) + 1, use_threads=False, column_names=None if head else schema.names)
    parsing = pc.ParseOptions(delimiter=quoting.delimiter, newlines_in_values=True)
    try:
        rows = pc.read_csv(pa.BufferReader(block), how, parsing, conversion(schema))
    except pa.ArrowInvalid as error:
        raise _naming(error, schema.names if header is None else names_in(header, parsing)) from error
    if rows.num_rows != len(filled):  # a quote that is not closed takes the lines behind it
        raise pa.ArrowInvalid(f"it has {rows.num_rows} records instead of {len(filled)}")
    return in_one_batch(rows, schema)


def names_in(header: bytes, parsing: pc.ParseOptions) -> list[str]:
    """The names of the columns in a file's first line."""
    found: list[str] = pc.read_csv(pa.BufferReader(header + b"\n"), parse_options=parsing).column_names
    return found


def _naming(error: pa.ArrowInvalid, names: Sequence[str]) -> pa.ArrowInvalid:
    """The error with a column's name instead of its number."""
    text = _NUMBERED.sub(lambda found: f"In the column {names[int(found[1])]!r}", str(error))
    fact, local, _ = text.partition(". If these timestamps are in local time")
    if local:
        return AdvisedError(f"{fact}: write one, such as Z, or declare the column as a timestamp without a time zone")
    return pa.ArrowInvalid(text)


def _with_line_ends(records: Sequence[bytes]) -> Iterator[bytes]:
    return (record for record in records if b"\n" in record)
