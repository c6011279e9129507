"""Live jobs of one pipeline, side by side while they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.api.job.job import Job
from workbench.api.pictures.side_by_side import checkpointing, differences, set_to, settings_that_differ, verdict
from workbench.errors import JobError, WorkbenchError, unknown
from workbench.packages import needed
from workbench.telemetry.frames import Frame


class LiveComparison:
    """Live jobs side by side; made by `compare`. In a notebook it shows them on common axes, with the controls of each.

    Source: E4, whose settings are compared here while both run.

    Attributes:
        jobs: by the name of the lane; the first is the one that the others are compared with.

    Example:
        >>> numbers = wb.Stream.from_table(pa.table({"n": range(100)})).sink_to(wb.DiscardSink())
        >>> both = wb.compare(numbers, a={}, b={"buffer_timeout": "0ms"})
        >>> list(both), both["b"].name, both.wait("60s")
        (['a', 'b'], 'compared-b', {'a': 'FINISHED', 'b': 'FINISHED'})
    """

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self.jobs = dict(jobs)

    def __getitem__(self, lane: str) -> Job:
        if lane not in self.jobs:
            raise JobError(unknown("lane", lane, self.jobs))
        return self.jobs[lane]

    def __iter__(self) -> Iterator[str]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def differences(self) -> list[str]:
        """What each lane but the first does differently now, one sentence each: ``"b: p50 4.1 ms instead of 48 ms"``.

        Latency, records and buffers per second and the last checkpoint are compared; a figure is told where one is at
        least 1.25 times the other.
        """
        return differences(self._frames())

    @property
    def verdict(self) -> str:
        """Which lane is best now and what that costs, in one sentence, or why none is:
        ``"Lowest latency: b (buffer_timeout 5ms) has p50 4.1 ms, 180 buffers/s; a (buffer_timeout 100ms) has ..."``.
        """
        return verdict(self._frames())

    def stop(self) -> None:
        """Stop every job with a last checkpoint, and wait for the end; see `Job.stop`.

        Raises:
            JobError: one failed while it was stopping; the others are stopped all the same.
        """
        self._each(lambda job: job.stop())

    def cancel(self) -> None:
        """End every job without a last checkpoint, and wait for the end; see `Job.cancel`.

        Raises:
            JobError: one has not ended in time; the others are canceled all the same.
        """
        self._each(lambda job: job.cancel())

    def wait(self, timeout: str | None = None) -> dict[str, str]:
        """Wait until every job has ended, for `timeout` each; the state of each; see `Job.wait`.

        Raises:
            JobError: a job failed, or has not ended in time.
        """
        return {lane: job.wait(timeout) for lane, job in self.jobs.items()}

    def dashboard(self, carrier: str | None = None) -> Any:
        """The jobs on common axes, with a column of controls for each, for display in a cell. A lane on Spark has no
        place on them; its own ``dashboard()`` shows what Spark measures.

        Args:
            carrier: as for `Job.dashboard`.

        Raises:
            SettingError: no such carrier.
        """
        return needed("workbench.dashboard.shown.lanes_dashboard", "a dashboard").LanesDashboard(
            self._in_kernel(), carrier
        )

    def __repr__(self) -> str:
        frames = self._frames()
        differ = settings_that_differ(list(frames.values()))
        lines = []
        for lane, job in self.jobs.items():
            told = ", ".join(set_to(name, frames[lane]) for name in differ) if lane in frames else ""
            lines.append(f"{lane}: job {job.name}, {job.state}{', ' if told else ''}{told}")
        return "\n".join([*lines, *filter(None, [verdict(frames)]), *differences(frames), *checkpointing(frames)])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        return self.dashboard()._repr_mimebundle_(include, exclude)

    def _frames(self) -> dict[str, Frame]:
        found = {lane: job.recorder.latest() for lane, job in self._in_kernel().items()}
        return {lane: frame for lane, frame in found.items() if frame is not None}

    def _in_kernel(self) -> dict[str, Job]:
        return {lane: job for lane, job in self.jobs.items() if job.engine != "spark"}

    def _each(self, end: Any) -> None:
        problems: list[WorkbenchError] = []
        for job in self.jobs.values():
            try:
                if not job.over:
                    end(job)
            except WorkbenchError as error:
                problems.append(error)
        if problems:
            raise problems[0]
