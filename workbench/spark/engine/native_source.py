"""A source of the native tier: rows as columns of Spark, with their event time and the source's mark.

Spark's watermark is the maximum event time that it has seen, minus a delay. So if a log were read channel by channel,
all records of the second channel would be late. Two measures prevent this: rows are read in order of arrival over all
splits, and each batch contains the *mark* in a separate column: the minimum over the splits of their largest event
times. A query has a watermark on both columns, and Spark uses the smaller one, which is the mark's.

Each batch has a row without data, the *tick*, which contains the mark even if a filter drops all other rows. The last
tick is in the year 9999, so that all windows of a bounded input end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from workbench.spark.engine.log_reader import LogReader, Offset

NATIVE_FORMAT = "workbench-columns"
TIME, MARK, TICK = "__wb_time", "__wb_mark", "__wb_tick"
_INSTANT = pa.timestamp("us", "UTC")
ADDED = (pa.field(TIME, _INSTANT), pa.field(MARK, _INSTANT), pa.field(TICK, pa.bool_()))


class NativeDataSource(DataSource):  # type: ignore[misc]  # PySpark is untyped here
    """Reads one source of a pipeline; its options are the log, the plan, the source, and the columns."""

    @classmethod
    def name(cls) -> str:
        return NATIVE_FORMAT

    def schema(self) -> Any:
        return from_arrow_schema(columns_of(bytes.fromhex(dict(self.options)["columns"])), prefer_timestamp_ntz=True)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return NativeReader(dict(self.options))


class _Part(InputPartition):  # type: ignore[misc]  # PySpark is untyped here
    """One of `parts` partitions of a batch in the log of batches."""

    def __init__(self, number: int, part: int, parts: int, mark_us: int) -> None:
        super().__init__((number, part))
        self.number, self.part, self.parts, self.mark_us = number, part, parts, mark_us


class _Pieces(InputPartition):  # type: ignore[misc]  # PySpark is untyped here
    """The pieces of a replay log that one task reads."""

    def __init__(self, part: int, pieces: list[Any], identity: str, mark_us: int) -> None:
        super().__init__(part)
        self.part, self.pieces, self.identity, self.mark_us = part, pieces, identity, mark_us


def columns_of(serialized: bytes) -> pa.Schema:
    """The columns of a source in Spark.

    Args:
        serialized: the schema of the columns that the source reads.
    """
    schema = pa.ipc.read_schema(pa.py_buffer(serialized))
    return pa.schema([*(field.with_nullable(True) for field in schema), *ADDED])


class NativeReader(LogReader):
    """Partitions of one source's log (arguments as for `LogReader`)."""

    def _opened(self, plan: Any) -> Any:
        from workbench.spark.engine.reading import Reading

        options = self._options
        return Reading(plan, self._folder, int(options["rows"]), only=options["source"], reread=bool(options["log"]))

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        parts, bound_us = int(self._options["parts"]), int(self._options["bound"])
        mark_us = max(0, end["mark"] - bound_us) if not end["ended"] else end["mark"]
        if self._options["log"]:
            from workbench.spark.engine.rereading import pieces

            identity, behind = _rows_behind(end["positions"][self._options["source"]])
            _, before = _rows_behind(start["positions"].get(self._options["source"], {}))
            return [_Pieces(part, share, identity, mark_us) for part, share in enumerate(pieces(before, behind, parts))]
        return [
            _Part(number, part, parts, mark_us)
            for number in range(start["batch"] + 1, end["batch"] + 1)
            for part in range(parts)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part | _Pieces)
        schema = columns_of(bytes.fromhex(self._options["columns"]))
        names = schema.names[: -len(ADDED)]
        mark = pa.scalar(partition.mark_us, pa.int64()).cast(_INSTANT)
        read = self._logged(partition) if isinstance(partition, _Part) else self._reread(partition, names)
        for batch, timestamps in read:
            rows = batch.num_rows
            times = pa.nulls(rows, pa.int64()) if timestamps is None else _times(timestamps)
            columns = [batch.column(name) for name in names]
            added = [times.cast(_INSTANT), pa.repeat(mark, rows), pa.repeat(pa.scalar(False), rows)]
            yield pa.RecordBatch.from_arrays([*columns, *added], schema=schema)
        if partition.part == 0:
            nothing = [pa.nulls(1, field.type) for field in schema][: -len(ADDED)]
            added = [pa.repeat(mark, 1), pa.repeat(mark, 1), pa.repeat(pa.scalar(True), 1)]
            yield pa.RecordBatch.from_arrays([*nothing, *added], schema=schema)

    def _logged(self, part: _Part) -> Iterator[tuple[pa.RecordBatch, Any]]:
        from workbench.spark.carried.parcels import FromSplit, unpacked
        from workbench.spark.engine.reading import logged

        payloads = [row["payload"] for row in logged(self._folder, part.number).to_pylist() if row["task"] >= 0]
        read = [item.records for payload in payloads for item in unpacked(payload) if isinstance(item, FromSplit)]
        for records in read[part.part :: part.parts]:
            yield records.batch, records.timestamps

    def _reread(self, part: _Pieces, names: list[str]) -> Iterator[tuple[pa.RecordBatch, Any]]:
        from workbench.spark.engine.rereading import read_piece

        for piece in part.pieces:
            yield from read_piece(self._options["log"], part.identity, piece, names)


def _rows_behind(positions: Any) -> tuple[str, dict[str, int]]:
    """The identity of a replay log, and the number of rows before a position, by channel."""
    snapshots = list(positions.values())
    rows = {channel: offset for each in snapshots for channel, offset in each["offsets"].items()}
    return (snapshots[0]["log"] if snapshots else ""), rows


def _times(timestamps: Any) -> pa.Array:
    none = timestamps == -(2**63)
    return pa.array(timestamps, mask=none) if none.any() else pa.array(timestamps)
