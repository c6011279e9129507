"""Acknowledgements in the dataflow graph: a dashed curve from every vertex to the ackers, and back to the sources."""

from __future__ import annotations

from typing import Any

from workbench.dashboard.charts.sources import by_column
from workbench.dashboard.views.graph import half_width, height, places
from workbench.telemetry.frames import Frame

ACK_NAMES = ("name", "x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1")


def ack_columns(frame: Frame) -> dict[str, list[Any]]:
    """One row per curve; none where records are not acknowledged, or where the ackers have no box.

    Messages to the ackers run along the top of the drawing, what the ackers tell the sources along its bottom.
    """
    centres = places(frame)
    acker = None if frame.acks is None else frame.acks.vertex
    if acker not in centres:
        return by_column([], ACK_NAMES)
    named = {vertex.id: vertex.name for vertex in frame.vertices}
    receivers = {edge.target for edge in frame.edges}
    half, pixels = half_width(frame), height(frame)
    (to_x, to_y), curves = centres[acker], []
    for vertex, (x, y) in centres.items():
        if vertex == acker:
            continue
        ways = [("acks", x + half, y, to_x - half, to_y, pixels)]
        if vertex not in receivers:
            ways.append(("complete roots", to_x - half, to_y, x + half, y, 0))
        for what, x0, y0, x1, y1, level in ways:
            ends = (vertex, acker) if what == "acks" else (acker, vertex)
            curves.append({
                "name": f"{named[ends[0]]} → {named[ends[1]]}: {what}",
                "x0": x0, "y0": y0, "x1": x1, "y1": y1, "cx0": x0 + (x1 - x0) / 4, "cy0": level,
                "cx1": x1 - (x1 - x0) / 4, "cy1": level,
            })  # fmt: skip
    return by_column(curves, ACK_NAMES)
