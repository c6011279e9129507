"""Pipelines on executors that are processes of their own: one is killed, and nothing is lost or doubled.

A process has one JVM of Spark, so each cluster has a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_master import standalone

pytestmark = pytest.mark.spark
PROGRAM = Path(__file__).parents[1] / "support" / "spark_cluster_job.py"


def run(folder: Path, log: Path, master: str, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, PROGRAM, folder, log, master, *more], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    told: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return told


def check_delays(folder: Path, told: dict[str, Any], oracle: pa.Table) -> None:
    """All windows once, as DuckDB has them, and the loss of the executor in status and picture."""
    lost = f"executor {told['killed']} on"
    assert told["state"] == "FINISHED"
    assert any(sentence.startswith(lost) for sentence in told["status"]["executors_lost"])
    assert lost in told["html"]
    found = pq.read_table(folder / "delays.parquet").sort_by([("origin", "ascending"), ("window_start", "ascending")])
    expected = oracle.select(["origin", "window_start", "flights", "mean_delay", "worst"])
    for name in ("origin", "flights", "worst"):
        assert found[name].to_pylist() == expected[name].to_pylist()
    assert found["window_start"].cast(pa.int64()).to_pylist() == expected["window_start"].cast(pa.int64()).to_pylist()
    assert found["mean_delay"].to_pylist() == pytest.approx(expected["mean_delay"].to_pylist(), rel=1e-12)


def test_several_jvms_of_which_one_is_killed(tmp_path: Path, flights_log: Path, delays_oracle: pa.Table) -> None:
    told = run(tmp_path, flights_log, "local-cluster[2,1,1024]", "carried")
    check_delays(tmp_path, told, delays_oracle)
    assert told["status"]["executors"] == 2
    assert (tmp_path / "killed").exists()
    assert (told["carried"], len(told["carried_status"]["executors_lost"])) == ("FINISHED", 1)
    sessions = pq.read_table(tmp_path / "sessions.parquet")
    assert sorted(sessions["n"].to_pylist()) == [4] * 500
    assert not (Path(pq.__file__).parents[1] / "pyspark" / "work").exists()  # the package is left as it is


@pytest.mark.skipif(not os.environ.get("WORKBENCH_CLUSTERS"), reason="'make clusters' runs it: another half minute")
def test_a_standalone_master_whose_executor_is_killed(
    tmp_path: Path, flights_log: Path, delays_oracle: pa.Table
) -> None:
    with standalone(tmp_path) as master:
        told = run(tmp_path, flights_log, master)
    check_delays(tmp_path, told, delays_oracle)
