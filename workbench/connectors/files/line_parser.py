"""Parses lines received over a network: text, JSON objects or comma-separated values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import pyarrow as pa

from workbench.connectors.files.csv_text import csv_rows
from workbench.connectors.files.file_format import AdvisedError
from workbench.connectors.files.json_lines import parse_json
from workbench.connectors.files.json_times import TimeUnit
from workbench.connectors.files.quoted_lines import QuotedLines
from workbench.errors import SourceError

LineFormat = Literal["text", "json", "csv"]

_SHOWN = 80
_FIX = "; fix the sender, or declare other types with schema=..."
_QUOTING = QuotedLines(",")


def parse_lines(
    lines: Sequence[bytes], form: LineFormat, schema: pa.Schema, place: str, unit: TimeUnit | None = None
) -> pa.RecordBatch:
    """The lines as one batch; blank lines are skipped, except in text.

    Args:
        lines: without their ends.
        form: the format of a record.
        schema: of the records; one column of strings for text.
        place: origin of the lines, for errors.
        unit: what numbers in columns of timestamps count, in JSON.

    Raises:
        SourceError: a line cannot be parsed; shows its text.
    """
    parse = partial(_json, unit=unit) if form == "json" else _PARSERS[form]
    try:
        return parse(lines, schema)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        for line in lines:
            try:
                parse([line], schema)
            except (pa.ArrowInvalid, UnicodeDecodeError) as own:
                fix = "" if isinstance(own, AdvisedError) else _FIX
                shown = line[:_SHOWN].decode("utf-8", "replace")
                raise SourceError(
                    f"{place} sent the line {shown!r}, which is not a record of these columns: "
                    f"{str(own).splitlines()[0]}{fix}"
                ) from error
        raise


def _text(lines: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    values = [line.removesuffix(b"\r").decode() for line in lines]
    return pa.RecordBatch.from_arrays([pa.array(values, pa.string())], schema=schema)


def _json(lines: Sequence[bytes], schema: pa.Schema, unit: TimeUnit | None) -> pa.RecordBatch:
    # JSON allows line ends between values; so records that are written over several lines become one.
    return parse_json(b"\n".join(line.replace(b"\n", b" ") for line in lines) + b"\n", schema, unit)


def _csv(lines: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    return csv_rows(lines, schema, _QUOTING)


_PARSERS: dict[LineFormat, Callable[[Sequence[bytes], pa.Schema], pa.RecordBatch]] = {
    "text": _text,
    "csv": _csv,
}
