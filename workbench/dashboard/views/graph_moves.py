"""What moves along the edges of the graph: which share of the records is drawn, how much slower, and what is too fast.

A record crosses an edge in milliseconds, and there may be a million of them per second. So the page draws one of many,
slowly enough for the eye, and the graph says so. Where one drawn record would stand for too many, nothing can be
followed any more, and the edge flows as a whole.
"""

from __future__ import annotations

import math

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.sources import by_column, number_of, whole_of
from workbench.durations import MAX_TIME, format_duration, parse_duration
from workbench.telemetry.frames import EdgeFrame, Frame

CROSSING_MS = 1_400
"""How long a drawn record takes along an edge: an eye can follow that."""
DRAWN_PER_SECOND = 4.0
"""So many are drawn on an edge at most: with more they would be a stripe."""
EACH_MOST = 1_000
"""A drawn record that stands for more records than this says nothing about a single one."""
BARRIER_US = 1_000_000
"""Checkpoints at shorter intervals than this would fill every edge with barriers."""

MOVES_NAMES = ("id", "each", "rate", "barrier", "watermark", "flows", "frame")


def share(records_per_second: float) -> int:
    """How many records one that is drawn stands for: 1, 2, 5, 10, 20 and so on.

    Example:
        >>> share(3.0), share(30.0), share(390.0)
        (1, 10, 100)
    """
    each = 1
    while records_per_second / each > DRAWN_PER_SECOND:
        each = each * 5 // 2 if str(each).startswith("2") else each * 2
    return each


def shown_share(frame: Frame) -> int:
    """What one drawn record stands for on every edge: that of the fastest, so that all edges compare."""
    return share(max((edge.records_per_second for edge in frame.edges), default=0.0))


def crossing_ms(frame: Frame) -> float | None:
    """How long a record takes along an edge, in the mean over the edges between tasks that latency was measured at;
    None before that."""
    median = {latency.vertex: latency.p50_ms for latency in frame.latency if latency.count}
    ways = [median[edge.target] - median.get(edge.source, 0.0) for edge in frame.edges if edge.target in median]
    return max(0.05, sum(ways) / len(ways)) if ways else None


def barrier_of(frame: Frame) -> int:
    """The newest checkpoint whose barriers are drawn; 0 for none."""
    interval = frame.settings.get("checkpoint_interval")
    if interval not in (None, "disabled") and parse_duration(str(interval), "checkpoint_interval") < BARRIER_US:
        return 0
    return frame.checkpoints[-1].id if frame.checkpoints else 0


def moves_columns(frame: Frame, shown: Frame) -> dict[str, list[object]]:
    """One row per edge that is drawn: what the page lets move along it.

    Args:
        frame: the job.
        shown: the same as it is drawn, with other boxes perhaps.
    """
    each, barrier = shown_share(frame), barrier_of(frame)
    reached = {vertex.id: whole_of(vertex.metrics, "currentOutputWatermark") for vertex in frame.vertices}
    moving = frame.state == "RUNNING"
    return by_column(
        [
            {
                "id": edge.id, "each": each, "rate": edge.records_per_second if moving else 0.0, "barrier": barrier,
                "watermark": _told(edge, reached), "flows": each > EACH_MOST,
                "frame": 0 if place else frame.sequence,  # so that every frame is a change, at the cost of one cell
            }
            for place, edge in enumerate(shown.edges)
        ],
        MOVES_NAMES,
    )  # fmt: skip


def _told(edge: EdgeFrame, reached: dict[str, int | None]) -> str:
    """The watermark that the sender has reached, to the second."""
    us = reached.get(edge.source)
    return "" if us is None else "end" if us == MAX_TIME else wording.clock(us)


def _slower(times: float) -> str:
    """How much slower than it moves a record is drawn.

    Example:
        >>> _slower(0.4), _slower(2.87), _slower(728.0)
        ('about as fast as it moves', 'about 3 times slower than it moves', 'about 730 times slower than it moves')
    """
    if times < 1.5:
        return "about as fast as it moves"
    digits = 10 ** max(0, math.floor(math.log10(times)) - 1)
    return f"about {wording.short(round(times / digits) * digits)} times slower than it moves"


def moves_html(frame: Frame) -> str:
    """What moves, in one sentence: the share that is drawn, and the slowdown."""
    fastest = max((edge.records_per_second for edge in frame.edges), default=0.0)
    if not frame.edges or frame.state != "RUNNING":
        return ""
    each, took = shown_share(frame), crossing_ms(frame)
    drawn = "Every record is drawn" if each == 1 else f"One of {each:,} records is drawn"
    drawn += "" if took is None else f", {_slower(CROSSING_MS / took)}"
    if each > EACH_MOST:
        drawn = (
            f"Lines flow: of {wording.short(fastest)} records per second the eye could follow one of "
            f"{wording.count(each)}. A lower rate shows single records"
        )
    barrier, watermark = "<b class='bad'>▎</b>▲&nbsp;barrier", "<b class='good'>▎</b>W&nbsp;watermark"
    marks = f"{barrier}, {watermark}"
    if barrier_of(frame) == 0 and number_of(frame.metrics, "numberOfCompletedCheckpoints"):
        told = format_duration(BARRIER_US)
        marks = f"{watermark}; barriers are not drawn at a checkpoint interval below {told}"
    return f"<p>{drawn} · {marks}</p>"
