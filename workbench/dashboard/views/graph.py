"""Where everything of the dataflow graph stands: a box per vertex, a curve per edge, their texts, bars and gauges."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.sources import by_column, number_of, whole_of
from workbench.telemetry.frames import EdgeFrame, Frame, VertexFrame

BOX_HEIGHT = 104
ROW_HEIGHT = 118
LOWEST = 126
COLUMN_WIDTH = 175
WIDTHS = (470, 470, 640, 760)
"""Pixels that a graph of one, two, three or four columns is laid out for; beyond these each has a column's width.
Heights are exact, widths scale."""
LONGEST = 480
"""Pixels of the longest text of a box."""
NARROWEST = (300, 300, 430, 600)
"""Pixels of the narrowest place that such a graph is drawn in: the page shortens its texts."""
CROWDED = 16
"""With more edges than that between two columns nobody could read what is written on them: the hover tells it."""
COMPACT = (44, 54)
MANY_ROWS = 4
"""With more boxes than that in a column all are as high as `COMPACT` says, with their place: they show less text."""
LABELS = ((66, 25, 46), (50, 2, 25))
"""Width of what is written on an edge, and how far it reaches above and below its place on the curve, in pixels: all of
it, or the rate alone where there is no room for more."""
LETTER = 5.3
"""Pixels of a letter of it."""
LETTERS = 40
"""Pixels of its letters, of which no other curve comes in the way."""
STEPS = 24
"""Points of a curve that are looked at."""
STEEP = 0.6
"""Share of the way between two boxes at different heights that is free beside the curve."""
ALONG = (0.5, 0.36, 0.64, 0.24, 0.76)
"""Where on a curve it may stand, in order of preference."""

SHARES = (
    ("idle", "idleTimeMsPerSecond"),
    ("busy", "busyTimeMsPerSecond"),
    ("pressed", "backPressuredTimeMsPerSecond"),
)

_DETAILS = (
    "numRecordsIn", "numRecordsOut", "numRecordsInPerSecond", "numRecordsOutPerSecond",
    "numBytesIn", "numBytesOut", "numBytesInPerSecond", "numBytesOutPerSecond",
    "numBuffersIn", "numBuffersOut",
    "busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond", "isBackPressured", "inPoolUsage",
    "outPoolUsage", "inputQueueLength", "outputQueueLength", "numLateRecordsDropped", "numFiredTimers",
    "pendingRecords", "sourceIdleTime",
)  # fmt: skip

_WORST = (
    ("Backpressured (max)", "maxBackPressuredTimeMsPerSecond", 1000),
    ("Busy (max)", "maxBusyTimeMsPerSecond", 1000),
    ("Data Skew", "dataSkew", 100),
)
"""What Flink writes into a box: of the subtask that is worst off, and how unevenly records are spread over them."""

_MARKS = (("Low Watermark", "currentInputWatermark"), ("currentOutputWatermark", "currentOutputWatermark"))
_INPUT = re.compile(r"currentInput\d+Watermark")
"""Event time of one of several inputs."""

Columns = dict[str, list[Any]]


def rows(frame: Frame) -> int:
    """How many boxes the fullest column has, at least one."""
    return max(Counter(round(vertex.x, 3) for vertex in frame.vertices).values(), default=1)


def box_heights(frame: Frame) -> tuple[int, int]:
    """Pixels of a box, and of a box with its place."""
    return COMPACT if rows(frame) > MANY_ROWS else (BOX_HEIGHT, ROW_HEIGHT)


def height(frame: Frame) -> int:
    """Pixels that the graph needs: as many rows as the fullest column has boxes."""
    return max(LOWEST, rows(frame) * box_heights(frame)[1])


def columns(frame: Frame) -> int:
    """How many columns of boxes there are, at least one."""
    return max(1, len({round(vertex.x, 3) for vertex in frame.vertices}))


def width(frame: Frame) -> int:
    """Pixels that the graph is laid out for."""
    count = columns(frame)
    return WIDTHS[count - 1] if count <= len(WIDTHS) else count * COLUMN_WIDTH


def least_width(frame: Frame) -> int:
    """Pixels of the narrowest place that the graph fits into; in a narrower one it scrolls."""
    count = columns(frame)
    return NARROWEST[count - 1] if count <= len(NARROWEST) else width(frame)


def half_width(frame: Frame) -> float:
    """Half the width of a box, as a share of the drawing's width."""
    count = columns(frame)
    return min(0.38, {3: 0.8}.get(count, 0.7 if count > 3 else 0.78) / count) / 2


