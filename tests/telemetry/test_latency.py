"""Percentiles of latency, against the same thing said plainly: by rank over a known number of markers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from workbench.runtime.tasks.task import LATENCY_SAMPLES
from workbench.telemetry.latency import RECENT, latency_frames


def task(vertex: str, travelled_us: list[int]) -> SimpleNamespace:
    """A task that markers have reached, one after the other, after so long each."""
    kept = np.zeros(LATENCY_SAMPLES, np.int64)
    for number, each in enumerate(travelled_us):
        kept[number % LATENCY_SAMPLES] = each
    return SimpleNamespace(vertex=vertex, latency_count=len(travelled_us), latency_us=kept)


def frames(*tasks: SimpleNamespace) -> dict[str, Any]:
    return {frame.vertex: frame for frame in latency_frames(cast("Any", SimpleNamespace(tasks=tasks)))}


def test_percentiles_are_those_of_all_markers_of_a_vertex() -> None:
    found = frames(task("sum", [n * 1_000 for n in range(51)]), task("sum", [n * 1_000 for n in range(51, 101)]))
    assert list(found) == ["sum"]
    latency = found["sum"]
    assert latency.count == 101
    measured = (latency.p50_ms, latency.p90_ms, latency.p95_ms, latency.p99_ms)
    assert measured == pytest.approx((50.0, 90.0, 95.0, 99.0))  # of 0 to 100 ms, one marker each


def test_only_recent_markers_count_also_when_older_ones_were_overwritten() -> None:
    old = [7_000_000] * (LATENCY_SAMPLES + 5)
    latency = frames(task("sum", old + [2_000] * RECENT))["sum"]
    assert (latency.p50_ms, latency.p99_ms) == (2.0, 2.0)
    assert frames(task("sum", [*old, *[2_000] * (RECENT - 4)]))["sum"].p99_ms > 2.0


def test_a_vertex_that_no_marker_has_reached_has_none() -> None:
    assert list(frames(task("sum", []), task("sink", [1_500]))) == ["sink"]
