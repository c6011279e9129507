"""The event time of a watched query, batch by batch: the newest of its records, and the watermark behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from workbench.spark.watching.observation import BatchSeen

NEWEST, WATERMARK = "#3f7fd6", "#f2a33a"
LEFT = 70
"""Of the first batch; what is written on the left has room there."""
_STEP, _HEIGHT = 14, 80
_DASHED = " stroke-dasharray='5 3'"
_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
"""Spark's, in UTC."""
_END = "9999-"
"""Begins the watermark at the end of a bounded source."""


def event_time(batches: Sequence[BatchSeen]) -> str:
    """The last values in a sentence, and both lines over the batches.

    Args:
        batches: oldest first; those of the picture.

    Example:
        >>> event_time([BatchSeen(0, "", 5, 90, {}, "", "")])
        "<p class='note'>the query has no watermark</p>"
    """
    known = [batch for batch in batches if batch.watermark]
    if not known:
        return "<p class='note'>the query has no watermark</p>"
    watermark = known[-1].watermark
    newest = next((batch.newest for batch in reversed(batches) if batch.newest), "")
    if watermark.startswith(_END):
        told = "The source has ended, so the watermark has passed all windows"
    else:
        told = f"The watermark is <b>{escape(_brief(watermark))}</b> UTC"
    if newest:
        told += f"; the newest event time is <b>{escape(_brief(newest))}</b> UTC"
    why = "a window is complete when the watermark has passed its end"
    return f"<p>{told}; {why}.</p>{_drawn(batches)}"


def _drawn(batches: Sequence[BatchSeen]) -> str:
    """Nothing for less than two points of each line."""
    newest, marks = (
        [(at, seconds) for at, instant in enumerate(instants) if (seconds := _seconds(instant)) is not None]
        for instants in ([batch.newest for batch in batches], [batch.watermark for batch in batches])
    )
    if min(len(newest), len(marks)) < 2:
        return ""
    low, high = (pick(seconds for _, seconds in newest + marks) for pick in (min, max))
    span = max(high - low, 1e-3)

    def line(points: Iterable[tuple[int, float]], colour: str, dashes: str) -> str:
        placed = " ".join(
            f"{LEFT + at * _STEP + _STEP / 2:.0f},{4 + (high - seconds) / span * (_HEIGHT - 8):.1f}"
            for at, seconds in points
        )
        return f"<polyline points='{placed}' fill='none' stroke='{colour}' stroke-width='2'{dashes}/>"

    width = max(LEFT + 2 + len(batches) * _STEP, 240)
    return (
        f"<div class='wide'>"
        f"<svg width='{width}' height='{_HEIGHT}' role='img' aria-label='watermark and newest event time'>"
        f"<text x='0' y='10'>{_clock(high)}</text><text x='0' y='{_HEIGHT - 2}'>{_clock(low)}</text>"
        f"{line(newest, NEWEST, '')}{line(marks, WATERMARK, _DASHED)}</svg></div>"
        f"<div><span style='margin-right:12px'><b style='color:{NEWEST}'>—</b> newest event time</span>"
        f"<span><b style='color:{WATERMARK}'>- -</b> watermark</span></div>"
    )


def _brief(instant: str) -> str:
    """To the second."""
    return instant.partition(".")[0].rstrip("Z").replace("T", " ")


def _seconds(instant: str) -> float | None:
    """Since 1970; None: none, the end of a source, or no time at all, as in a recording from anyone."""
    if instant.startswith(_END):
        return None
    try:
        return datetime.strptime(instant, _FORMAT).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")