def places(frame: Frame) -> dict[str, tuple[float, float]]:
    """The centre of every vertex's box: x as a share of the width, y in pixels from the bottom.

    Boxes stand where the layout says, except that those of one column are pushed apart until none overlaps.
    """
    pad, pixels = half_width(frame) + 0.008, height(frame)
    place = box_heights(frame)[1]
    margin = place / 2
    found: dict[str, tuple[float, float]] = {}
    stacks: dict[float, list[VertexFrame]] = {}
    for vertex in frame.vertices:
        stacks.setdefault(round(vertex.x, 3), []).append(vertex)
    for x, members in stacks.items():
        members.sort(key=lambda vertex: vertex.y)
        wanted = [margin + vertex.y * (pixels - 2 * margin) for vertex in members]
        for vertex, down in zip(members, apart(wanted, place, pixels - margin), strict=True):
            found[vertex.id] = (pad + x * (1 - 2 * pad), pixels - down)
    return found


def apart(wanted: Sequence[float], gap: float, limit: float) -> list[float]:
    """Ascending places, swept apart so that neighbours are at least `gap` from each other and none is past `limit`."""
    moved: list[float] = []
    for place in wanted:
        moved.append(place if not moved else max(place, moved[-1] + gap))
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - gap
    return moved


def shares(vertex: VertexFrame) -> tuple[float, float, float]:
    """Idle, busy and back-pressured time as fractions of one."""
    idle, busy, pressed = (float(vertex.metrics.get(metric) or 0) / 1000 for _, metric in SHARES)
    return idle, busy, pressed


def told_shares(idle: float, busy: float, pressed: float) -> str:
    """The three shares in words."""
    told = (f"{name} {share * 100:.0f}" for name, share in (("idle", idle), ("busy", busy), ("back-pr.", pressed)))
    return f"{', '.join(told)} %"


def interrupted(frame: Frame) -> dict[str, tuple[str, str]]:
    """What the interruption that lasts does to boxes: ``down`` while the tasks do not run, or ``again`` while a source
    reads again, and this in words. Empty where none lasts.

    Args:
        frame: the job, in any look at its graph.
    """
    last = frame.interruptions[-1] if frame.interruptions else None
    if last is None or last.state != "lasts":
        return {}
    if last.phases[-1].name == "catching up":
        targets = {edge.target for edge in frame.edges}
        left = f"{wording.count(last.records_left)} to read again"
        return {vertex.id: ("again", left) for vertex in frame.vertices if vertex.id not in targets}
    wait_us = max(0, (last.due_us or 0) - frame.time_us)
    due = f"restarts in {wording.milliseconds(wait_us / 1000)}" if wait_us else "restarts"
    then = {"waiting": due, "restoring": "restoring"}.get(last.phases[-1].name, "")
    homes = {operator.uid: operator.vertex for operator in frame.operators}
    found = {}
    for vertex in frame.vertices:
        names = {vertex.id, homes.get(vertex.id, vertex.id)}
        states = {task.state for task in frame.tasks if task.name in names or task.vertex in names}
        if not states or states & {"FAILED", "CANCELED"}:
            ended = "failed" if "FAILED" in states else "canceled" if states else ""
            found[vertex.id] = "down", "; ".join(filter(None, (ended, then)))
    return found


