"""How long Spark takes to write a history, against its own Parquet writer for the same generated records."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import workbench as wb
from workbench.spark.session import session

ROWS = 50_000_000
_CHANNELS = 4
_SECOND_US = 1_000_000
_WARM_UP = 100_000


@dataclass(frozen=True, slots=True)
class Written:
    """A history and the same records as plain Parquet.

    Attributes:
        rows: of five columns.
        plain_s, history_s, read_s: seconds of Spark's own ``write.parquet``, of the history, and of reading it back.
        jvm_mb, python_mb: the most memory that Spark's JVM and this process had in RAM; 0: not known.
        exact: whether the history holds every record once.
    """

    rows: int
    plain_s: float
    history_s: float
    read_s: float
    jvm_mb: int
    python_mb: int
    exact: bool

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"peer": "workbench", "workload": "history", "config": {"rows": self.rows}, **asdict(self)})

    def describe(self) -> str:
        """Two lines."""
        right = "every record once" if self.exact else "WRONG RECORDS"
        return (
            f"{self.rows:,} records as a history: {self.history_s:,.1f} s, {self.rows / self.history_s:,.0f} rows/s, "
            f"{self.history_s / self.plain_s:.2f} times Spark's write.parquet ({self.plain_s:,.1f} s); {right}\n"
            f"read back in {self.read_s:,.1f} s; at most {self.jvm_mb:,} MB in Spark's JVM and {self.python_mb:,} MB "
            "in this process"
        )


def write(rows: int, tell: Callable[[str], None]) -> Written:
    """Generate records in an order that has nothing to do with their arrival, and write them both ways.

    Args:
        rows: how many.
        tell: called with each phase.
    """
    spark = session(quick_start=False)
    # A multiplier without a common factor, so that arrivals are all numbers in some order.
    arrived = f"CAST(pmod(id * 7368787, {rows}) AS BIGINT)"
    frame = spark.range(rows).selectExpr(
        "id AS number",
        f"timestamp_micros({arrived} * {_SECOND_US // 1_000} - pmod(hash(id), 1000000)) AS happened",
        f"timestamp_micros({arrived} * {_SECOND_US // 1_000}) AS known",
        "CAST(pmod(hash(id), 1000) AS INT) AS key",
        "rand(7) AS value",
    )
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as folder:
        tell("a warm-up")  # otherwise the first writer pays for the start of the JVM
        some = frame.limit(min(rows, _WARM_UP))
        some.write.parquet(Path(folder, "warm-up").as_uri())
        _history(some, Path(folder, "warm-up.log"))
        tell("Spark's own write.parquet")
        plain_s = _seconds(lambda: frame.write.parquet(Path(folder, "plain").as_uri()))
        tell("the history")
        made: list[wb.History] = []
        history_s = _seconds(lambda: made.append(_history(frame, Path(folder, "history.log"))))
        tell("reading it back")
        found: list[Any] = []
        back = made[0].to_spark(spark).selectExpr("count(*)", "count(DISTINCT number)", "min(number)", "max(number)")
        read_s = _seconds(lambda: found.extend(back.collect()))
        exact = made[0].rows == rows and tuple(found[0]) == (rows, rows, 0, rows - 1)
    jvm = int(spark.sparkContext._jvm.ProcessHandle.current().pid())
    return Written(
        rows, round(plain_s, 2), round(history_s, 2), round(read_s, 2), _most_mb(jvm), _most_mb(os.getpid()), exact
    )


def _history(frame: Any, path: Path) -> wb.History:
    return wb.History.from_spark(
        frame,
        path,
        event_time="happened",
        arrival_time="known",
        channels=_CHANNELS,
        source={"data": "made"},
        progress=False,
    )


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _most_mb(process: int) -> int:
    """The most memory that a process had in RAM."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) // 1_000
    except (OSError, StopIteration, ValueError):
        return 0
