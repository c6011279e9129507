"""Reads text files in which some lines are not records: those become dead letters, and reading continues.

A position is then a line of the file and not a row: so no line is read twice after a recovery, record or not.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from workbench.connectors.files.csv_format import header_of
from workbench.connectors.files.csv_text import csv_rows
from workbench.connectors.files.file_format import (
    BLOCK_BYTES,
    FileFormat,
    Part,
    open_text,
    reading,
    without,
)
from workbench.connectors.files.json_lines import parse_json
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.files.quoted_lines import QuotedLines
from workbench.connectors.files.record_limit import check_sizes, record_bytes
from workbench.elements import event_times
from workbench.operators.contract.positions import Parts, Position
from workbench.raised import fact_of

_LINE = pa.schema([("line", pa.binary())])
Parse = Callable[[Sequence[bytes]], pa.RecordBatch]


@dataclass(frozen=True)
class TextLines:
    """A text format line by line: the batches of a file are its raw lines, after a header.

    Attributes:
        format: determines the columns and the files.
        delimiter: of comma-separated values, which have a header; None: JSON objects.
        unit: what numbers in columns of timestamps count, in JSON.
    """

    format: FileFormat
    delimiter: str | None
    unit: TimeUnit | None = None

    def schema(self, path: Path) -> pa.Schema:
        return self.format.schema(path)

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        return self.format.parts(path, schema)

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        with reading(part.path), open_text(part.path) as stream:
            yield from without(self._lines(stream), skip)

    def _lines(self, stream: pa.NativeFile) -> Iterator[pa.RecordBatch]:
        joining = None if self.delimiter is None else QuotedLines(self.delimiter)
        headed = joining is not None
        rest, limit = bytearray(), record_bytes()
        while chunk := stream.read(BLOCK_BYTES):
            first, *lines = chunk.split(b"\n")
            if len(rest) <= limit:  # what is beyond is read, so that the next line is found, and not kept
                rest += first
            if lines:
                lines, rest = [bytes(rest), *lines[:-1]], bytearray(lines[-1])
            if joining is not None:
                if lines and headed:
                    lines[0] = lines[0].removeprefix(BOM_UTF8)
                lines = joining.add(lines)
            if lines and headed:
                headed = False
                del lines[0]
            yield pa.record_batch([lines], schema=_LINE)
        last = [bytes(rest)] if rest else []
        if joining is not None:
            last = (joining.add(last) + joining.end())[1 if headed else 0 :]
        if last:
            yield pa.record_batch([last], schema=_LINE)

    def parser(self, path: Path, schema: pa.Schema) -> Parse:
        """Create the parser for lines of a file; raises pa.ArrowInvalid."""
        if self.delimiter is None:
            return one_to_a_line(lambda lines: parse_json(b"\n".join(lines) + b"\n", schema, self.unit))
        with reading(path):
            header = header_of(path)
        quoting = QuotedLines(self.delimiter)
        return lambda lines: csv_rows(lines, schema, quoting, header)

    def first_line(self) -> int:
        """The number of the first line that is a record, counted from 1."""
        return 1 if self.delimiter is None else 2


def sorted_out(
    lines: Sequence[bytes], parse: Parse, schema: pa.Schema, event_time: str | None
) -> tuple[pa.RecordBatch, list[tuple[int, str]]]:
    """The records in some lines, and (index, error) of each other line; blank lines are ignored.

    A line whose event time is not valid is not a record.

    Lines that cannot be parsed together are halved, down to single ones.

    Args:
        lines: without their ends.
        parse: raises an error of any class unless all lines are records.
        schema: of the records.
        event_time: the column with event times, or None.
    """
    good: list[pa.RecordBatch] = []
    bad: list[tuple[int, str]] = []

    def sort_out(begin: int, end: int) -> None:
        try:
            check_sizes(lines[begin:end])
            records = parse(lines[begin:end])
            if event_time is not None:
                event_times(records.column(event_time), event_time)
            good.append(records)
        except Exception as error:  # noqa: BLE001  whatever is raised, the line is no record
            if end - begin == 1:
                bad.append((begin, fact_of(error)))
                return
            middle = (begin + end) // 2
            sort_out(begin, middle)
            sort_out(middle, end)

    sort_out(0, len(lines))
    return pa.concat_batches(good) if good else pa.RecordBatch.from_pylist([], schema=schema), bad


def one_to_a_line(parse: Parse) -> Parse:
    """Wrap a parser so that it fails unless there are as many records as non-blank lines.

    A quote that is not closed consumes the lines after it, and one line may contain two JSON objects.
    """

    def checked(lines: Sequence[bytes]) -> pa.RecordBatch:
        records, expected = parse(lines), sum(bool(line.strip()) for line in lines)
        if records.num_rows != expected:
            raise pa.ArrowInvalid(f"it has {records.num_rows} records instead of {expected}")
        return records

    return checked


class LinesOfRecords:
    """The line number of each record among parsed lines, with one record per line.

    Args:
        path: of the file.
        first: the number of the first line.
        lines: all of them.
        bad: indices of the lines that are not records.

    Example:
        >>> where = LinesOfRecords("data.json", 1, [b"{}", b"", b"nonsense", b"{}"], {2})
        >>> where(0), where(1)
        ('data.json, line 1', 'data.json, line 4')
    """

    def __init__(self, path: str, first: int, lines: Sequence[bytes], bad: Set[int]) -> None:
        self._path = path
        self._first = first
        self._lines = lines
        self._bad = bad
        self._good: list[int] | None = None  # computed on first use

    def __call__(self, row: int) -> Position:
        """The position of record `row`."""
        if self._good is None:
            self._good = [at for at, line in enumerate(self._lines) if line.strip() and at not in self._bad]
        return self.line(self._good[row])

    def line(self, at: int) -> Position:
        """The position of the line at an index."""
        number = self._first + at
        return Position(f"{self._path}, line {number}", Parts("files", path=self._path, line=number))
