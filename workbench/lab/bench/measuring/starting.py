"""Start-up times: of a new process until the workbench is imported, and of a job until its first result."""

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
from dataclasses import asdict, dataclass, fields

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.compiled import warm_up

_PROGRAM = """
import time
begin = time.perf_counter()
import workbench.public
import_s = time.perf_counter() - begin
from workbench.lab.bench.measuring.starting import measure
print(measure(import_s).to_json())
"""
_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ROWS = 100_000
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Start:
    """One process; seconds.

    Attributes:
        import_s: importing the exported names of ``workbench``, as its first use does.
        kernels_s: loading the kernels, as the first job does.
        first_s: from ``run()`` of the first job to the first row at its sink, including kernels.
        second_s: the same for the next job.
    """

    import_s: float
    kernels_s: float
    first_s: float
    second_s: float

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({name: round(value, 4) for name, value in asdict(self).items()})


def measure(import_s: float) -> Start:
    """Measure this process, in which no kernel is loaded yet."""
    begin = time.perf_counter()
    warm_up()
    kernels_s = time.perf_counter() - begin
    return Start(import_s, kernels_s, kernels_s + _first_result_s("start-first"), _first_result_s("start-second"))


def _first_result_s(name: str) -> float:
    """From ``run()`` to the first row at the sink of a job with a filter, an exchange and an aggregate."""
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
    """New processes: one with an empty cache of kernels, as on a new machine, then `repeats` with the usual one."""
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as empty:
        yield "nothing cached", _in_new_process({"NUMBA_CACHE_DIR": empty})
    _in_new_process({})  # fills the usual cache if necessary
    for _ in range(repeats):
        yield "cached", _in_new_process({})


def _in_new_process(environment: dict[str, str]) -> Start:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return Start(**json.loads(ran.stdout.splitlines()[-1]))


def medians(found: list[Start]) -> Start:
    """Of each time."""
    return Start(*(statistics.median(getattr(start, field.name) for start in found) for field in fields(Start)))


def table(found: list[tuple[str, Start]], say: Callable[[str], None]) -> None:
    """Print the medians of each kind of start."""
    say(f"{'milliseconds':16}{'import':>9}{'kernels':>9}{'first job':>11}{'next job':>10}")
    for kind in dict.fromkeys(kind for kind, _ in found):
        start = medians([each for own, each in found if own == kind])
        times = start.import_s, start.kernels_s, start.first_s, start.second_s
        say(
            f"{kind:16}"
            + "".join(f"{1_000 * each:{width},.0f}" for each, width in zip(times, (9, 9, 11, 10), strict=True))
        )
