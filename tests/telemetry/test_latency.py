"""Percentiles of latency, compared with plain Python: by rank over a known number of markers."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.elements import LatencyMarker
from workbench.runtime.tasks.kept_markers import KEPT, KeptMarkers
from workbench.telemetry.latency import LEAST, RECENT_US, latency_frames

NOW_US = 1_000_000_000
GAP_US = 1_000


def task(vertex: str, travelled_us: list[int], until_us: int = NOW_US) -> SimpleNamespace:
    """A task that markers have reached, one after the other every millisecond, after so long each."""
    markers = KeptMarkers()
    for number, each in enumerate(travelled_us):
        arrived_us = until_us - GAP_US * (len(travelled_us) - 1 - number)
        markers.add(arrived_us, LatencyMarker(arrived_us - each, "read[0]"))
    return SimpleNamespace(vertex=vertex, markers=markers, finished=False)


def frames(*tasks: SimpleNamespace, now_us: int = NOW_US, since_us: int = 0) -> dict[str, Any]:
    found = latency_frames(cast("Any", SimpleNamespace(tasks=tasks)), now_us, since_us)
    return {frame.vertex: frame for frame in found}


def test_percentiles_are_those_of_all_markers_of_a_vertex() -> None:
    found = frames(task("sum", [n * 1_000 for n in range(51)]), task("sum", [n * 1_000 for n in range(51, 101)]))
    assert list(found) == ["sum"]
    latency = found["sum"]
    assert (latency.count, latency.recent) == (101, 101)
    measured = (latency.p50_ms, latency.p90_ms, latency.p95_ms, latency.p99_ms)
    assert measured == pytest.approx((50.0, 90.0, 95.0, 99.0))  # of 0 to 100 ms, one marker each


def test_only_the_markers_of_the_last_seconds_count() -> None:
    old = [7_000_000] * 60
    later = task("sum", [*old, *[2_000] * 40])
    window_end_us = NOW_US - 40 * GAP_US + RECENT_US
    latency = frames(later, now_us=window_end_us)["sum"]
    assert (latency.p50_ms, latency.p99_ms, latency.recent) == (2.0, 2.0, 40)
    assert frames(later, now_us=window_end_us - 2 * GAP_US)["sum"].p99_ms > 2.0


def test_also_when_older_ones_were_overwritten() -> None:
    latency = frames(task("sum", [7_000_000] * 5 + [2_000] * KEPT))["sum"]
    assert (latency.p50_ms, latency.p99_ms, latency.count) == (2.0, 2.0, KEPT + 5)


def test_only_markers_that_were_sent_after_a_change_count() -> None:
    one = task("sum", [500_000] * 100 + [5_000] * 20)
    sent_us = NOW_US - 19 * GAP_US - 5_000
    assert frames(one, since_us=sent_us)["sum"].p99_ms == 5.0
    assert frames(one, since_us=sent_us)["sum"].recent == 20
    assert frames(one)["sum"].p99_ms == 500.0
    assert frames(one, since_us=NOW_US) == {}
    one.finished = True  # no more come
    assert frames(one, since_us=NOW_US)["sum"].recent == 120


def test_where_few_markers_come_the_newest_count() -> None:
    latency = frames(task("sum", [1_000] * 50 + [3_000] * LEAST), now_us=NOW_US + 60_000_000)["sum"]
    assert (latency.p50_ms, latency.recent) == (3.0, LEAST)


def test_a_vertex_that_no_marker_has_reached_has_none() -> None:
    assert list(frames(task("sum", []), task("sink", [1_500]))) == ["sink"]


@pytest.mark.slow
def test_three_seconds_after_a_change_of_the_buffer_timeout_markers_say_what_records_wait() -> None:
    """Live, with event time: within a tenth of how long the records themselves took since they were due (their numbers
    tell when that was: the source keeps to a rate, and reads none before it is due)."""
    rate = 300
    arrived: list[tuple[int, int, int]] = []

    def stamp(record: dict[str, Any]) -> dict[str, Any]:
        return {"n": record["n"], "at": time.time_ns() // 1_000}

    def keep(batch: pa.Table) -> None:
        now_us = time.time_ns() // 1_000
        columns = (batch.column(name).to_pylist() for name in ("n", "at"))
        arrived.extend((number, read_us, now_us) for number, read_us in zip(*columns, strict=True))

    numbers = pa.array(range(30_000), pa.int64())
    table = pa.table({"t": pa.array(np.arange(30_000) * 3_333), "n": numbers})
    stream = wb.Stream.from_table(table, event_time="t", rate=rate)
    stamped = stream.map(stamp, {"n": pa.int64(), "at": pa.int64()}).rebalance().sink_to(wb.CallbackSink(keep))
    job = stamped.run("latency-truth", parallelism=1, checkpoint_interval="disabled")
    try:
        for timeout_ms in (1_000, 100, 400):
            job.tune(buffer_timeout=f"{timeout_ms}ms")
            tuned_us = time.time_ns() // 1_000
            time.sleep(3)
            frame = job.recorder.frames()[-1]
            [latency] = frame.latency
            recent_us = frame.time_us - RECENT_US
            later = np.array(
                [one for one in list(arrived) if one[1] >= tuned_us and recent_us < one[2] <= frame.time_us]
            )
            assert len(later) > 200
            schedule_us = later[:, 0] * (1_000_000 / rate)
            due_us = schedule_us + np.min(later[:, 1] - schedule_us)
            exact_ms = float(np.median(later[:, 2] - due_us)) / 1_000
            assert exact_ms == pytest.approx(timeout_ms / 2, abs=0.1 * timeout_ms + 5)
            status, change = job.status(), frame.changes[-1]
            for told_ms in (latency.p50_ms, status["latency_p50_ms"], change.after.p50_ms):
                assert told_ms == pytest.approx(exact_ms, rel=0.1, abs=5)
            assert job.metrics()[-1]["latency_p99_ms"] >= status["latency_p50_ms"]
            assert change.state == "holds"
            assert status["last_change"] == change.sentence
    finally:
        job.cancel()


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_percentiles_are_interpolated_as_numpy_does(count: int) -> None:
    travelled_us = np.random.default_rng(count).integers(0, 10**8, count).tolist()
    latency = frames(task("sum", travelled_us))["sum"]
    measured = (latency.p50_ms, latency.p90_ms, latency.p95_ms, latency.p99_ms)
    stands_for = np.repeat(travelled_us, 8)  # 20 ms of the source, a travel time for each 2.5 ms
    assert measured == pytest.approx(tuple(np.percentile(stands_for, (50, 90, 95, 99)) / 1_000), rel=1e-12)
