"""Steps a job until a step says something."""

from __future__ import annotations

from workbench.api.job.job import Job


def words_until(job: Job, text: str, limit: int = 300) -> str:
    """Steps until one says so; returns what it says."""
    for _ in range(limit):
        steps = job.stepper.step()
        assert steps, f"the job stopped before {text!r}"
        if text in steps[0].words:
            return steps[0].words
    raise AssertionError(f"no step said {text!r}")
