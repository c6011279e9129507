"""Checkpoints: the one in progress and who is missing, the history as bars and as a table, and failures."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, CustomJSTickFormatter, HoverTool, LinearAxis, Range1d
from bokeh.plotting import figure

from workbench.dashboard import wording
from workbench.dashboard.html import Texts, bar
from workbench.dashboard.sources import ceiling, refresh, stretch
from workbench.dashboard.theme import Paint
from workbench.dashboard.time_chart import SHORT_MS
from workbench.telemetry.frames import CheckpointFrame, Frame

SHOWN = 24
LISTED = 5

SIGNS = {"COMPLETED": ("good", "✓ done"), "FAILED": ("bad", "✗ failed"), "IN_PROGRESS": ("warn", "… running")}

SHORT_BYTES = """
return tick >= 1e9 ? tick / 1e9 + " GB"
  : tick >= 1e6 ? tick / 1e6 + " MB" : tick >= 1e3 ? tick / 1e3 + " kB" : tick + " B"
"""

_NAMES = ("id", "done_ms", "failed_ms", "size", "state", "took", "bytes")


def missing(checkpoint: CheckpointFrame) -> tuple[str, ...]:
    """The tasks that have not acknowledged."""
    return tuple(task.task for task in checkpoint.subtasks if not task.acknowledged)


def longest_alignment_ms(checkpoint: CheckpointFrame) -> float | None:
    """The longest alignment of any subtask, or None before the first is known."""
    return max((task.alignment_ms for task in checkpoint.subtasks if task.alignment_ms is not None), default=None)


def chart_columns(frame: Frame) -> dict[str, list[Any]]:
    """One row per checkpoint that is over: its duration as done or failed, and its size."""
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES}
    over = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state != "IN_PROGRESS"][-SHOWN:]
    for checkpoint in over:
        done = checkpoint.state == "COMPLETED"
        row = {
            "id": checkpoint.id, "done_ms": checkpoint.duration_ms if done else 0.0,
            "failed_ms": 0.0 if done else checkpoint.duration_ms, "size": checkpoint.size_bytes,
            "state": f"{checkpoint.kind}, {checkpoint.state.lower()}",
            "took": wording.milliseconds(checkpoint.duration_ms), "bytes": wording.size(checkpoint.size_bytes),
        }  # fmt: skip
        for name in _NAMES:
            columns[name].append(row[name])
    return columns


def progress_html(frame: Frame) -> str:
    """The checkpoint in progress as a bar with the tasks still missing, or how the last one went."""
    running = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state == "IN_PROGRESS"]
    counts = (
        f"<span class='muted'>{wording.count(_number(frame, 'numberOfCompletedCheckpoints'))} completed · "
        f"{wording.count(_number(frame, 'numberOfFailedCheckpoints'))} failed</span>"
    )
    if running:
        newest = running[-1]
        share = newest.acknowledged / newest.total if newest.total else 0.0
        waiting = ", ".join(wording.html_text(task) for task in missing(newest)[:4])
        more = len(missing(newest)) - 4
        rest = f" and {more} more" if more > 0 else ""
        wait = f"waiting for {waiting}{rest}" if waiting else "writing its metadata"
        return (
            f"<p class='line'><b>#{newest.id}</b> {bar(share, 'good')} "
            f"{newest.acknowledged}/{newest.total} acknowledged {counts}</p><p class='wait'>{wait}</p>"
        )
    over = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state != "IN_PROGRESS"]
    if not over:
        interval = str(frame.settings.get("checkpoint_interval") or "disabled")
        hint = "checkpoints are disabled" if interval == "disabled" else f"every {wording.html_text(interval)}"
        return f"<p class='line'>None yet: {hint}.</p><p class='wait'></p>"
    last = over[-1]
    if last.state == "FAILED":
        reason = wording.html_text(last.reason or "no reason given")
        return f"<p class='line'><b class='bad'>✗ #{last.id} failed</b> {counts}</p><p class='wait bad'>{reason}</p>"
    age = wording.span(max(0, frame.time_us - last.triggered_us) // 1_000_000 * 1_000_000)
    return (
        f"<p class='line'><b>#{last.id}</b> {bar(1.0, 'good')} {last.acknowledged}/{last.total} acknowledged {counts}"
        f"</p><p class='wait'>{wording.milliseconds(last.duration_ms)}, {wording.size(last.size_bytes)}, "
        f"triggered {age} ago</p>"
    )


def table_html(frame: Frame) -> str:
    """The newest checkpoints, newest first."""
    if not frame.checkpoints:
        return ""
    lines = []
    for checkpoint in reversed(frame.checkpoints[-LISTED:]):
        colour, sign = SIGNS[checkpoint.state]
        why = f" title='{wording.html_text(checkpoint.reason)}'" if checkpoint.reason else ""
        lines.append(
            f"<tr><td>{checkpoint.id}</td><td>{checkpoint.kind}</td><td class='{colour}'{why}>{sign}</td>"
            f"<td class='n'>{wording.milliseconds(checkpoint.duration_ms)}</td>"
            f"<td class='n'>{wording.size(checkpoint.size_bytes)}</td>"
            f"<td class='n'>{wording.milliseconds(longest_alignment_ms(checkpoint))}</td></tr>"
        )
    head = (
        "<tr class='head'><th>id</th><th>kind</th><th>state</th><th class='n'>duration</th><th class='n'>size</th>"
        "<th class='n'>max alignment</th></tr>"
    )
    return f"<table>{head}{''.join(lines)}</table>"


def _number(frame: Frame, name: str) -> float:
    value = frame.metrics.get(name)
    return 0.0 if value is None else float(value)


class CheckpointsView:
    """Progress, chart and table."""

    def __init__(self, paint: Paint, texts: Texts) -> None:
        self._progress = texts.piece("Checkpoint in progress", css=_CSS)
        self._table = texts.piece("Latest checkpoints")
        self._source = ColumnDataSource({name: [] for name in _NAMES})
        self._ids = Range1d(0.4, SHOWN + 0.6)
        self._durations, self._sizes = Range1d(0, 1), Range1d(0, 1)
        self.figure = figure(
            height=104, sizing_mode="stretch_width", x_range=self._ids, y_range=self._durations, tools="",
            extra_y_ranges={"size": self._sizes},
            html_attributes={"role": "img", "aria-label": "Duration and size of the latest checkpoints"},
        )  # fmt: skip
        self._draw(paint)
        self.models = [self._progress.div, self.figure, self._table.div]

    def update(self, frame: Frame) -> None:
        self._progress.write(progress_html(frame))
        self._table.write(table_html(frame))
        columns = chart_columns(frame)
        if refresh(self._source, columns) and columns["id"]:
            newest = columns["id"][-1]
            self._ids.update(start=max(0, newest - SHOWN) + 0.4, end=max(SHOWN, newest) + 0.6)
            stretch(self._durations, ceiling(max(max(columns["done_ms"]), max(columns["failed_ms"]))))
            stretch(self._sizes, ceiling(max(columns["size"])))

    def _draw(self, paint: Paint) -> None:
        plot, source = self.figure, self._source
        plot.add_layout(LinearAxis(y_range_name="size"), "right")
        done = plot.vbar("id", top="done_ms", width=0.7, source=source, line_color=None)
        paint.set(done.glyph, fill_color="accent")
        failed = plot.vbar("id", top="failed_ms", width=0.7, source=source, line_color=None)
        failed.glyph.hatch_pattern = "cross"
        failed.glyph.hatch_scale = 6
        paint.set(failed.glyph, fill_color="bad", hatch_color="hatch")
        dots = plot.scatter("id", "size", source=source, marker="diamond", size=8, y_range_name="size")
        paint.set(dots.glyph, fill_color="violet", line_color="card")
        plot.xgrid.visible = False
        plot.yaxis[0].formatter = CustomJSTickFormatter(code=SHORT_MS)
        plot.yaxis[1].formatter = CustomJSTickFormatter(code=SHORT_BYTES)
        for axis in plot.yaxis:
            axis.ticker.desired_num_ticks = 3
        plot.xaxis.ticker.min_interval = 1
        plot.xaxis.ticker.num_minor_ticks = 0
        tips = [("checkpoint", "@id (@state)"), ("duration", "@took"), ("size", "@bytes")]
        plot.add_tools(HoverTool(renderers=[done, failed], tooltips=tips, mode="vline"))
        paint.plot(plot)


_CSS = """
p.line { display: flex; align-items: center; gap: 6px; white-space: nowrap; overflow: hidden; }
p.line .bar { flex: 0 0 80px; } p.line .muted { margin-left: auto; padding-left: 8px; }
p.wait { color: var(--wb-muted); font-size: 11px; min-height: 16px; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
p.wait.bad { color: var(--wb-bad); }
"""
