"""A local Spark session that suits histories: UTC, microseconds, loopback only, quiet, and quick to start."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.packages import needed
from workbench.spark.java import find_java, java_for_spark

if TYPE_CHECKING:
    # Exported under these names for modules that may not import PySpark themselves.
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

MEMORY_VARIABLE = "WORKBENCH_SPARK_MEMORY"
"""Environment variable with the memory of Spark's JVM, for example ``768m``; 1 GB when it is not set."""

_LOGGING = Path(__file__).with_name("log4j2.properties")
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUIET = "--sun-misc-unsafe-memory-access=allow"


def session(*, quick_start: bool = True) -> SparkSession:
    """The Spark session of this process: the active one if there is one, else a new local one on all cores.

    A new session listens on the loopback address only and has no web UI. With `quick_start` it starts in about
    half the time, at the expense of long jobs: 20 million rows take about 2.7 times as long to write.

    Raises:
        HistoryError: there is no Java of version 17 or newer.
        MissingPackageError: PySpark is not installed.

    Example:
        >>> spark = session()
        >>> spark.range(3).count()
        3
    """
    needed("pyspark.sql", "Spark")
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    java = find_java()
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", "-Duser.timezone=UTC"]
    if quick_start:
        options.append(_QUICK_START)
    if java.version >= 24:
        options.append(_QUIET)
    # Python workers of Spark must run the Python that started it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with java_for_spark(java):
        return (
            SparkSession.builder.master("local[*]")
            .appName("streaming-workbench")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", " ".join(options))
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", os.environ.get(MEMORY_VARIABLE, "1g"))
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", Path(tempfile.gettempdir(), "workbench-warehouse").as_uri())
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )


@contextmanager
def spark_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Change a setting of a session, which may be the user's own, for the duration of the block."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)
