"""The sources of a carried pipeline as one streaming data source of Spark, written in Python.

Spark runs the reader in a separate process on the driver's machine, asks it for offsets there, and has executors read
the log of a batch. Executors need only the folder of the log, so the reader is sent to them without its open files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

Offset = dict[str, Any]
FORMAT = "workbench"
ROWS = "task INT, channel INT, payload BINARY"


class CarriedDataSource(DataSource):  # type: ignore[misc]  # PySpark is untyped here
    """Reads the sources of a pipeline; its options are the folder of the log, the plan, and the size of a batch."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ROWS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return CarriedReader(dict(self.options))


class _Batch(InputPartition):  # type: ignore[misc]  # PySpark is untyped here
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class CarriedReader(DataSourceStreamReader):  # type: ignore[misc]  # PySpark is untyped here
    """Offsets and partitions of the log.

    Args:
        options: of the data source.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._folder = Path(options["folder"])
        self._reading: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reading": None}

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        return {"batch": 0, "ended": False, "positions": {}}

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> Offset:  # noqa: N802  Spark's name
        if self._reading is None:
            from workbench.spark.engine.reading import Reading
            from workbench.spark.engine.sent import received

            file = Path(self._options["plan"])
            plan = received(file.name, file.read_bytes)
            rows, clocked = int(self._options["rows"]), self._options["clocked"] == "true"
            self._reading = Reading(plan, self._folder, rows, clocked=clocked)
        offset: Offset = self._reading.next_offset(start or self.initialOffset())
        return offset

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [_Batch(number) for number in range(start["batch"] + 1, end["batch"] + 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from workbench.spark.engine.reading import logged

        assert isinstance(partition, _Batch)
        rows = logged(self._folder, partition.number)
        yield rows.replace_schema_metadata(None).cast(
            pa.schema([("task", pa.int32()), ("channel", pa.int32()), ("payload", pa.binary())])
        )

    def commit(self, end: Offset) -> None:
        if self._reading is not None:
            self._reading.forget(end)

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.close()
