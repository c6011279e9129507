"""How long a start takes: a new process until it has the workbench, and a job until its first result."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.compiled import READY
from workbench.compiled.native.library import CHOICE

_PROGRAM = """
import time
begin = time.perf_counter()
import workbench as wb
wb.Stream
import_s = time.perf_counter() - begin
from workbench.lab.bench.measuring.starting import measure
print(measure(import_s).to_json())
"""
_EXTENSION = """
import time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
begin = time.perf_counter()
shell.run_line_magic("load_ext", "workbench")
print(time.perf_counter() - begin)
"""
_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ROWS = 100_000
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Start:
    """One process; seconds.

    Attributes:
        import_s: importing ``workbench`` and its `Stream`, with what that needs.
        first_s: from ``run()`` of the first job to the first row at its sink; kernels that it needs are compiled.
        second_s: the same of the next job.
        extension_s: ``%load_ext workbench`` in a process of its own, which imports as well.
    """

    import_s: float
    first_s: float
    second_s: float
    extension_s: float = 0.0

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({name: round(value, 4) for name, value in asdict(self).items()})


def measure(import_s: float) -> Start:
    """Measure this process, in which no job has run yet."""
    return Start(import_s, _first_result_s("start-first"), _first_result_s("start-second"))


def _first_result_s(name: str) -> float:
    """From ``run()`` to the first row that reaches the sink of a job with a filter, an exchange and an aggregate."""
    came = threading.Event()
    times: list[float] = []

    def arrived(batch: pa.RecordBatch) -> None:
        times.append(time.perf_counter())
        came.set()

    def rows(first: int, count: int) -> pa.RecordBatch:
        numbers = np.arange(first, first + count)
        return pa.RecordBatch.from_arrays([pa.array(numbers % 1_000), pa.array(numbers)], schema=_SCHEMA)

    stream = wb.Stream.from_generator(rows, _SCHEMA, limit=ROWS).filter("value >= 0")
    counted = stream.key_by("key").aggregate(n=wb.count(), s=wb.sum("value"))
    begin = time.perf_counter()
    job = counted.sink_to(wb.CallbackSink(arrived)).run(name, parallelism=2)
    came.wait(PATIENCE_S)
    job.wait(f"{PATIENCE_S:g}s")
    return times[0] - begin


def starts(repeats: int) -> Iterator[tuple[str, Start]]:
    """New processes: with the kernels as they are installed, then with numba's, first without a cache, as on a new
    machine where no kernels are ready."""
    usual = "ready kernels" if READY is not None else "cached kernels"
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as empty:
        byte_code = {"PYTHONPYCACHEPREFIX": f"{empty}/byte-code"}
        _in_new_process(byte_code)  # fills it, as pip does when it installs a package
        for _ in range(repeats):
            yield usual, _in_new_process(byte_code)
        numba = {**byte_code, CHOICE: "numba", "NUMBA_CACHE_DIR": f"{empty}/numba"}
        yield "nothing cached", _in_new_process(numba)
        if READY is not None:
            for _ in range(repeats):
                yield "cached by numba", _in_new_process(numba)


def _in_new_process(environment: dict[str, str]) -> Start:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def told(program: str) -> str:
        command = [sys.executable, "-c", program]
        ran = subprocess.run(command, env={**own, **environment}, capture_output=True, text=True, check=True)
        return ran.stdout.splitlines()[-1]

    start = Start(**json.loads(told(_PROGRAM)))
    return replace(start, extension_s=float(told(_EXTENSION)))


def medians(found: list[Start]) -> Start:
    """Of each time."""
    return Start(*(statistics.median(getattr(start, field.name) for start in found) for field in fields(Start)))


def table(found: list[tuple[str, Start]], say: Callable[[str], None]) -> None:
    """Print the medians of each kind of start."""
    say(f"{'milliseconds':16}{'import':>9}{'%load_ext':>11}{'first job':>11}{'next job':>10}")
    for kind in dict.fromkeys(kind for kind, _ in found):
        start = medians([each for own, each in found if own == kind])
        times = start.import_s, start.extension_s, start.first_s, start.second_s
        say(
            f"{kind:16}"
            + "".join(f"{1_000 * each:{width},.0f}" for each, width in zip(times, (9, 11, 11, 10), strict=True))
        )
