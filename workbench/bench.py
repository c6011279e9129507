"""The benchmarks of ``workbench bench`` from a notebook, with a progress bar; every result is checked.

Example::

    from workbench.bench import bench

    bench("sweep", repeats=1)      # a picture: latency and throughput against the buffer timeout
    bench("checkpoint")            # a table: what checkpoint intervals cost
"""

from __future__ import annotations

from workbench.errors import SettingError, unknown
from workbench.lab.bench.measuring.report import Report
from workbench.lab.bench.measuring.suites import SUITES, cases, run_round
from workbench.lab.bench.measuring.sweep import Sweep

__all__ = ["Report", "Sweep", "bench"]


def bench(
    name: str,
    *,
    repeats: int = 3,
    seconds: float | None = None,
    keys: int | None = None,
    parallelism: int | None = None,
) -> Report:
    """Measure, and return what a cell shows as a table, or for ``"sweep"`` as a picture.

    Args:
        name: ``"grep"``, ``"grouping"``, ``"windows"``, ``"campaigns"``, ``"redis"``, ``"function"``, ``"latency"``,
            ``"checkpoint"``, ``"sweep"`` or ``"all"``.
        repeats: rounds over all runs; the figures shown are medians.
        seconds: of each run, warm-up included; None: as many as the benchmark needs.
        keys, parallelism: leave out the runs with others.

    Raises:
        SettingError: no such benchmark.
    """
    if name not in (*SUITES, "all"):
        raise SettingError(unknown("benchmark", name, (*SUITES, "all")))
    chosen = cases(name, seconds, keys=keys, parallelism=parallelism)
    results = [result for number in range(repeats) for result in run_round(chosen, f"round {number + 1} of {repeats}")]
    return Sweep(results) if name == "sweep" else Report(results)
