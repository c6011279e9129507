"""Converts the desired slowdown of an operator to the time that it rests after each buffer."""

from __future__ import annotations

from workbench.durations import format_duration
from workbench.telemetry.frames import Frame, VertexFrame

SATURATES = "until it saturates"
TIMES = {"2 times slower": 2, "10 times slower": 10}
HOW = (SATURATES, *TIMES, "50ms per buffer", "full speed")
"""The choices, the one with the largest effect first."""
FALLBACK_US = 50_000
"""The rest before anything has been measured: with usual buffer timeouts, it takes most of a task's time."""
LONGEST_US = 5_000_000
MEASURED_US = 1_000_000


class Slowness:
    """Measures how many buffers per second each operator's subtasks receive, and how long one takes."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, float]] = {}
        self._found: dict[str, tuple[float, float]] = {}

    def update(self, frame: Frame) -> None:
        """Measure again, over at least a second; an operator that rests does not show its own speed."""
        slowed = str(frame.settings.get("slow_down") or "")
        for vertex in frame.vertices:
            buffers = float(vertex.metrics.get("numBuffersIn") or vertex.metrics.get("numBuffersOut") or 0)
            time_us, count = self._before.get(vertex.id, (0, 0.0))
            if not 0 <= frame.time_us - time_us < MEASURED_US:
                self._before[vertex.id] = frame.time_us, buffers
                if time_us and buffers > count and not any(f"{uid}:" in slowed for uid, _, _ in vertex.operators):
                    per_second = (buffers - count) / (frame.time_us - time_us) * 1e6 / max(1, vertex.parallelism)
                    self._remember(vertex, per_second)

    def rest(self, uid: str, how: str) -> str:
        """The rest after each buffer that makes an operator that much slower, as a duration; ``how``: one of `HOW`."""
        if how == HOW[-1]:
            return "0ms"
        if how not in (SATURATES, *TIMES):
            return how.partition(" ")[0]
        if uid not in self._found:
            return format_duration(FALLBACK_US)
        per_second, busy_us = self._found[uid]
        # A task is saturated if it can process only two thirds of what arrives.
        rest_us = 1.5e6 / per_second if how == SATURATES else (TIMES[how] - 1) * busy_us
        return format_duration(round(float(f"{max(1.0, min(LONGEST_US, rest_us)):.2g}")))  # 76ms, not 76444us

    def _remember(self, vertex: VertexFrame, per_second: float) -> None:
        busy_us = float(vertex.metrics.get("busyTimeMsPerSecond") or 0) * 1000 / per_second
        self._found.update({uid: (per_second, busy_us) for uid, _, _ in vertex.operators})
