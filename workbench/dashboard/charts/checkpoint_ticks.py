"""Checkpoints on a chart over time: a tick for each, with another sign for one that failed and for a savepoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure

from workbench.dashboard.charts.sources import by_column, refresh
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.wording import milliseconds
from workbench.telemetry.checkpoint_frames import CheckpointFrame

NAMES = ("done", "failed", "saved", "what")
KEY = "<span><b style='color:var(--wb-good)'>▲</b> checkpoint</span>"
FAILED_KEY = "<span><b style='color:var(--wb-bad)'>✕</b> failed checkpoint</span>"
SAVED_KEY = "<span><b style='color:var(--wb-violet)'>◆</b> savepoint</span>"


def columns(checkpoints: Sequence[CheckpointFrame]) -> dict[str, list[Any]]:
    """When each began, in milliseconds since 1970, in the column of its kind; the others hold a gap.

    Example:
        >>> one = CheckpointFrame(7, "FAILED", "periodic", 1_000_000, 1, 2, 9.0, 0, reason="timed out")
        >>> columns([one])
        {'done': [nan], 'failed': [1000.0], 'saved': [nan], 'what': ['#7 failed: timed out']}
    """
    rows = []
    for one in checkpoints:
        column = "failed" if one.state == "FAILED" else "saved" if one.kind == "savepoint" else "done"
        how = f"failed: {one.reason}" if one.state == "FAILED" else f"{one.kind}, {milliseconds(one.duration_ms)}"
        row = {**dict.fromkeys(NAMES, float("nan")), "what": f"#{one.id} {how}"}
        rows.append({**row, column: one.triggered_us / 1000})
    return by_column(rows, NAMES)


def key(checkpoints: Sequence[CheckpointFrame]) -> str:
    """What the ticks of these mean, in HTML."""
    failed, saved = (one.state == "FAILED" for one in checkpoints), (one.kind == "savepoint" for one in checkpoints)
    return f"{KEY * bool(checkpoints)}{FAILED_KEY * any(failed)}{SAVED_KEY * any(saved)}"


class CheckpointTicks:
    """The ticks of one chart, at its zero."""

    def __init__(self, paint: Paint, plot: figure) -> None:
        self._source = ColumnDataSource({name: [] for name in NAMES})
        drawn = []
        for name, marker, size, colour in (
            ("done", "triangle", 6, "good"), ("failed", "x", 9, "bad"), ("saved", "diamond", 9, "violet")
        ):  # fmt: skip
            mark = plot.scatter(name, 0, source=self._source, marker=marker, size=size)
            paint.set(mark.glyph, fill_color=colour, line_color=colour)
            drawn.append(mark)
        plot.add_tools(HoverTool(renderers=drawn, tooltips=[("checkpoint", "@what")]))

    def show(self, checkpoints: Sequence[CheckpointFrame]) -> None:
        """Draw these."""
        refresh(self._source, columns(checkpoints))
