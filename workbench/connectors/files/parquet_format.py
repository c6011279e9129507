"""Rows in Parquet files: read by row groups, so that several subtasks can share one file.

A file that was damaged, or put together from parts of others, may say of itself what is not true, and Arrow then yields
as many rows as it finds. So the numbers of rows that a file names are compared with one another and with the rows that
were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.text_check import check_text
from workbench.connectors.files.file_format import BATCH_ROWS, Part, conform, reading, without
from workbench.connectors.files.int96 import check_int96, int96_columns
from workbench.errors import SourceError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_DAMAGED = "the file is damaged, write it again"
_WRITE_AGAIN = "write it again, or, if it is no Parquet, name its format, such as format='csv'"


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Parquet."""

    def schema(self, path: Path) -> pa.Schema:
        with reading(path, _WRITE_AGAIN), _opened(path) as file:
            schema = file.schema_arrow.remove_metadata()
            str(schema)  # Arrow validates the bytes of names, including nested ones, only when they are converted
            return schema

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        with reading(path, _WRITE_AGAIN), _opened(path) as file:
            _check(path, file.schema_arrow, schema)
            stat = path.stat()
            rows = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
        if (total := file.metadata.num_rows) != sum(rows):
            raise SourceError(
                f"{path} counts {total} rows in its footer, and {sum(rows)} in its row groups: {_DAMAGED}"
            )
        return [
            Part(f"{path}#{index}", path, index, count, stat.st_size, stat.st_mtime_ns)
            for index, count in enumerate(rows)
        ]

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        with reading(part.path, _WRITE_AGAIN), ExitStack() as files:
            file = files.enter_context(_opened(part.path))
            if times := [name for name in int96_columns(file.schema) if name in schema.names]:
                kinds = [schema.field(name).type for name in times]
                in_nanos = any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in kinds)
                check_int96(part.path, part.index, times, in_nanos=in_nanos)
                if in_nanos:
                    file = files.enter_context(_opened(part.path, "ns"))
            _check_counts(part, file.metadata, schema)
            found = _counted(file.iter_batches(BATCH_ROWS, row_groups=[part.index], columns=schema.names), part)
            for batch in without(found, skip):
                check_text(batch)
                yield conform(batch, schema)


def _opened(path: Path, int96: str = "us") -> pq.ParquetFile:
    """A file, whose timestamps of 96 bits have this unit; in nanoseconds, Arrow would wrap around in 1677 and 2262."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, coerce_int96_timestamp_unit=int96)


def _check_counts(part: Part, metadata: pq.FileMetaData, wanted: pa.Schema) -> None:
    """Refuse a row group whose number of rows is not that of the values in its columns."""
    group = metadata.row_group(part.index)
    for at in range(group.num_columns):
        chunk, column = group.column(at), metadata.schema.column(at)
        rows, values = group.num_rows, chunk.num_values
        if column.path.partition(".")[0] in wanted.names and (
            values < rows or (values > rows and not column.max_repetition_level)
        ):
            raise SourceError(
                f"{part.path} counts {rows} rows in row group {part.index}, and {values} values in its column "
                f"{column.path!r}: {_DAMAGED}"
            )


def _counted(batches: Iterator[pa.RecordBatch], part: Part) -> Iterator[pa.RecordBatch]:
    """The batches of a row group; refuses one that has fewer rows than the file says."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        yield batch
    if rows != part.rows:
        raise SourceError(
            f"{part.path} counts {part.rows} rows in row group {part.index}, and {rows} were found: {_DAMAGED}"
        )


def _check(path: Path, found: pa.Schema, wanted: pa.Schema) -> None:
    for field in wanted:
        if field.name not in found.names:
            raise SourceError(
                f"{path} has no column {field.name!r} (it has {', '.join(found.names)}): read files with the same "
                "columns, or declare the columns that all have with schema=..."
            )
        if (count := found.names.count(field.name)) > 1:
            raise SourceError(f"{path} has {count} columns {field.name!r}: write it again with a unique name for each")
        kind = found.field(field.name).type
        if kind != field.type:
            try:
                pa.array([], kind).cast(field.type)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
                raise SourceError(
                    f"{path} has the column {field.name!r} of type {kind}, which cannot be read as {field.type}:"
                    " declare another type with schema=..."
                ) from error
