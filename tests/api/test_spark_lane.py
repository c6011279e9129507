"""Spark beside other architectures; a query in this process takes the place of Spark's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from query_here import run_here

import workbench as wb
from workbench.spark.jobs.faults import BatchFailedOnPurposeError, BatchFaults, RestAt

ROWS = 6_000
ABSENT = ("p50_ms", "p99_ms", "buffers", "messages", "bytes", "stall_ms", "timed_out", "queued", "refused")


def counts() -> wb.types.Pipeline:
    numbers = wb.Stream.from_table(pa.table({"k": np.arange(ROWS) % 5, "n": np.arange(ROWS)}))
    counted = numbers.key_by("k").aggregate(c=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
    return counted + numbers.rebalance().sink_to(wb.TableSink("rows"))


def test_failed_batches_of_spark_are_read_again_and_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here(monkeypatch, batch_rows=2_000).release(1_000)
    lanes = wb.compare(
        counts(), ["snapshots", "spark"], faults=["task-dies:at=1500", "task-dies:at=4100"], checkpoint_interval="50ms"
    )
    assert set(lanes.wait("60s").values()) == {"FINISHED"}
    assert len(lanes["spark"].table("rows")) == ROWS
    told = {row["architecture"]: row for row in lanes.table().to_pylist()}["spark"]
    assert (told["claimed"], told["observed"], told["failures"]) == ("exactly-once", "exactly-once", 2)
    assert told["records_again"] >= 2_000
    assert told["recovery_ms"] > 0
    assert [told[name] for name in ABSENT] == [None] * len(ABSENT)  # what Spark does not measure is no zero
    [spark] = [row for row in lanes.documents().to_pylist() if row["architecture"] == "spark"]
    assert (spark["overhead_observed"], spark["model_observed"]) == ("not measured", "one batch after the other")
    assert "spark: each result once. After 2 failures it read" in repr(lanes)


def test_a_zombie_cannot_happen_on_spark() -> None:
    with pytest.raises(wb.errors.SettingError, match="zombie:at=100,wakes=50 cannot happen on Spark"):
        wb.compare(counts(), ["spark"], faults="zombie:at=100,wakes=50", name="no-zombie")


def test_the_batch_with_the_record_fails_once() -> None:
    faults = BatchFaults([5, 25])
    faults.before(0, 5)
    with pytest.raises(BatchFailedOnPurposeError, match="after record 5"):
        faults.before(5, 20)
    assert faults.failed_just_now
    faults.before(5, 20)
    faults.after(3)
    assert not faults.failed_just_now
    with pytest.raises(BatchFailedOnPurposeError, match="after record 25"):
        faults.before(20, 30)
    assert (faults.failures, faults.records_again, len(faults.recovery_s)) == (2, 25, 1)


def test_the_first_sink_rests_for_the_records_of_the_fault() -> None:
    rested: list[float] = []
    faults = BatchFaults(rests=[RestAt(1_000, 2_000, 500_000)])
    for rows in (500, 1_000, 2_000, 100):
        faults.after(rows, rested.append)
    assert rested == [0.25, 0.75]
