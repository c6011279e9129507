"""Rows in Parquet files: read by row groups, so that several subtasks can share one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from workbench.connectors.contract.text_check import check_text
from workbench.connectors.files.file_format import BATCH_ROWS, Part, conform, reading, without
from workbench.errors import SourceError


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Parquet."""

    def schema(self, path: Path) -> pa.Schema:
        import pyarrow.parquet as pq

        with reading(path):
            schema = pq.read_schema(path).remove_metadata()
            str(schema)  # Arrow validates the bytes of names, including nested ones, only when they are converted
            return schema

    def parts(self, path: Path, schema: pa.Schema) -> Sequence[Part]:
        import pyarrow.parquet as pq

        with reading(path), pq.ParquetFile(path) as file:
            _check(path, file.schema_arrow, schema)
            size = path.stat().st_size
            rows = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
        return [Part(f"{path}#{index}", path, index, count, size) for index, count in enumerate(rows)]

    def batches(self, part: Part, schema: pa.Schema, skip: int) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with reading(part.path), pq.ParquetFile(part.path) as file:
            found = file.iter_batches(BATCH_ROWS, row_groups=[part.index], columns=schema.names)
            for batch in without(found, skip):
                check_text(batch)
                yield conform(batch, schema)


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
