"""The sources of a carried pipeline as one streaming data source of Spark, written in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from workbench.spark.engine.log_reader import LogReader, Offset

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


class CarriedReader(LogReader):
    """Partitions of the log (arguments as for `LogReader`)."""

    def _opened(self, plan: Any) -> Any:
        from workbench.spark.engine.reading import Reading

        return Reading(plan, self._folder, int(self._options["rows"]), clocked=self._options["clocked"] == "true")

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [_Batch(number) for number in range(start["batch"] + 1, end["batch"] + 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from workbench.spark.engine.reading import logged

        assert isinstance(partition, _Batch)
        rows = logged(self._folder, partition.number)
        yield rows.replace_schema_metadata(None).cast(
            pa.schema([("task", pa.int32()), ("channel", pa.int32()), ("payload", pa.binary())])
        )
