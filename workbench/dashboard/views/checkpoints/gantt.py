"""What every subtask did for a checkpoint, as bars over time: start delay, alignment, synchronous and asynchronous
part; and who was the slowest."""

from __future__ import annotations

from statistics import median
from typing import Any

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import none
from workbench.dashboard.charts.sources import by_column, ceiling, refresh, stretch
from workbench.dashboard.charts.static import ticks
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.charts.time_chart import quarters
from workbench.telemetry.checkpoint_frames import CheckpointFrame, SubtaskCheckpointFrame
from workbench.telemetry.frames import Frame

ROW = 15
BARS = 60
"""Subtasks that are drawn; of more those that took longest."""
AXIS = 22
LABELS = 0.45
"""The room of the names, as a share of the time that is shown."""
STRAGGLES = 2.0
"""A subtask that took this many times the median is called a straggler."""
PIECES = {"start delay": "muted", "alignment": "warn", "sync": "bad", "async": "accent"}

_ENDS = ("delay", "aligned", "synced", "written")
_NAMES = ("y", "task", "top", "bottom", "zero", *_ENDS, "told")


def chosen(frame: Frame, wanted: int | None = None) -> CheckpointFrame | None:
    """The checkpoint of the number that somebody wants to see, while it is known; else the newest of which a subtask
    has told something."""
    for checkpoint in frame.checkpoints:
        if checkpoint.id == wanted:
            return checkpoint
    for checkpoint in reversed(frame.checkpoints):
        if any(task.start_delay_ms is not None for task in checkpoint.subtasks):
            return checkpoint
    return None


def columns(checkpoint: CheckpointFrame | None) -> dict[str, list[Any]]:
    """One row per subtask, at most `BARS`: where each of its pieces ends, in milliseconds since the trigger."""
    tasks = () if checkpoint is None else checkpoint.subtasks
    if len(tasks) > BARS:
        longest = {task.task for task in sorted(tasks, key=lambda task: -(task.end_to_end_ms or 0.0))[:BARS]}
        tasks = tuple(task for task in tasks if task.task in longest)
    rows = []
    for index, task in enumerate(tasks):
        y = len(tasks) - index - 0.5
        ends, at = [], 0.0
        for piece in (task.start_delay_ms, task.alignment_ms, task.sync_ms, task.async_ms):
            at += piece or 0.0
            ends.append(at)
        told = ", ".join(
            f"{name} {wording.milliseconds(piece)}"
            for name, piece in (
                ("start delay", task.start_delay_ms), ("alignment", task.alignment_ms), ("sync", task.sync_ms),
                ("async", task.async_ms), ("end to end", task.end_to_end_ms),
            )
        )  # fmt: skip
        rows.append({
            "y": y, "task": wording.fit(task.task, 105, 10), "top": y + 0.36, "bottom": y - 0.36, "zero": 0.0,
            **dict(zip(_ENDS, ends, strict=True)),
            "told": f"{task.task}: {told}, {wording.size(task.size_bytes)}, {in_flight(task)}",
        })  # fmt: skip
    return by_column(rows, _NAMES)


def in_flight(task: SubtaskCheckpointFrame) -> str:
    """Flink's processed (persisted) in-flight data, in records and bytes."""
    how = " unaligned" if task.unaligned else ""
    return (
        f"in flight: {task.processed_records:,} processed ({wording.size(task.processed_bytes)}), "
        f"{task.persisted_records:,} persisted ({wording.size(task.persisted_bytes)}){how}"
    )


def straggler(checkpoint: CheckpointFrame) -> tuple[str, float, float] | None:
    """The slowest subtask, its end-to-end time in milliseconds, and how many times the median that is."""
    known = [(task.end_to_end_ms, task.task) for task in checkpoint.subtasks if task.end_to_end_ms is not None]
    if not known:
        return None
    slowest, name = max(known)
    middle = median(taken for taken, _ in known)
    return name, slowest, slowest / middle if middle else 1.0


def words(checkpoint: CheckpointFrame | None) -> str:
    """Which checkpoint the bars show and who was the slowest, in HTML."""
    if checkpoint is None:
        return none("No subtask has taken a snapshot.")
    found = straggler(checkpoint)
    text = f"<b>#{checkpoint.id}</b> by subtask"
    if found is not None:
        name, slowest, times = found
        mark = "<b class='warn'>straggler</b>" if times >= STRAGGLES else "slowest"
        text += f" · {mark} {wording.html_text(name)} {wording.milliseconds(slowest)}, {times:.1f} times the median"
    persisted = sum(task.persisted_records for task in checkpoint.subtasks)
    if persisted:
        size = sum(task.persisted_bytes for task in checkpoint.subtasks)
        text += f" · {persisted:,} records in flight persisted ({wording.size(size)})"
    key = " ".join(f"<i style='background:var(--wb-{colour})'></i>{name}" for name, colour in PIECES.items())
    return f"<p>{text}</p><p class='key'>{key}</p>"


class Gantt:
    """The figure; its height follows the number of subtasks."""

    def __init__(self, paint: Paint) -> None:
        self._shown: CheckpointFrame | None = None
        self._source = ColumnDataSource({name: [] for name in _NAMES})
        self._rows, self._time = Range1d(0, 1), Range1d(0, 1)
        self.figure = paint.blank(
            "What every subtask did for the checkpoint, over time", ROW + AXIS, x_range=self._time,
            y_range=self._rows, x_axis_location="above",
        )  # fmt: skip
        starts = ("zero", *_ENDS)
        bars = []
        for place, colour in enumerate(PIECES.values()):
            bar = self.figure.quad(
                starts[place], starts[place + 1], "top", "bottom", source=self._source, line_color=None
            )
            paint.set(bar.glyph, fill_color=colour)
            bars.append(bar)
        paint.hatch(bars[1].glyph)
        paint.text(self.figure, self._source, "zero", "y", "task", "muted", 10, x_offset=-4, text_align="right")
        self.figure.yaxis.visible = False
        self.figure.ygrid.visible = False
        self.figure.xaxis.formatter = ticks("shortMilliseconds")
        self.figure.xaxis.ticker = self._ticker = FixedTicker(ticks=quarters(1.0))
        self.figure.add_tools(HoverTool(renderers=bars, tooltips="@told"))
        paint.plot(self.figure)

    def show(self, checkpoint: CheckpointFrame | None) -> None:
        if checkpoint == self._shown:
            return
        self._shown = checkpoint
        made = columns(checkpoint)
        rows = max(1, len(made["y"]))
        if self._rows.end != rows:
            self._rows.end = rows
            self.figure.height = rows * ROW + AXIS
        if refresh(self._source, made) and made["written"]:
            end = ceiling(max(made["written"]))
            if stretch(self._time, end):
                self._time.start = -LABELS * end
                self._ticker.ticks = quarters(end)
