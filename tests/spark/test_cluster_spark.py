"""Executors in separate processes, and JVMs that run out of memory: nothing is lost or duplicated.

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
SUPPORT = Path(__file__).parents[1] / "support"
many = pytest.mark.skipif(not os.environ.get("WORKBENCH_CLUSTERS"), reason="'make clusters' runs it: some minutes")


def run(program: str, folder: Path, *more: str | Path) -> dict[str, Any]:
    command = [sys.executable, SUPPORT / program, folder, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_800, check=False)
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
    told = run("spark_cluster_job.py", tmp_path, flights_log, "local-cluster[2,1,1024]")
    check_delays(tmp_path, told, delays_oracle)
    assert told["status"]["executors"] == 2
    assert told["batches"] >= 3
    assert not (Path(pq.__file__).parents[1] / "pyspark" / "work").exists()  # the package is left as it is


@many
def test_executors_that_functions_kill_and_fill(tmp_path: Path, flights_log: Path) -> None:
    told = run("spark_cluster_job.py", tmp_path, flights_log, "local-cluster[2,1,1024]", "carried", "memory")
    assert (tmp_path / "killed").exists()
    assert (told["carried"], len(told["carried_status"]["executors_lost"])) == ("FINISHED", 1)
    sessions = pq.read_table(tmp_path / "sessions.parquet")
    assert sorted(sessions["n"].to_pylist()) == [4] * 500
    memory = told["memory"]
    assert "a JVM of Spark ran out of memory: give it more" in memory["short"]
    assert "more megabytes in local-cluster[...]" in memory["short"]
    assert any("it ran out of memory" in sentence for sentence in memory["lost"])
    assert "it ran out of memory" in memory["html"]
    assert 1_000 <= memory["written"] < 2_000  # the first batch
    assert (memory["again"], memory["numbers"]) == ("FINISHED", list(range(2_000)))
    assert "a Python process of Spark ended in the middle of a batch" in memory["dying"]


@many
def test_a_standalone_master_whose_executor_is_killed(
    tmp_path: Path, flights_log: Path, delays_oracle: pa.Table
) -> None:
    with standalone(tmp_path) as master:
        told = run("spark_cluster_job.py", tmp_path, flights_log, master)
    check_delays(tmp_path, told, delays_oracle)


@many
def test_a_jvm_without_memory_is_followed_by_one_with_more(tmp_path: Path) -> None:
    told = run("spark_memory_job.py", tmp_path)
    assert told["left"] == []  # a session that prepares a data set leaves the choice of a master
    assert "a JVM of Spark ran out of memory: give it more" in told["short"]
    assert "\n" not in told["short"]
    assert "the JVM of the Spark session has ended" in told["next"]
    assert (told["again"], told["numbers"]) == ("FINISHED", True)
