"""A job that is rescaled in the middle of its input, however slow the machine is."""

from __future__ import annotations

from waiting import until

import workbench as wb

AT_ONCE = 1e6
"""Records a second: what is left of a small table comes as fast as the job takes it."""


def rescaled(
    pipeline: wb.types.Pipeline, name: str, some: int = 12, *, before: int = 2, after: int = 3
) -> wb.types.Job:
    """A job that has finished, and went from two subtasks to three while most of its input was to come.

    Args:
        pipeline: reads tables, at a rate that leaves it running for some seconds.
        name: of the job.
        some: how many records the job has read before it is rescaled.
    """
    job = pipeline.run(name, parallelism=2)
    until(lambda: job.status()["records_in"] >= some)
    assert job.state == "RUNNING"
    job.rescale(3)
    job.tune(rate=AT_ONCE)
    assert job.wait("120s") == "FINISHED"
    assert job.status()["parallelism"] == 3
    return job
