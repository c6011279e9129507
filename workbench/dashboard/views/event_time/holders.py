"""Who holds event time back: from the last task up through the channels to the split of a source."""

from __future__ import annotations

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.sources import whole_of
from workbench.dashboard.views.event_time.late import line
from workbench.durations import MAX_TIME
from workbench.telemetry.diagnosis import held_by
from workbench.telemetry.frames import Frame
from workbench.telemetry.reached import furthest, lag


def skews_us(frame: Frame) -> dict[str, int]:
    """How far the channels of a task are apart in event time, for every task with several that speak and go on."""
    marks: dict[str, list[int]] = {}
    for channel in frame.channels:
        mark = channel.currentChannelWatermark
        if mark is not None and mark < MAX_TIME and not (channel.idle or channel.finished):
            marks.setdefault(channel.target, []).append(mark)
    return {task: max(own) - min(own) for task, own in marks.items() if len(own) > 1}


def late_records(frame: Frame) -> dict[str, int]:
    """Records dropped as too late, by task; only those that dropped some."""
    counts = {task.name: int(task.metrics.get("numLateRecordsDropped") or 0) for task in frame.tasks}
    return {name: count for name, count in counts.items() if count}


def html(frame: Frame, most: int | None = None) -> str:
    """Holder chain, lag and greatest skew, and late records with the last of them, in a line each.

    Args:
        frame: to tell of.
        most: names of the chain that are written, at least four; None: all.
    """
    front = furthest(frame)
    names = held_by(frame)
    lines: list[str] = []
    told: list[str] = []
    if names:
        tasks = {task.name: task for task in frame.tasks}
        written = [f"<b>{wording.html_text(name)}</b>" for name in names]
        if most is not None and len(names) > most:
            written[2 : len(names) - most + 2] = [f"{len(names) - most} more"]
        steps = " ◀ ".join(written)
        behind = lag(whole_of(tasks[names[0]].metrics, "currentInputWatermark"), front)
        lines.append(f"<p>held back by: {steps}</p>")
        told.append(f"behind by <b>{wording.span(behind)}</b>")
    skews = skews_us(frame)
    if skews:
        widest, name = max((skew, task) for task, skew in skews.items())
        told.append(f"skew <b>{wording.span(widest)}</b> between the channels of {wording.html_text(name)}")
    if told:
        lines.append(f"<p>{' · '.join(told)}</p>")
    late = late_records(frame)
    if late:
        counts = ", ".join(f"{wording.html_text(name)} {wording.count(count)}" for name, count in late.items())
        lines.append(f"<p class='warn'>late records dropped: {counts}</p>{line(frame)}")
    else:
        lines.append("<p>late records dropped: 0</p>")
    return "".join(lines)
