"""Percentiles of the latency markers' travel times."""

from __future__ import annotations

import numpy as np

from workbench.runtime.tasks.deployment import Execution
from workbench.runtime.tasks.task import LATENCY_SAMPLES
from workbench.telemetry.frames import LatencyFrame

RECENT = 128
"""Markers per task that count: enough for a percentile, recent enough that a tuning shows within seconds."""


def latency_frames(execution: Execution) -> tuple[LatencyFrame, ...]:
    """Percentiles over the recent markers of each vertex; vertices that no marker has reached are left out."""
    samples: dict[str, list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = {}
    counts: dict[str, int] = {}
    for task in execution.tasks:
        count = task.latency_count
        if not count:
            continue
        newest = np.arange(max(0, count - RECENT), count) % LATENCY_SAMPLES
        samples.setdefault(task.vertex, []).append(task.latency_us[newest])
        counts[task.vertex] = counts.get(task.vertex, 0) + count
    frames = []
    for vertex, parts in samples.items():
        p50, p90, p95, p99 = np.percentile(np.concatenate(parts), (50, 90, 95, 99)) / 1_000
        frames.append(LatencyFrame(vertex, counts[vertex], float(p50), float(p90), float(p95), float(p99)))
    return tuple(frames)
