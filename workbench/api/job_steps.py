"""Going on by hand: the methods of `Job` for one that runs with the stepping driver."""

from __future__ import annotations

from workbench.api.job_handle import JobHandle
from workbench.drivers.stepping import Step, SteppingDriver
from workbench.errors import JobError


class JobSteps(JobHandle):
    """Steps of a job; `Job` inherits them."""

    @property
    def live(self) -> bool:
        """Whether it goes on by itself; a job on the stepping driver goes on with `step`."""
        return not isinstance(self._driver, SteppingDriver)

    @property
    def driver(self) -> SteppingDriver:
        """The stepping driver, with its further verbs: ``job.driver.next_watermark()``; see `step`.

        Raises:
            JobError: the job runs live.
        """
        if not isinstance(self._driver, SteppingDriver):
            raise JobError(
                f'the job {self._name!r} runs live and cannot be stepped: run its pipeline with driver="stepping"'
            )
        return self._driver

    def step(self, count: int = 1) -> list[Step]:
        """Take this many steps of a job that runs with ``driver="stepping"``; fewer when nothing can happen any more.

        Source: ours; what it shows is F2-9 to F2-15.

        Args:
            count: steps; each takes at most one element of one task.

        Raises:
            JobError: the job runs live.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
            >>> job = pipeline.run("steps", driver="stepping")
            >>> len(job.step(3)), job.driver.run_until(lambda: job.over)
            (3, True)
        """
        driver = self.driver
        steps = (driver.step() for _ in range(count))
        return [step for step in steps if step is not None]
