"""The kernel's side of the dashboard benchmark: starts the wide job, serves its page, and returns figures."""

from __future__ import annotations

import time

import workbench as wb
from workbench.lab.bench.looking.processes import thread_cpu_seconds
from workbench.lab.bench.works.wide import PARALLELISM, TABLE, Wide

PATIENCE = "60s"


NAME = "bench-dashboard"


class ShownJob:
    """The wide job, running, with checkpoints every second.

    Args:
        served: whether its dashboard is served as a page.
    """

    def __init__(self, *, served: bool) -> None:
        self._work = Wide()
        self._job = self._work.pipeline().run(
            NAME, parallelism=PARALLELISM, checkpoint_interval="1s", buffer_timeout="100ms"
        )
        self._pages = wb.serve(self._job) if served else None

    @property
    def url(self) -> str:
        """Of the served dashboard."""
        return "" if self._pages is None else str(self._pages.url)

    def reading(self) -> tuple[float, int, float, float]:
        """Seconds of some clock, events emitted, CPU seconds of the process and of its dashboard threads."""
        return time.perf_counter(), self._work.emitted.count, time.process_time(), thread_cpu_seconds("dashboard")

    def tunings(self) -> list[int]:
        """When each tuning took effect: microseconds since 1970."""
        frame = self._job.recorder.latest()
        return [] if frame is None else [event.time_us for event in frame.events if event.kind == "tune"]

    def end(self) -> bool:
        """Stop serving and stop the job; returns whether its results are right."""
        if self._pages is not None:
            self._pages.stop()
        self._job.stop(wait=False)
        self._job.wait(PATIENCE)
        return self._work.exact(self._job.table(TABLE))
