"""What executors on this machine need from the process that starts them: a folder laid out like Spark, and a Java.

The wheel of PySpark holds all of Spark, but Spark writes the work of its executors into its own folder. So executors
start from a temporary folder of links to the package. It lives as long as this process, because an executor that is
lost is started again.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from workbench.errors import HistoryError
from workbench.spark.java import Java, wrapped

_ON_THIS_MACHINE = {"SPARK_LOCAL_HOSTNAME": "localhost", "SPARK_LOCAL_IP": "127.0.0.1"}
"""Otherwise the driver announces itself by the machine's name, which its executors may not reach."""


def cluster_home(java: Java) -> dict[str, str]:
    """The environment of a Spark that starts executors on this machine.

    Raises:
        HistoryError: PySpark is not installed as a folder.
    """
    return {**_ON_THIS_MACHINE, "SPARK_HOME": str(_home()), "JAVA_HOME": str(_java_home(java))}


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Within the block, the environment has these values; afterwards it is as before.

    Example:
        >>> with environment({"WORKBENCH_EXAMPLE": "1"}):
        ...     os.environ["WORKBENCH_EXAMPLE"]
        '1'
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@cache
def _java_home(java: Java) -> Path:
    return wrapped(java, Path(tempfile.mkdtemp(prefix="java-", dir=_home())))


@cache
def _home() -> Path:
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise HistoryError(
            "PySpark is not installed as a folder, from which executors could start: install it with pip"
        )
    home = Path(tempfile.mkdtemp(prefix="workbench-spark-home-"))
    atexit.register(_leave, home)
    for entry in Path(package.origin).parent.iterdir():
        if entry.name not in ("work", "__pycache__"):
            (home / entry.name).symlink_to(entry)
    return home


def _leave(home: Path) -> None:
    """Stop Spark before its files go, or its workers would start executors over and over in a folder without files."""
    from pyspark import SparkContext

    with suppress(Exception):  # the JVM may have ended
        if (context := SparkContext._active_spark_context) is not None:
            context.stop()
    shutil.rmtree(home, ignore_errors=True)
