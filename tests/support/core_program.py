"""A job with checkpoints, where only the engine's own packages are installed.

Prints one line of JSON: the rows, and what is said where a package is missing. ``make core`` runs it in an environment
of ``requirements/core.txt``; with the argument ``hidden`` it hides all other packages that are installed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

CORE = {"numpy", "pyarrow", "numba", "llvmlite", "sqlglot", "workbench"}


def hide() -> None:
    """Have no package but those of the core be found."""
    hidden = set(packages_distributions()) - CORE - sys.stdlib_module_names
    find = PathFinder.find_spec

    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] in hidden else find(name, path, target)

    PathFinder.find_spec = staticmethod(find_spec)  # type: ignore[method-assign]


def run(folder: Path) -> dict[str, Any]:
    import pyarrow as pa

    import workbench as wb
    from workbench import col
    from workbench.cli import main
    from workbench.datasets import flights_history
    from workbench.errors import WorkbenchError
    from workbench.spark.session import session

    rows = pa.table({"k": ["a", "b", "a"], "v": [1, 2, 3], "t": pa.array([0, 1, 7200], pa.timestamp("s"))})
    sums = (
        wb.Stream.from_table(rows, event_time="t")
        .filter(col("v") % 7 > 0)
        .map(lambda k, v: (k, v + 1), {"k": "string", "v": "int64"}, columns=["k", "v"])
        .key_by("k")
        .window(wb.tumbling("1h"))
        .aggregate(n=wb.count(), total=wb.sum("v"))
        .sink_to(wb.TableSink("sums"))
    )
    job = sums.run("sums", parallelism=2, checkpoint_dir=folder / "checkpoints", checkpoint_interval="10ms")
    state = job.wait("60s")

    def said(action: Callable[[], object]) -> str:
        try:
            action()
        except WorkbenchError as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"

    return {
        "rows": sorted([row["k"], row["n"], row["total"]] for row in job.table("sums").to_pylist()),
        "state": state,
        "shown": "sums" in repr(job.status()),
        "dashboard": said(job.dashboard),
        "view": said(lambda: job.view("graph")),
        "serve": said(wb.serve),
        "report": said(lambda: job.report(folder / "report.html")),
        "spark": said(session),
        "flights": said(lambda: flights_history(folder / "flights.log")),
        "duckdb": said(lambda: sums_to(wb, rows, folder)),
        "doctor": main(["doctor"]),
        "others": sorted(
            name
            for name in {name.partition(".")[0] for name in sys.modules} & set(packages_distributions()) - CORE
            if name[0] != "_"
        ),
    }


def sums_to(wb: Any, rows: Any, folder: Path) -> None:
    wb.Stream.from_table(rows).sink_to(wb.SqlSink(f"duckdb:///{folder}/rows.db", "rows")).run("rows")


if __name__ == "__main__":
    if sys.argv[1:] == ["hidden"]:
        hide()
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.write(json.dumps(run(Path(made))) + "\n")
