"""Steps a job without telemetry, which takes most of a step's time, where a test asks only for what comes out."""

from __future__ import annotations

from collections.abc import Callable

from workbench.api.job.job import Job
from workbench.drivers.stepped.stepping import STEPS_MAX


def run_until(job: Job, condition: Callable[[], bool], limit: int = STEPS_MAX) -> None:
    """Step until the condition holds, at most `limit` steps; a frame is taken then."""
    driver = job.stepper.driver
    with driver.unwatched():
        assert driver.run_until(condition, limit)


def wait(job: Job) -> str:
    """Step to the end of the job, as ``job.wait()`` does; a frame is taken then."""
    with job.stepper.driver.unwatched():
        return job.wait()


def run_until_shown(job: Job, shown: Callable[[], bool], every: int = 10) -> None:
    """Step until the condition holds of a frame, where one after so many steps will do."""
    driver = job.stepper.driver
    while not shown():
        assert not job.over
        with driver.unwatched():
            driver.run_until(lambda: job.over, every)
