"""Curves over named points: values that change with a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from workbench.lessons.pictures.frame import DASHES, SERIES, Axis, Picture, across, framed, up

LETTER = 8.0
"""The maximum width of a letter of a curve's name."""


def curves(places: Sequence[object], series: Mapping[str, Sequence[float]], x: str, y: str) -> Picture:
    """Draw one curve for each series.

    Args:
        places: the labels below the points, from left to right.
        series: the values at these points, by name.
        x, y: the names of the axes, with units.

    Example:
        >>> curves(["0 ms", "10 ms"], {"p99": [0.0, 10.0]}, "buffer timeout", "latency in ms")
        latency in ms by buffer timeout. p99: 0 at 0 ms, 10 at 10 ms
    """
    highest = max((value for values in series.values() for value in values), default=1.0) or 1.0
    across_axis = Axis(x, [(float(at), str(place)) for at, place in enumerate(places)], -0.3, len(places) - 0.7)
    up_axis = Axis(y, [(highest * part / 4, f"{highest * part / 4:.3g}") for part in range(5)], 0.0, highest * 1.12)
    inside, told = [], []
    for number, (name, values) in enumerate(series.items()):
        colour, dash = SERIES[number % len(SERIES)], DASHES[number % len(DASHES)]
        points = [(across(across_axis, at), up(up_axis, value)) for at, value in enumerate(values)]
        path = "L".join(f"{left:.1f} {top:.1f}" for left, top in points)
        inside.append(f"<path d='M{path}' fill='none' stroke='{colour}' stroke-width='3' stroke-dasharray='{dash}'/>")
        inside += [f"<circle cx='{left:.1f}' cy='{top:.1f}' r='5' fill='{colour}'/>" for left, top in points]
        left, top = points[-1][0], _highest(points, points[-1][0] - LETTER * len(name))
        inside.append(
            f"<text x='{left:.1f}' y='{top - 11:.1f}' text-anchor='end' font-weight='650'>{escape(name)}</text>"
        )
        told.append(f"{name}: " + ", ".join(f"{v:.3g} at {p}" for v, p in zip(values, places, strict=True)))
    return framed(across_axis, up_axis, "".join(inside), f"{y} by {x}. {'; '.join(told)}")


def _highest(points: Sequence[tuple[float, float]], left: float) -> float:
    """The highest position of a curve between a point and its end: there is space for its name above it."""
    tops = [top for x, top in points if x >= left]
    for (x1, top1), (x2, top2) in pairwise(points):
        if x1 < left < x2:
            tops.append(top1 + (left - x1) / (x2 - x1) * (top2 - top1))
    return min(tops)
