"""A source over dead letters: in the files of a sink, or in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.plain_types import plain_schema
from workbench.connectors.files.file_source import FORMATS, FileSource
from workbench.connectors.files.json_times import TimeUnit, check_unit
from workbench.connectors.letters.decoding import LETTER_FORMATS, Decoding, LetterFormat, Letters, schema_of_row
from workbench.connectors.letters.reader import LetterReader
from workbench.connectors.messages.metadata import metadata_of
from workbench.connectors.tables.table_source import TableSource
from workbench.errors import PlanError, SettingError, SourceError, unknown
from workbench.operators.functions.dead_letters import ROW, SCHEMA, OnError, check_on_error
from workbench.raised import fact_of

_BYTES = ("format", "raw", "raw_bytes")
PARTS: Mapping[str, pa.DataType] = {
    item.name: item.type for item in SCHEMA if item.name not in ("subtask", "event_time", "traceback", *_BYTES)
}
"""The parts of a dead letter that columns can hold instead of a part of its record."""


@dataclass(frozen=True)
class DeadLetterSource(Source):
    """The records of dead letters; see `Stream.from_dead_letters` for the arguments.

    A position is one of the files or of the table.
    """

    letters: str | Path | Sequence[str | Path] | pa.Table = field(repr=False)
    columns: pa.Schema | None = field(default=None, repr=False)
    format: LetterFormat | None = None
    avro_schema: str | None = field(default=None, repr=False)
    unit: TimeUnit | None = None
    metadata: Mapping[str, str] | None = None
    operator: str | None = None
    event_time: str | None = None
    on_error: OnError = "fail"
    inner: FileSource | TableSource = field(init=False, repr=False)
    schema: pa.Schema = field(init=False, repr=False)
    parts: Mapping[str, str] = field(init=False, repr=False)
    decoding: Decoding = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "dead letters"

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in LETTER_FORMATS:
            raise SettingError(unknown("format", self.format, LETTER_FORMATS))
        check_on_error(self.on_error, None)
        check_unit(self.unit, "json" if self.format in (None, "json") else str(self.format))
        inner = _opened(self.letters)
        schema = self.columns or _columns_of_rows(inner, self.operator)
        metadata = metadata_of(self.metadata, schema, PARTS, system="dead-letter", example="{'offset': 'offset'}")
        values = pa.schema([item for item in schema if item.name not in metadata])
        decoding = Decoding(values, self.format, self.avro_schema, self.unit, self.columns is not None)
        decoding.check()
        for name, value in {"inner": inner, "schema": schema, "parts": metadata, "decoding": decoding}.items():
            object.__setattr__(self, name, value)
        check_event_time(schema, self.event_time)

    def describe(self) -> str:
        return self.inner.describe()

    def create(self) -> SourceReader:
        return LetterReader(self.inner.create(), self)


def _opened(letters: object) -> FileSource | TableSource:
    """The source of the letters' own columns.

    Raises:
        SourceError: no such files, or they have other columns.
        PlanError: the table has other columns.
    """
    names = [*PARTS, *_BYTES]
    if isinstance(letters, pa.Table):
        for name in names:
            if name not in letters.column_names:
                raise PlanError(f"the table {_no_letters(name, letters.column_names)}")
        chosen = letters.select(names)
        schema = pa.schema([SCHEMA.field(name).with_nullable(True) for name in names])
        try:
            return TableSource(chosen.cast(schema))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise PlanError(f"the columns of the table are not those of dead letters: {fact_of(error)}") from None
    files = FileSource(letters, SCHEMA)  # type: ignore[arg-type]  # it checks what it is given
    found = FORMATS[str(files.format)].schema(files.files[0])
    for name in names:
        if name not in found.names:
            raise SourceError(f"{files.files[0]} {_no_letters(name, found.names)}")
    kinds = {"raw": pa.string()} if files.format != "parquet" else {}
    fields = [pa.field(name, kinds.get(name, SCHEMA.field(name).type)) for name in names]
    return replace(files, columns=pa.schema(fields))


def _no_letters(name: str, names: Sequence[str]) -> str:
    return (
        f"has no column {name!r} (it has {', '.join(names)}), so these are no dead letters: write all columns of "
        "stream.dead_letters() to a sink, or pass job.dead_letters()"
    )


def _columns_of_rows(inner: FileSource | TableSource, operator: str | None) -> pa.Schema:
    """The columns of the first dead letter that was a row.

    Raises:
        SourceError: there is none, or it is damaged.
    """
    for batch in _batches(inner):
        for row in batch.select(["operator", *_BYTES]).to_pylist():
            if operator not in (None, row["operator"]):
                continue
            if row["format"] != ROW:
                raise SourceError(
                    f"the dead letters of {row['operator']!r} are messages of {row['format']}, not rows: declare their "
                    "columns with columns={...}"
                )
            letters = Letters([row["raw"]], [row["raw_bytes"]], [ROW], [row["operator"]])
            try:
                return plain_schema(schema_of_row(letters.bytes_of(0)).remove_metadata())
            except Exception as error:
                raise SourceError(
                    f"the first dead letter of {row['operator']!r} is not a row: {fact_of(error)}; declare the columns "
                    "with columns={...}"
                ) from error
    raise SourceError("there are no dead letters whose columns could be taken: declare them with columns={...}")


def _batches(inner: FileSource | TableSource) -> Iterator[pa.RecordBatch]:
    if isinstance(inner, TableSource):
        yield from inner.table.to_batches()
    else:
        for part in inner.parts(inner.file_format):
            yield from inner.file_format.batches(part, inner.schema, 0)
