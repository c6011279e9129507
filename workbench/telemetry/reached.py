"""The event time that a job has reached, read from a frame."""

from __future__ import annotations

from workbench.telemetry.frames import Frame


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
