"""A Spark session that suits histories and pipelines: UTC, microseconds, loopback only, quiet, and quick to start."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.connectors.replay.log import Progress
from workbench.errors import SettingError
from workbench.packages import needed
from workbench.spark import jvm
from workbench.spark.cluster_home import cluster_home, environment
from workbench.spark.java import find_java, java_for_spark
from workbench.spark.masters import Master
from workbench.spark.progress import shown

if TYPE_CHECKING:
    # Exported under these names for modules that may not import PySpark themselves.
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

MEMORY_VARIABLE = "WORKBENCH_SPARK_MEMORY"
"""Environment variable with the memory of Spark's JVM, for example ``768m``; 1 GB when it is not set."""

_LOGGING = Path(__file__).with_name("log4j2.properties")
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUIET = "--sun-misc-unsafe-memory-access=allow"


def session(master: str | None = None, *, quick_start: bool = True, progress: bool | Progress = False) -> SparkSession:
    """The Spark session of this process: the active one if there is one, else a new one.

    If the JVM of the former one has ended, as when it ran out of memory, a new one is started.

    A new session has no web UI, and listens on the loopback address only unless its master is on another machine. With
    `quick_start` it starts in about half the time, at the expense of long jobs: 20 million rows take about 2.7 times as
    long to write.

    Args:
        master: ``local[*]`` (threads of one JVM), ``local-cluster[2,1,1024]`` (2 executors, each a JVM of 1 core and
            1024 MB) or ``spark://HOST:7077`` (a standalone cluster); None: the active one's, else ``local[*]``.
        quick_start: compile less of Spark, and use the collector of garbage that starts first.
        progress: show that Spark is being started, which takes some seconds, or tell that to a function.

    Raises:
        HistoryError: there is no Java of version 17 or newer.
        SettingError: no such master, or Spark already runs in this process with another one.
        MissingPackageError: PySpark is not installed.

    Example:
        >>> spark = session()
        >>> spark.range(3).count()
        3
    """
    needed("pyspark.sql", "Spark")
    wanted = None if master is None else Master.of(master)
    present = _present()
    if present is None:
        chosen = wanted or Master.of("local[*]")
        with shown(progress) as told:
            told(stage := f"starting Spark, {chosen.url}", 0, 0)
            started = _started(chosen, quick_start)
            told(stage, 1, 1)
        return started
    if wanted is not None:
        _check_master(present, wanted)
    _passing.clear()  # the next user of the session may keep it
    return present


@contextmanager
def passing_session(progress: bool | Progress = False) -> Iterator[SparkSession]:
    """The session of this process for the duration of a block; if there is none, one that ends with the block.

    Its JVM ends with it, so that the process can still have any master, and has its memory back. If somebody else takes
    the session within the block, it stays.

    Args:
        progress: as for `session`.

    Raises:
        HistoryError, MissingPackageError: as for `session`.

    Example:
        >>> with passing_session() as spark:
        ...     spark.range(3).count()
        3
    """
    needed("pyspark.sql", "Spark")
    spark = _present()
    if spark is not None:
        yield spark
        return
    spark = session(progress=progress)
    _passing.append(spark)
    try:
        yield spark
    finally:
        if spark in _passing:
            _passing.clear()
            jvm.end()


_passing: list[SparkSession] = []
"""The session that ends with its block, unless another user takes it."""


def _present() -> SparkSession | None:
    """The active session of this thread, else one of the context that this process has; None: its JVM has ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if jvm.has_ended():
        jvm.end()
    active = SparkSession.getActiveSession()
    context = SparkContext._active_spark_context
    if active is not None or context is None or context._jsc is None:
        return active
    return SparkSession.builder.getOrCreate()  # another thread has made it


def _started(master: Master, quick_start: bool) -> SparkSession:
    """A session on a JVM that is started now, unless there is one that a former session has left."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    java = find_java()
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", "-Duser.timezone=UTC"]
    if quick_start:
        options.append(_QUICK_START)
    if java.version >= 24:
        options.append(_QUIET)
    # Python workers of Spark must run the Python that started it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: SparkSession.Builder = (
        SparkSession.builder.master(master.url)
        .appName("streaming-workbench")
        .config("spark.driver.extraJavaOptions", " ".join(options))
        .config("spark.driver.memory", os.environ.get(MEMORY_VARIABLE, "1g"))
        .config("spark.executor.extraJavaOptions", " ".join(options if master.here else ["-Duser.timezone=UTC"]))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", Path(tempfile.gettempdir(), "workbench-warehouse").as_uri())
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    if master.here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    if master.executor_mb is not None:
        builder = builder.config("spark.executor.memory", f"{master.executor_mb}m")
    if not master.starts_executors:
        with java_for_spark(java):
            return builder.getOrCreate()
    home = cluster_home(java)
    if SparkContext._gateway is not None and not SparkContext._jvm.System.getenv("SPARK_HOME"):
        jvm.end()  # a stopped session has left it, and it cannot start executors
    with environment(home):
        return builder.getOrCreate()


def _check_master(active: SparkSession, wanted: Master) -> None:
    present = active.sparkContext.master
    if present != wanted.url:
        raise SettingError(
            f"spark={wanted.url!r}, but Spark already runs in this process with the master {present!r}, and a "
            "process has only one: stop that session, or omit spark"
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
