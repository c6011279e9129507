"""Checks of the runtime's needs: Java and Spark for histories, compiled kernels for all jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from workbench.cli.checks.check import Check
from workbench.compiled import KERNELS, READY, warm_up
from workbench.errors import WorkbenchError
from workbench.spark.java import find_java
from workbench.spark.session import session


def java() -> Iterator[Check]:
    """A Java that can run Spark."""
    try:
        found = find_java()
    except WorkbenchError as error:
        yield Check("Java", False, str(error), "without Java you can only replay existing histories")
    else:
        yield Check("Java", True, f"{found.version} at {found.home} (from {found.origin})")


def spark_session() -> Iterator[Check]:
    """Whether Spark starts and runs a job."""
    begun = time.monotonic()
    try:
        spark = session()
        rows = spark.range(10).count()
        found = f"{spark.version}, started and ran a job in {time.monotonic() - begun:.1f} s"
        spark.stop()
    except Exception as error:  # noqa: BLE001 - this check reports whatever keeps Spark from starting
        yield Check("Spark session", False, f"{type(error).__name__}: {first_line(error)}", "fix Java first, see above")
    else:
        yield Check("Spark session", rows == 10, found)


def compiled_kernels() -> Iterator[Check]:
    """Whether the hot loops run, and whether the next process has to compile them."""
    if READY is not None:
        yield Check("compiled kernels", True, f"{len(KERNELS)} precompiled, for {READY.level} processors")
        return
    begun = time.monotonic()
    try:
        warm_up()
    except Exception as error:  # noqa: BLE001 - the same
        mend = "reinstall numba and numpy in compatible versions"
        yield Check("compiled kernels", False, f"{type(error).__name__}: {first_line(error)}", mend)
        return
    yield Check("compiled kernels", True, f"{len(KERNELS)} ready in {time.monotonic() - begun:.1f} s")
    declared = import_module("workbench.compiled.machinery.compiled").KERNELS
    cache = Path(next(iter(declared.values())).dispatchers[0].stats.cache_path)
    yield Check(
        "kernel cache",
        os.access(cache, os.W_OK),
        f"{cache}" if os.access(cache, os.W_OK) else f"cannot write to {cache}",
        "every process compiles the kernels again; set NUMBA_CACHE_DIR to a folder that you can write to",
        needed=False,
    )


def first_line(error: Exception) -> str:
    """The first line of an error's message, at most 200 characters of it."""
    return (str(error).splitlines() or ["no message"])[0][:200]
