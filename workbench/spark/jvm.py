"""The JVM of Spark that this process has: whether it still runs, and its end."""

from __future__ import annotations

import subprocess
import warnings
from contextlib import suppress

_END_S = 10.0
"""For a JVM to end by itself."""


def has_ended() -> bool:
    """Whether a JVM that this process has started is over: it was killed, or ran out of memory."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def end() -> None:
    """End the JVM with its context and sessions, if there is one; the next session starts a JVM of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    with suppress(Exception), warnings.catch_warnings():  # one that is over does not answer
        warnings.simplefilter("ignore")
        if context is not None:
            context.stop()
    # What PySpark itself forgets only when a JVM answers.
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = SQLContext._instantiatedContext = None
    if gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    if (process := gateway.proc) is None:  # another program started it
        return
    with suppress(OSError):
        process.stdin.close()  # it ends when its input is closed
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
