"""Percentiles of the latency markers' travel times, over the last seconds and since the last tuning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.elements import Int64s
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.kept_markers import EACH_US, spread
from workbench.runtime.tasks.task import Task
from workbench.telemetry.frames import LatencyFrame

RECENT_US = 2_500_000
"""The age up to which markers count: a tuning shows within seconds, and 50 markers a second make a percentile."""
LEAST = 8
"""The minimum number of markers that count, whatever their age."""
MARKER_US = 20_000
"""The time of a source that counts as one marker: the interval at which an active source sends markers."""
_SHARES = (0.5, 0.9, 0.95, 0.99)


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
        travelled = _recent(task, now_us, since_us)
        if len(travelled):
            samples.setdefault(task.vertex, []).append(travelled)
            counts[task.vertex] = counts.get(task.vertex, 0) + task.markers.count
    frames = []
    for vertex, parts in samples.items():
        together = np.concatenate(parts)
        p50, p90, p95, p99 = (us / 1_000 for us in _percentiles(together))
        recent = len(together) * EACH_US // MARKER_US
        frames.append(LatencyFrame(vertex, counts[vertex], p50, p90, p95, p99, recent=recent))
    return tuple(frames)


def _recent(task: Task, now_us: int, since_us: int) -> Int64s:
    """The travel times that count, shape (n,), microseconds."""
    newest = task.markers.newest()
    arrived, travelled, _, _ = newest
    counts = (arrived - travelled >= since_us) | task.finished  # a task that has ended receives no more
    fresh = int(np.count_nonzero(arrived[counts] > now_us - RECENT_US))
    some = np.flatnonzero(counts)[-max(fresh, LEAST) :]
    arrived, travelled = spread(*(each[some] for each in newest))
    if not task.finished:
        travelled = travelled[arrived - travelled >= since_us]
    return travelled


def _percentiles(times: Int64s) -> Iterator[float]:
    """Percentiles, interpolated like numpy's default, which takes twenty times as long for so few numbers."""
    ordered = np.sort(times)
    last = len(ordered) - 1
    for share in _SHARES:
        place = share * last
        below = int(place)
        low, high = int(ordered[below]), int(ordered[min(below + 1, last)])
        yield low + (high - low) * (place - below)
