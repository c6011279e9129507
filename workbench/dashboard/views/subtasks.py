"""Vertices and their subtasks as tables, with the columns of Flink's job page: what they received and sent, when they
started, where they run, how they are loaded, and how far event time is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import CLASS_NUMBER, none, table
from workbench.dashboard.charts.sources import number_of, whole_of
from workbench.telemetry.diagnosis import level
from workbench.telemetry.frames import Frame, TaskFrame, VertexFrame

LISTED = 100
"""Subtasks in the table, which is rewritten with every frame."""
EVERY = "all vertices"
IN_ORDER = "in the order of the graph"
BACKPRESSURED, IDLE, BUSY = "backPressuredTimeMsPerSecond", "idleTimeMsPerSecond", "busyTimeMsPerSecond"
ORDERS = {
    "by Bytes Received": "numBytesIn",
    "by Records Received": "numRecordsIn",
    "by Bytes Sent": "numBytesOut",
    "by Records Sent": "numRecordsOut",
    "by Backpressured": BACKPRESSURED,
    "by Busy": BUSY,
}
"""What subtasks can be ordered by, greatest first."""

_IO = (
    ("numBytesIn", wording.size),
    ("numRecordsIn", wording.count),
    ("numBytesOut", wording.size),
    ("numRecordsOut", wording.count),
)
_IO_HEADS = ("Bytes Received", "Records Received", "Bytes Sent", "Records Sent")
_VERTEX_HEADS = (
    "Name", "Status", *_IO_HEADS, "Parallelism", "Start Time (UTC)", "Duration", "Tasks", "Backpressured (max)",
    "Busy (max)", "Data Skew", "Low Watermark (UTC)",
)  # fmt: skip
_TASK_HEADS = (
    "SubTask", "Status", *_IO_HEADS, "Attempt", "Slot", "Start Time (UTC)", "Duration", "Backpressured / Idle / Busy",
    "Backpressure", "Low Watermark (UTC)",
)  # fmt: skip
_RIGHT = frozenset(
    (*_IO_HEADS, "Parallelism", "Attempt", "Duration", "Busy (max)", "Data Skew", "Backpressured / Idle / Busy")
)
_COLOURS = {"OK": "good", "LOW": "warn", "HIGH": "bad", "RUNNING": "good", "FAILED": "bad"}


def status(states: Sequence[str]) -> str:
    """The status of a vertex by those of its subtasks; the worst one tells, and none before they are deployed.

    Example:
        >>> status(["RUNNING", "FINISHED"]), status(["CANCELED", "FAILED"]), status([])
        ('RUNNING', 'FAILED', 'CREATED')
    """
    return next((one for one in ("FAILED", "CANCELED", "RUNNING", "FINISHED") if one in states), "CREATED")


def duration_us(tasks: Sequence[TaskFrame], now_us: int) -> int | None:
    """From the first start of these tasks to the last end, or until now while one of them runs; None before that."""
    starts = [task.started_us for task in tasks if task.started_us is not None]
    if not starts:
        return None
    ends = [now_us if task.ended_us is None else task.ended_us for task in tasks]
    return max(0, max(ends) - min(starts))


def vertices_html(frame: Frame) -> str:
    """A row per vertex, in the order of the graph."""
    if not frame.vertices:
        return none("The job has no vertices.")
    rows = [_vertex(vertex, _tasks_of(frame, vertex), frame.time_us) for vertex in frame.vertices]
    return _table(_VERTEX_HEADS, rows)


def subtasks_html(frame: Frame, vertex: str = EVERY, order: str = IN_ORDER) -> str:
    """A row per subtask of one vertex, or of all of them, but `LISTED` at most; `order` is one of `ORDERS`, or that of
    the graph."""
    ids = {one.id for one in frame.vertices if vertex in (EVERY, one.name)}
    tasks = [task for task in frame.tasks if task.vertex in ids]
    if not tasks:
        return none("No tasks are running.")
    if (metric := ORDERS.get(order)) is not None:
        tasks.sort(key=lambda task: -(number_of(task.metrics, metric) or 0.0))
    left = len(tasks) - LISTED
    rest = f"<p class='muted'>and {left} more: choose a vertex or another order</p>" if left > 0 else ""
    return _table(_TASK_HEADS, [_task(task, frame.time_us) for task in tasks[:LISTED]]) + rest


def _tasks_of(frame: Frame, vertex: VertexFrame) -> list[TaskFrame]:
    return [task for task in frame.tasks if task.vertex == vertex.id]


def _vertex(vertex: VertexFrame, tasks: Sequence[TaskFrame], now_us: int) -> list[str]:
    metrics = vertex.metrics
    started = min((task.started_us for task in tasks if task.started_us is not None), default=None)
    counts = Counter(task.state for task in tasks)
    pressed = number_of(metrics, "maxBackPressuredTimeMsPerSecond")
    skew = number_of(metrics, "dataSkew")
    return [
        _name(vertex.name),
        _word(status([task.state for task in tasks])),
        *_io(metrics),
        str(vertex.parallelism),
        _start(started),
        wording.span(duration_us(tasks, now_us)),
        ", ".join(f"{number} {wording.html_text(state)}" for state, number in counts.items()) or wording.NOTHING,
        wording.NOTHING if pressed is None else f"{_word(level(pressed))} {wording.percent(pressed / 1000)}",
        _share(metrics, "maxBusyTimeMsPerSecond"),
        wording.NOTHING if skew is None else wording.percent(skew / 100),
        _watermark(metrics),
    ]


def _task(task: TaskFrame, now_us: int) -> list[str]:
    pressed = number_of(task.metrics, BACKPRESSURED)
    return [
        _name(task.name),
        _word(task.state),
        *_io(task.metrics),
        str(task.attempt + 1),
        wording.html_text(task.slot),
        _start(task.started_us),
        wording.span(duration_us([task], now_us)),
        " / ".join(_share(task.metrics, name) for name in (BACKPRESSURED, IDLE, BUSY)),
        wording.NOTHING if pressed is None else _word(level(pressed)),
        _watermark(task.metrics),
    ]


def _io(metrics: dict[str, float | int | bool | None]) -> list[str]:
    return [_written(number_of(metrics, name), write) for name, write in _IO]


def _written(value: float | None, write: Callable[[float | None], str]) -> str:
    """A quantity, with its exact value to be read where it is shortened."""
    return f"<span title='{wording.count(value)}'>{write(value)}</span>"


def _share(metrics: dict[str, float | int | bool | None], name: str) -> str:
    value = number_of(metrics, name)
    return wording.NOTHING if value is None else wording.percent(value / 1000)


def _watermark(metrics: dict[str, float | int | bool | None]) -> str:
    return wording.instant(whole_of(metrics, "currentInputWatermark"))


def _start(us: int | None) -> str:
    """Month, day and time; the year is to be read where one points."""
    return wording.NOTHING if us is None else f"<span title='{wording.instant(us)}'>{wording.instant(us)[5:]}</span>"


def _name(text: str) -> str:
    name = wording.html_text(text)
    return f"<span class='name' title='{name}'>{name}</span>"


def _word(word: str) -> str:
    return f"<b class='{_COLOURS.get(word, 'muted')}'>{wording.html_text(word)}</b>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    right = [CLASS_NUMBER if head in _RIGHT else "" for head in heads]
    lines = []
    for first, *cells in rows:
        written = "".join(f"<td{side}>{cell}</td>" for side, cell in zip(right[1:], cells, strict=True))
        lines.append(f"<tr><th scope='row'>{first}</th>{written}</tr>")
    return table(heads, lines, _RIGHT)
