"""The failure of a job that the header reports: the one that keeps it down, or one from which it has just recovered."""

from __future__ import annotations

from workbench.telemetry.frames import Frame

NEWS_S = 60
"""How long a failure is reported after the job has recovered; the view of the events keeps it."""
DOWN = ("FAILED", "FAILING", "RESTARTING")


def failure_now(frame: Frame) -> str | None:
    """The message of the failure to report at the time of the frame; None: there is none."""
    failed = [event.time_us for event in frame.events if event.kind == "failure"]
    is_news = bool(failed) and frame.time_us - failed[-1] < NEWS_S * 1_000_000
    return frame.failure if frame.state in DOWN or is_news else None