def details(vertex: VertexFrame) -> str:
    """Every metric of a vertex, a line each, for the hover."""
    lines = [f"{uid} ({kind}) {description}".rstrip() for uid, kind, description in vertex.operators]
    for title, name, unit in _WORST:
        if (value := number_of(vertex.metrics, name)) is not None:
            lines.append(f"{title}: {wording.percent(value / unit)}")
    for title, name in (*_MARKS, *((name, name) for name in vertex.metrics if _INPUT.fullmatch(name))):
        if name in vertex.metrics:
            lines.append(f"{title}: {wording.instant(whole_of(vertex.metrics, name))}")
    for name in _DETAILS:
        value = vertex.metrics.get(name)
        if value is not None:
            shown = value if isinstance(value, bool) else f"{value:,.2f}".removesuffix(".00")
            lines.append(f"{name}: {shown}")
    return "\n".join(lines)


def rates(vertex: VertexFrame) -> str:
    """Records in and out per second, with the side that a source or sink does not have left out."""
    into, out = (vertex.metrics.get(f"numRecords{way}PerSecond") for way in ("In", "Out"))
    return f"{wording.short(into)} → {wording.short(out)} rec/s"


def operator_lines(vertex: VertexFrame, pixels: float) -> tuple[str, str]:
    """Two lines that say what runs in a vertex: the chain's names, the first of them in so many pixels, or the one
    operator's kind and description.
    """
    chain = vertex.chain or tuple(uid for uid, _, _ in vertex.operators)
    if len(chain) == 1:
        _, kind, description = vertex.operators[0]
        return wording.fit(kind, LONGEST, 11), wording.fit(description, LONGEST, 11)
    lines = [""]
    for position, uid in enumerate(chain):
        piece = uid if position == 0 else f"→ {uid}"
        if lines[-1] and len(f"{lines[-1]} {piece}") * 11 * 0.55 > pixels:
            lines.append(piece)
        else:
            lines[-1] = f"{lines[-1]} {piece}".strip()
    second = " ".join(lines[1:])
    return wording.fit(lines[0], LONGEST, 11), wording.fit(second, LONGEST, 11)


def box_columns(frame: Frame) -> Columns:
    """One row per vertex: its box, its texts, and where the three parts of its load bar begin and end."""
    half, centres = half_width(frame), places(frame)
    room = 2 * half * width(frame) - 20
    tall, is_compact = box_heights(frame)[0], rows(frame) > MANY_ROWS
    bar_y, title_y, shares_y = (20, 11, 37) if is_compact else (71, 15, 93)
    boxes, struck = [], interrupted(frame)
    for vertex in frame.vertices:
        x, y = centres[vertex.id]
        left, top = x - half, y + tall / 2
        kind, told = struck.get(vertex.id, ("", ""))
        idle, busy, pressed = shares(vertex)
        bar_left, bar = left + 10 / width(frame), 2 * half - 20 / width(frame)
        first, second = ("", "") if is_compact else operator_lines(vertex, room)
        title = wording.fit(vertex.name, LONGEST, 13)
        parallelism = f"{wording.short(_received(vertex))}/s" if is_compact else f"×{vertex.parallelism}"
        boxes.append({
            "x": x, "text_x": bar_left, "left": left, "right": x + half, "top": top, "bottom": top - tall,
            "id": vertex.id, "name": vertex.name, "title": title, "parallelism": parallelism,
            "right_x": bar_left + bar, "first": first, "second": second, "rates": "" if is_compact else rates(vertex),
            "title_y": top - title_y, "first_y": top - 31, "second_y": top - 44, "rates_y": top - 61,
            "bar_top": top - bar_y, "bar_bottom": top - bar_y - 11, "shares_y": top - shares_y,
            "idle_0": bar_left, "idle_1": bar_left + bar * idle, "busy_1": bar_left + bar * (idle + busy),
            "pressed_1": bar_left + bar * (idle + busy + pressed),
            "shares": told or told_shares(idle, busy, pressed),
            "down_right": x + half if kind == "down" else left, "again_right": x + half if kind == "again" else left,
        })  # fmt: skip
    return by_column(boxes, BOX_NAMES)


