"""Backpressure in words: the culprit is the first task that is busy but not back-pressured after those that are."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.telemetry.frames import EdgeFrame, VertexFrame

HIGH = 0.5
LOW = 0.1


def level(back_pressured_ms_per_second: float) -> str:
    """Flink's levels: OK up to 10 % of the time, LOW up to 50 %, HIGH above."""
    share = back_pressured_ms_per_second / 1_000
    return "OK" if share <= LOW else "LOW" if share <= HIGH else "HIGH"


def explain(vertices: Sequence[VertexFrame], edges: Sequence[EdgeFrame]) -> str:
    """One sentence that names the cause of backpressure, or says that there is none.

    Args:
        vertices: in topological order.
        edges: between them.
    """
    pressed = {v.id: v for v in vertices if level(_share(v, "backPressuredTimeMsPerSecond")) != "OK"}
    if not pressed:
        return "No backpressure."
    last = [v for v in vertices if v.id in pressed][-1]
    followers = [v for v in vertices if any(e.source == last.id and e.target == v.id for e in edges)]
    if not followers:
        return f"{last.name} is back-pressured."
    culprit = max(followers, key=lambda v: _share(v, "busyTimeMsPerSecond"))
    busy = _share(culprit, "busyTimeMsPerSecond") / 10
    names = ", ".join(v.name for v in pressed.values())
    verb = "is" if len(pressed) == 1 else "are"
    return f"{culprit.name} is the cause ({busy:.0f} % busy): {names} {verb} back-pressured, waiting for it."


def _share(vertex: VertexFrame, name: str) -> float:
    value = vertex.metrics.get(name)
    return float(value) if value is not None else 0.0
