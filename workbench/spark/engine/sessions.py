"""The session in which a query runs: a copy of the user's session, with the settings that its results depend on."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workbench.errors import SettingError
from workbench.packages import needed
from workbench.spark.session import session
from workbench.spark.worker_python import check_worker_python

if TYPE_CHECKING:
    from workbench.spark.session import SparkSession

_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "false",  # as in the kernel, expressions return null instead of raising
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": _STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "500",
    "spark.sql.streaming.pollingDelay": "20ms",
    "fs.permissions.umask-mode": "077",  # of checkpoints
}


_OF_ONE_BATCH = {
    # The state of such a query is never read, so use what is cheapest to write.
    "spark.sql.streaming.stateStore.providerClass": _IN_MEMORY,
    # A further batch would end no more windows.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def query_session(given: object | None, partitions: int, *, several: bool) -> SparkSession:
    """A session with its own settings and the Spark context of `given`, or else of this process's session.

    Args:
        given: the user's session, which is not changed, or a master URL.
        partitions: of shuffles.
        several: whether the query has several stateful operators.

    Raises:
        SettingError: `given` is not a session of classic PySpark, has been stopped, or is not a valid master; or its
            workers run another Python.
        HistoryError: there is no Java.
        MissingPackageError: PySpark is not installed.
    """
    needed("pyspark.sql", "Spark")
    from pyspark.sql import SparkSession as Session

    base = session(given, progress=True) if given is None or isinstance(given, str) else given
    if not isinstance(base, Session):
        kind = f"{type(base).__module__}.{type(base).__name__}"
        connect = "; with Spark Connect it would run in another process" if "connect" in kind else ""
        raise SettingError(
            f"spark is a {kind}: pass a SparkSession of classic PySpark{connect}, or a master such as 'local[*]'"
        )
    context = base.sparkContext
    try:
        stopped = context._jsc is None or context._jsc.sc().isStopped()
    except Exception as error:  # whatever Py4J raises without an answer
        raise SettingError(
            f"the JVM of the Spark session has ended ({error}): leave spark out to start another one"
        ) from error
    if stopped:
        raise SettingError("the Spark session has been stopped: create a new one, or leave spark out")
    check_worker_python(context.pythonExec)
    own = base.newSession()
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    own.conf.set("spark.sql.shuffle.partitions", str(partitions))
    own.conf.set("spark.sql.streaming.statefulOperator.allowMultiple", "true" if several else "false")
    return own


def expect_one_batch(own: SparkSession) -> None:
    """Prepare the session of a query that has one batch."""
    for name, value in _OF_ONE_BATCH.items():
        own.conf.set(name, value)


@contextmanager
def active_kept() -> Iterator[None]:
    """Restore the active session, which PySpark changes when another session creates a frame.

    Otherwise the user's next frames would be created in the session of the query, with its settings.
    """
    from pyspark.sql import SparkSession as Session

    # Python has one active session, and each thread of the JVM one of its own, or none.
    with _ACTIVE:
        before, of_thread = Session._activeSession, Session.getActiveSession()
        try:
            yield
        finally:
            made = Session._activeSession
            Session._activeSession = before
            if made is not None:
                sessions = Session._get_j_spark_session_class(made._jvm)
                if of_thread is None:
                    sessions.clearActiveSession()
                else:
                    sessions.setActiveSession(of_thread._jsparkSession)


_ACTIVE = threading.RLock()


def register(spark: SparkSession, source: Any) -> str:
    """Register a data source in a session; return its name.

    The name is unique to the query: Spark looks up an existing name in the active session, which may be a different one
    from the session that registers.

    Args:
        spark: the session of the query.
        source: a class of ``DataSource``.
    """
    name = f"{source.name()}-{secrets.token_hex(4)}"
    spark.dataSource.register(type("Registered", (source,), {"name": classmethod(lambda cls: name)}))
    return name
