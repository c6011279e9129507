"""A replay log as a frame of Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from workbench.connectors.replay.log import ReplayLog
from workbench.errors import HistoryError
from workbench.spark.prepare import hadoop_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WILD = re.compile(r"([{}\[\]*?\\])")


def frame_of(log: ReplayLog, spark: SparkSession) -> DataFrame:
    """The records of a log, read by executors from the files that its manifest names.

    Raises:
        HistoryError: a column of a type that Spark does not have.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    try:
        schema = from_arrow_schema(log.schema)
    except PySparkException as error:
        types = ", ".join(f"{field.name} {field.type}" for field in log.schema)
        raise HistoryError(
            f"the log at {log.path} has a column of a type that Spark does not have ({types}): {error}"
        ) from error
    files = [_WILD.sub(r"\\\1", hadoop_path(log.path / file.name)) for file in log.manifest.files]
    return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
