"""Reads the lost connections that a job shows."""

from __future__ import annotations

from typing import Any

from waiting import until


def outages(job: Any) -> list[Any]:
    """Of its tasks."""
    job.status()  # takes a sample
    frame = job.recorder.latest()
    return [] if frame is None else [task.outage for task in frame.tasks if task.outage is not None]


def wait_until_lost(job: Any, place: str) -> None:
    """Wait until a task says that it has no connection to a server.

    Args:
        job: that runs.
        place: the server's address, as errors show it.
    """
    until(lambda: any(place in outage.server and outage.attempts > 0 for outage in outages(job)))
