"""Watermarks: where event time stands on every input channel, how far it lags, and what holds each task back."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import bar, none
from workbench.dashboard.charts.html import table as html_table
from workbench.dashboard.charts.sources import whole_of
from workbench.durations import MAX_TIME
from workbench.telemetry.frames import ChannelFrame, Frame, TaskFrame
from workbench.telemetry.reached import furthest, lag

MANY = 60
"""Inputs that are listed, and tasks; of more tasks those that are furthest behind."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The watermark of one input of a task: a channel, or a split of a source.

    Attributes:
        name: the sending task, or ``"split 0"`` of a source.
        watermark_us: None before the first one.
        lag_us: behind the furthest watermark of the job; None without a watermark.
        holds: it is the one that the task waits for.
        note: ``"idle"``, ``"finished"`` or empty.
    """

    name: str
    watermark_us: int | None
    lag_us: int | None
    holds: bool
    note: str


@dataclass(frozen=True, slots=True)
class TaskMarks:
    """The event time of one task and of its inputs."""

    task: str
    watermark_us: int | None
    lag_us: int | None
    sentence: str
    inputs: tuple[Mark, ...]

    @property
    def is_held(self) -> bool:
        """Whether one input keeps the task behind another one of it."""
        marks = {mark.watermark_us for mark in self.inputs if not mark.note}
        return len(marks) > 1 and any(mark.holds for mark in self.inputs)


def table(frame: Frame) -> tuple[TaskMarks, ...]:
    """Every task with its inputs, in the order of the frame."""
    front = furthest(frame)
    found = []
    ins: dict[str, list[ChannelFrame]] = {}
    for channel in frame.channels:
        ins.setdefault(channel.target, []).append(channel)
    for task in frame.tasks:
        channels = ins.get(task.name, [])
        inputs = [
            Mark(
                channel.source,
                channel.currentChannelWatermark,
                lag(channel.currentChannelWatermark, front),
                channel.source == task.watermarkHolder and not channel.idle and not channel.finished,
                "finished" if channel.finished else "idle" if channel.idle else "",
            )
            for channel in channels
        ]
        inputs.extend(
            Mark(
                f"split {split}",
                mark,
                lag(mark, front),
                f"split {split}" == task.watermarkHolder,
                "idle" if mark is None else "",
            )
            for split, mark in task.splits.items()
        )
        own = whole_of(task.metrics, "currentInputWatermark" if channels else "currentOutputWatermark")
        found.append(TaskMarks(task.name, own, lag(own, front), sentence(task, inputs), tuple(inputs)))
    return tuple(found)


def sentence(task: TaskFrame, inputs: list[Mark]) -> str:
    """What holds a task's event time back, in words."""
    if task.state == "FINISHED":
        return "finished"
    if inputs and all(mark.note for mark in inputs):
        return f"all inputs {'finished' if all(mark.note == 'finished' for mark in inputs) else 'idle'}"
    if whole_of(task.metrics, "currentInputWatermark") == MAX_TIME:
        return "all inputs ended"
    if task.watermarkHolder is not None:
        return f"waits for {task.watermarkHolder}"
    if any(mark.watermark_us is None and not mark.note for mark in inputs):
        return "no watermark"
    return ""


def html(frame: Frame) -> str:
    """The table as HTML: a line per task, and one per input below it."""
    tasks = table(frame)
    if not any(task.inputs or task.watermark_us is not None for task in tasks):
        return none("No watermark.")
    worst = max((mark.lag_us or 0 for task in tasks for mark in task.inputs), default=0)
    lines: list[str] = []
    left = MANY
    for task in tasks if len(tasks) <= MANY else sorted(tasks, key=lambda task: -(task.lag_us or 0))[:MANY]:
        name = wording.html_text(task.task)
        lines.append(
            f"<tr class='task'><th title='{name}'>{name}</th><td>{wording.instant(task.watermark_us)}</td>"
            f"<td class='n'>{_lag_text(task.lag_us)}</td><td class='{'w' if task.is_held else 'muted'}'"
            f" title='{wording.html_text(task.sentence)}'>{wording.html_text(task.sentence)}</td></tr>"
        )
        for mark in task.inputs[:left]:
            holds = mark.holds and task.is_held
            state = "<b class='holds'>◀ holds</b>" if holds else f"<i>{mark.note}</i>" if mark.note else ""
            gauge = bar((mark.lag_us or 0) / worst if worst else 0.0, "warn" if holds else "accent")
            quiet = " class='quiet'" if mark.note else ""
            lines.append(
                f"<tr{quiet}><td class='in'>{wording.html_text(mark.name)}</td><td>{wording.instant(mark.watermark_us)}"
                f"</td><td class='n'>{_lag_text(mark.lag_us)}</td><td class='w'>{gauge} {state}</td></tr>"
            )
        left = max(0, left - len(task.inputs))
    rest = f"<p class='muted'>and {len(tasks) - MANY} more tasks, none further behind</p>" if len(tasks) > MANY else ""
    return html_table(("input", "Low Watermark", "behind", "held by"), lines, ("behind",)) + rest


def _lag_text(us: int | None) -> str:
    return wording.NOTHING if us is None else "0" if us < 1000 else wording.span(us)