BOX_NAMES = (
    "x", "text_x", "left", "right", "top", "bottom", "id", "name", "title", "parallelism", "right_x", "first",
    "second", "rates", "title_y", "first_y", "second_y", "rates_y", "bar_top", "bar_bottom", "shares_y", "idle_0",
    "idle_1", "busy_1", "pressed_1", "shares", "down_right", "again_right",
)  # fmt: skip


def edge_columns(frame: Frame) -> Columns:
    """One row per edge: its curve, its texts, and its buffer gauge (outline and fill)."""
    half, centres = half_width(frame), places(frame)
    names = {vertex.id: vertex.name for vertex in frame.vertices}
    fastest = max((edge.records_per_second for edge in frame.edges), default=0.0)
    drawn = [edge for edge in frame.edges if edge.source in centres and edge.target in centres]
    shown = dict(zip((edge.id for edge in drawn), labels(frame, drawn, centres), strict=True))
    curves = []
    for edge in drawn:
        (x0, y0), (x1, y1) = centres[edge.source], centres[edge.target]
        x0, x1 = x0 + half, x1 - half
        bend = (x0 + x1) / 2
        middle, level, amount = shown[edge.id]
        room = (x1 - x0) * width(frame) * (1 if y0 == y1 else STEEP)
        has_room = amount == 2 and len(edge.exchange) * LETTER <= room
        exchange = edge.exchange if has_room else ""
        gauge = min(0.052, (x1 - x0) * 0.7) if amount == 2 else math.nan
        curves.append({
            "id": edge.id,
            "x0": x0, "y0": y0, "x1": x1 - 0.006, "y1": y1, "cx0": bend, "cy0": y0, "cx1": bend, "cy1": y1,
            "head_x": x1 - 0.005, "head_y": y1, "width": thickness(edge, fastest),
            "name": f"{names[edge.source]} → {names[edge.target]}", "exchange": exchange,
            "middle": middle, "exchange_y": level + 18, "rate_y": level - 18,
            "rate": f"{wording.short(edge.records_per_second)}/s" if amount else "",
            "tip": f"{edge.exchange}, {wording.short(edge.records_per_second)} rec/s",
            "gauge_left": middle - gauge / 2, "gauge_right": middle + gauge / 2,
            "gauge_fill": middle - gauge / 2 + gauge * min(1.0, max(0.0, edge.usage)),
            "gauge_top": level - 27, "gauge_bottom": level - 33,
            "buffers": _buffers(edge) if amount == 2 and edge.capacity_buffers else "", "buffers_y": level - 41,
            "usage": f"{_buffers(edge)} ({wording.percent(edge.usage)})" if edge.capacity_buffers else "chained: none",
        })  # fmt: skip
    return by_column(curves, EDGE_NAMES)


EDGE_NAMES = (
    "id", "x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1", "head_x", "head_y", "width", "name", "exchange", "middle",
    "exchange_y", "rate", "rate_y", "gauge_left", "gauge_right", "gauge_fill", "gauge_top", "gauge_bottom", "buffers",
    "buffers_y", "usage", "tip",
)  # fmt: skip


def labels(
    frame: Frame, edges: Sequence[EdgeFrame], centres: dict[str, tuple[float, float]]
) -> list[tuple[float, float, int]]:
    """Where each edge is written on, and how much of it: 2 is everything, 1 the rate, 0 nothing.

    What is written is on its own curve, over no box, over no other curve between the same columns and over nothing else
    that is written; all edges between two columns tell as much, so that they compare. The hover tells the rest.
    """
    ends = tuple((*centres[edge.source], *centres[edge.target]) for edge in edges)
    tall = box_heights(frame)[0] / 2
    return list(_labels(ends, tuple(centres.values()), half_width(frame), width(frame), tall))


