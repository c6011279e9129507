"""What a job on Spark does not have, each with the reason and what to do instead."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import JobError, SettingError, unknown
from workbench.runtime.settings.table import OF_RUN, TUNABLE

METHODS = {
    "audit": "has no audit: every batch is exactly once",
    "checkpoint": "takes no checkpoints on request: every batch is one",
    "dead_letters": "does not keep the records of Spark's workers: write stream.dead_letters() to a sink",
    "delete_savepoint": "keeps each savepoint in a separate folder: delete the folder",
    "fail": "cannot be failed from here: kill a Spark worker, and Spark repeats the task",
    "faults": "cannot be failed from here: kill a Spark worker, and Spark repeats the task",
    "lecture": "has no scenes of buffers and barriers: run the pipeline in the kernel, or see job.dashboard()",
    "operator_state": "keeps its state in Spark's state stores: read it with spark.read.format('statestore')",
    "record": "cannot get an additional sink while it runs: record from the start with stream.record_to(path)",
    "rescale": "cannot be rescaled, because a Spark checkpoint fixes the partitions: start it again in another "
    "directory",
    "restore": "cannot be restored while it runs: stop it, and run with checkpoint_dir=, the folder that savepoint() "
    "returned, and resume=True",
    "seek": "cannot seek to another offset: start it again in another directory",
    "stepper": "runs in micro-batches and takes no steps: run the pipeline in the kernel with driver='stepping'",
    "view": "has no views of the kernel's dashboard: job.dashboard() shows Spark's measurements",
}
"""Methods and parts of `Job`, by name; the text follows ``a job on Spark``."""
NEITHER = {
    "buffer_timeout": "Spark has no buffers between operators: set checkpoint_interval, the time between two batches",
    "buffer_size": "Spark has no buffers between operators: set checkpoint_interval, the time between two batches",
    "fault_tolerance": "Spark has its own fault tolerance, micro-batches",
    "checkpoint_mode": "Spark has no barriers: every batch is atomic",
    "speed": "on Spark, the speed of a replay is set in its stream: use Stream.replay(speed=)",
}
"""Settings that cannot be set on Spark, and the reason."""
TAKEN = {"parallelism", "max_parallelism", "checkpoint_interval"}
"""Settings that have a meaning on Spark."""


def method_missing(name: str) -> JobError:
    """The error for one of `METHODS`.

    Example:
        >>> method_missing("seek").message
        'a job on Spark cannot seek to another offset: start it again in another directory'
    """
    return JobError(f"a job on Spark {METHODS[name]}")


def check_settings(names: Iterable[str]) -> None:
    """Reject settings that have no meaning on Spark.

    Raises:
        SettingError: one of them; says what to set instead.
    """
    for name in names:
        if name not in (*OF_RUN, *TUNABLE):
            raise SettingError(unknown("setting", name, OF_RUN))
        if name not in TAKEN:
            why = NEITHER.get(name, "it has no effect on Spark")
            raise SettingError(f"{name} cannot be set with engine='spark': {why}")
