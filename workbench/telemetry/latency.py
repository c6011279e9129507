"""Percentiles of the latency markers' travel times, over the last seconds and since the last tuning."""

from __future__ import annotations

import numpy as np

from workbench.elements import Int64s
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import LATENCY_SAMPLES, Task
from workbench.telemetry.frames import LatencyFrame

RECENT_US = 2_500_000
"""Markers that arrived so long ago at most count: a tuning shows within seconds, and 50 a second make a percentile."""
LEAST = 8
"""Where fewer came in that time, so many of the newest count."""


def latency_frames(execution: Execution, now_us: int, since_us: int = 0) -> tuple[LatencyFrame, ...]:
    """Percentiles over the recent markers of each vertex; vertices that no such marker has reached are left out.

    Args:
        execution: its tasks keep the markers.
        now_us: processing time.
        since_us: only markers that were sent from then on count: when the last setting was changed.
    """
    samples: dict[str, list[Int64s]] = {}
    counts: dict[str, int] = {}
    for task in execution.tasks:
        recent = _recent(task, now_us, since_us)
        if len(recent):
            samples.setdefault(task.vertex, []).append(recent)
            counts[task.vertex] = counts.get(task.vertex, 0) + task.latency_count
    frames = []
    for vertex, parts in samples.items():
        together = np.concatenate(parts)
        p50, p90, p95, p99 = np.percentile(together, (50, 90, 95, 99)) / 1_000
        frames.append(
            LatencyFrame(vertex, counts[vertex], float(p50), float(p90), float(p95), float(p99), recent=len(together))
        )
    return tuple(frames)


def _recent(task: Task, now_us: int, since_us: int) -> Int64s:
    """The travel times that count, shape (n,), microseconds."""
    count = task.latency_count
    newest = np.arange(max(0, count - LATENCY_SAMPLES), count) % LATENCY_SAMPLES
    travelled, arrived = task.latency_us[newest], task.latency_at_us[newest]
    after = (arrived - travelled >= since_us) | task.finished  # of what has ended, no more come
    travelled, arrived = travelled[after], arrived[after]
    fresh = int(np.count_nonzero(arrived > now_us - RECENT_US))
    return travelled[max(0, len(travelled) - max(fresh, LEAST)) :]