Ends = tuple[float, float, float, float]
"""Where an edge begins and ends: the centres of two boxes."""


@lru_cache(maxsize=64)
def _labels(
    edges: tuple[Ends, ...], boxes: tuple[tuple[float, float], ...], half: float, pixels: int, tall: float
) -> tuple[tuple[float, float, int], ...]:
    """Where the edges are written on: they stay where they are, and are asked for with every frame."""
    pairs = [(x0, x1) for x0, _, x1, _ in edges]
    between = Counter(pairs)
    ways = [(x0 + half, y0, x1 - half, y1) for x0, y0, x1, y1 in edges]
    curves = [[_on_curve(step / STEPS, *way) for step in range(STEPS + 1)] for way in ways]
    taken: list[tuple[float, float, float, float]] = []
    found = []
    for edge, way in enumerate(ways):
        place = (*_on_curve(0.5, *way), 0)
        beside = (curve for other, curve in enumerate(curves) if other != edge and pairs[other] == pairs[edge])
        others = [point for curve in beside for point in curve]
        if between[pairs[edge]] <= CROWDED:
            for amount, (wide, above, below) in zip((2, 1), LABELS, strict=True):
                free = (
                    (x, y)
                    for x, y in (_on_curve(along, *way) for along in ALONG)
                    if not _is_over_box(x, y + above, y - below, boxes, half, tall)
                    and not any(
                        abs(x - there) * pixels < LETTERS / 2 and y - below < level < y + above
                        for there, level in others
                    )
                    and all(
                        abs(x - other) * pixels >= (wide + width_) / 2 or y + above <= bottom or y - below >= top
                        for other, width_, top, bottom in taken
                    )
                )
                if (spot := next(free, None)) is not None:
                    place = (*spot, amount)
                    taken.append((spot[0], wide, spot[1] + above, spot[1] - below))
                    break
        found.append(place)
    least = dict.fromkeys(pairs, len(LABELS))
    for (_, _, amount), pair in zip(found, pairs, strict=True):
        least[pair] = min(least[pair], amount)
    return tuple((x, y, least[pair]) for (x, y, _), pair in zip(found, pairs, strict=True))


def _on_curve(along: float, x0: float, y0: float, x1: float, y1: float) -> tuple[float, float]:
    """A point of the curve of an edge, whose control points have the x of its middle."""
    before, bend = 1 - along, (x0 + x1) / 2
    inner = 3 * before * before * along, 3 * before * along * along
    x = before**3 * x0 + (inner[0] + inner[1]) * bend + along**3 * x1
    y = (before**3 + inner[0]) * y0 + (inner[1] + along**3) * y1
    return x, y


def _is_over_box(
    x: float, top: float, bottom: float, centres: Iterable[tuple[float, float]], half: float, tall: float
) -> bool:
    return any(abs(x - x0) < half and bottom < y0 + tall and top > y0 - tall for x0, y0 in centres)


def _received(vertex: VertexFrame) -> float | None:
    """Records per second that a box receives, or that a source reads."""
    into = number_of(vertex.metrics, "numRecordsInPerSecond")
    return into or number_of(vertex.metrics, "numRecordsOutPerSecond")


def _buffers(edge: EdgeFrame) -> str:
    return f"{edge.queued_buffers}/{edge.capacity_buffers}"


def thickness(edge: EdgeFrame, fastest: float) -> float:
    """Line width in pixels, 1.5 to 6 in half pixels, in proportion to the fastest edge."""
    share = edge.records_per_second / fastest if fastest > 0 else 0.0
    return round((1.5 + 4.5 * min(1.0, share)) * 2) / 2
