"""The event time that a job has reached, and how far that is behind the furthest watermark, read from a frame."""

from __future__ import annotations

from workbench.durations import MAX_TIME, NO_TIME
from workbench.telemetry.frames import Frame, TaskFrame


def reached(frame: Frame) -> int | None:
    """The event time, in microseconds, that all tasks without receivers have reached; None until each has a watermark.

    Example:
        >>> reached(job.recorder.latest())  # doctest: +SKIP
        1372658400000000
    """
    senders = {edge.source for edge in frame.edges}
    last = [task.metrics.get("currentInputWatermark") for task in frame.tasks if task.vertex not in senders]
    known = [int(time_us) for time_us in last if time_us is not None]
    return min(known) if known and len(known) == len(last) else None


def furthest(frame: Frame) -> int | None:
    """The furthest watermark of any channel, split or task, not counting the final one; None before the first."""
    marks = [channel.currentChannelWatermark for channel in frame.channels]
    for task in frame.tasks:
        marks.extend(task.splits.values())
        marks.extend(_whole(task, name) for name in ("currentInputWatermark", "currentOutputWatermark"))
    return max((mark for mark in marks if mark is not None and NO_TIME < mark < MAX_TIME), default=None)


def lag(mark: int | None, front: int | None) -> int | None:
    """How far a watermark is behind the furthest, in microseconds; the final watermark is behind nothing."""
    if mark is None or mark == NO_TIME or front is None:
        return None
    return max(0, front - mark)


def vertex_lags(frame: Frame) -> dict[str, int]:
    """Microseconds of event time by which the slowest task of each vertex is behind the furthest watermark, by id."""
    front = furthest(frame)
    lags: dict[str, int] = {}
    for task in frame.tasks:
        mark = _whole(task, "currentInputWatermark")
        behind = lag(_whole(task, "currentOutputWatermark") if mark is None else mark, front)
        if behind is not None:
            lags[task.vertex] = max(lags.get(task.vertex, 0), behind)
    return lags


def event_time_lag(frame: Frame) -> int | None:
    """Microseconds by which the sink that is furthest behind is behind the furthest watermark; None: no watermark.

    Flink's ``watermarkLag``, a metric of each task, is another quantity: it is behind the position of the replay or the
    clock, so that it includes the bound on out-of-orderness.

    Example:
        >>> event_time_lag(job.recorder.latest())  # doctest: +SKIP
        7200000000
    """
    senders = {edge.source for edge in frame.edges}
    return max((behind for vertex, behind in vertex_lags(frame).items() if vertex not in senders), default=None)


def _whole(task: TaskFrame, name: str) -> int | None:
    value = task.metrics.get(name)
    return None if value is None else int(value)
