"""Event time against processing time: when records happened, and when they were seen (F1-11 to F1-13)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from workbench.lessons.pictures.frame import SERIES, Axis, Picture, across, framed, up

TICKS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
Record = tuple[float, float, str]
"""When it happened, when it was seen, both in seconds, and a short text."""


def times(
    records: Sequence[Record],
    windows: Sequence[tuple[float, float]] = (),
    watermark: Sequence[tuple[float, float]] = (),
) -> Picture:
    """Draw records as points: the horizontal axis is when they happened, the vertical axis when they were seen.

    Args:
        records: see `Record`. On the dotted line nothing is late: a record is seen when it happens.
        windows: of event time, from and to, in seconds; drawn as columns.
        watermark: (processing time, event time) in seconds; each is valid from that processing time on. A record to the
            left of the line is late.

    Example:
        >>> times([(1, 1, "a"), (2, 5, "b")])
        Seen against happened, in seconds: a happened at 1 and was seen at 1; b happened at 2 and was seen at 5
    """
    ends = [value for happened, seen, _ in records for value in (happened, seen)]
    ends += [value for window in windows for value in window]
    high = max(ends, default=1.0) * 1.05
    step = next((step for step in TICKS_S if high / step <= 7), high / 5)
    ticks = [(step * part, f"{step * part:g} s") for part in range(int(high / step) + 1)]
    x, y = Axis("when it happened (event time)", ticks, 0.0, high), Axis("when it was seen", ticks, 0.0, high)
    inside = []
    for number, (start, end) in enumerate(windows):
        left, right = across(x, start), across(x, min(end, high))
        shade = 0.16 if number % 2 else 0.07
        inside.append(
            f"<rect x='{left:.1f}' y='18' width='{right - left:.1f}' height='310' fill='{SERIES[0]}' "
            f"fill-opacity='{shade}'/>"
        )
    inside.append(
        f"<line class='axis' stroke-dasharray='2 5' x1='{across(x, 0):.1f}' y1='{up(y, 0):.1f}' "
        f"x2='{across(x, high):.1f}' y2='{up(y, high):.1f}'/>"
    )
    if watermark:
        steps = [f"M{across(x, max(watermark[0][1], 0)):.1f} {up(y, watermark[0][0]):.1f}"]
        steps += [f"V{up(y, at):.1f}H{across(x, min(max(event, 0), high)):.1f}" for at, event in watermark[1:]]
        steps.append(f"V{up(y, high):.1f}")
        inside.append(f"<path d='{''.join(steps)}' fill='none' stroke='{SERIES[1]}' stroke-width='3'/>")
    for happened, seen, text in records:
        left, top = across(x, happened), up(y, seen)
        close = any(other == seen and 0 < later - happened < high / 10 for later, other, _ in records)
        beside = f"x='{left - 9:.1f}' text-anchor='end'" if close else f"x='{left + 9:.1f}'"
        inside.append(
            f"<circle cx='{left:.1f}' cy='{top:.1f}' r='6' fill='{SERIES[0]}' stroke='white'/>"
            f"<text {beside} y='{top + 4:.1f}'>{escape(text)}</text>"
        )
    told = "; ".join(f"{text} happened at {happened:g} and was seen at {seen:g}" for happened, seen, text in records)
    line = " The line is the watermark." if watermark else ""
    return framed(x, y, "".join(inside), f"Seen against happened, in seconds: {told}{line}")
