"""Backpressure in words: the culprit is the first task that is busy but not back-pressured after those that are."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.telemetry.frames import EdgeFrame, VertexFrame

NONE = "No backpressure."
HIGH = 0.5
LOW = 0.1
BUSY = 0.5
"""A task that is busy for less of its time than this keeps no other one waiting for long."""
NAMED = 3
"""So many vertices that wait are named, where there are several more; the graph shows all."""


def level(back_pressured_ms_per_second: float) -> str:
    """Flink's levels: OK up to 10 % of the time, LOW up to 50 %, HIGH above."""
    share = back_pressured_ms_per_second / 1_000
    return "OK" if share <= LOW else "LOW" if share <= HIGH else "HIGH"


def explain(vertices: Sequence[VertexFrame], edges: Sequence[EdgeFrame]) -> str:
    """One sentence for each cause of backpressure and the tasks that wait for it, or a sentence that there is none.

    Args:
        vertices: in topological order.
        edges: between them.
    """
    pressed = {v.id for v in vertices if level(_share(v, "backPressuredTimeMsPerSecond")) != "OK"}
    if not pressed:
        return NONE
    causes: dict[str, set[str]] = {}
    for vertex in reversed(vertices):
        if vertex.id in pressed:
            followers = [v for v in vertices if any(e.source == vertex.id and e.target == v.id for e in edges)]
            held = [causes[v.id] for v in followers if v.id in pressed]
            busiest = max(followers, key=_busiest, default=vertex)
            causes[vertex.id] = set().union(*held) if held else {busiest.id}
    named = set().union(*causes.values())
    return " ".join(
        _sentence(cause, [v.name for v in vertices if cause.id in causes.get(v.id, ())], cause.id in pressed)
        for cause in vertices
        if cause.id in named
    )


def _sentence(cause: VertexFrame, waiting: Sequence[str], pressed: bool) -> str:
    names = list(waiting) if len(waiting) <= NAMED + 1 else [*waiting[:NAMED], f"{len(waiting) - NAMED} others"]
    told = f"{', '.join(names)} {'is' if len(waiting) == 1 else 'are'} back-pressured"
    if pressed:
        return f"{told}."
    if _busiest(cause) < 1_000 * BUSY:
        return f"{told}; {cause.name}, which receives it, is only {_busiest(cause) / 10:.0f} % busy."
    return f"{cause.name} is the cause ({_busiest(cause) / 10:.0f} % busy): {told}, waiting for it."


def _busiest(vertex: VertexFrame) -> float:
    """Milliseconds per second of its busiest subtask: it keeps senders waiting though others idle."""
    return max(_share(vertex, "maxBusyTimeMsPerSecond"), _share(vertex, "busyTimeMsPerSecond"))


def _share(vertex: VertexFrame, name: str) -> float:
    value = vertex.metrics.get(name)
    return float(value) if value is not None else 0.0
