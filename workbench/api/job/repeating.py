"""Which jobs can be run a second time without side effects outside the job, and how they are."""

from __future__ import annotations

from typing import Any

from workbench.api.job.run import Run
from workbench.connectors.contract.base import Sink
from workbench.errors import JobError, SettingError
from workbench.plan.logical import LogicalGraph
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.settings.architecture import SNAPSHOTS
from workbench.runtime.storage import CheckpointStorage, MemoryStorage


def unrepeatable(logical: LogicalGraph, storage: CheckpointStorage | None) -> str:
    """Why a job cannot repeat its steps, in a sentence; empty if it can: then it has no effects outside the job."""
    if not isinstance(storage, MemoryStorage):
        return "its checkpoints are kept in a checkpoint_dir, which a second run would write to: run it without one"
    return unrepeatable_ends(logical)


def beside(run: Run) -> tuple[Any, dict[str, Any]]:
    """The pipeline of a run, and its current settings, to run it a second time.

    Raises:
        JobError: it cannot run a second time.
    """
    found = run.beside
    if isinstance(found, str):
        raise JobError(f"the pipeline of the job {run.name!r} cannot run a second time: {found}")
    pipeline, settings = found()
    return pipeline, dict(settings)


def run_again(run: Run, fault_tolerance: str | FaultTolerance, engine: str, spark: object | None) -> Any:
    """The new job; see `Job.run_again`."""
    pipeline, settings = beside(run)
    if engine == "kernel" and spark is None:
        return pipeline.run(run.name, replace=True, **{**settings, "fault_tolerance": fault_tolerance})
    if fault_tolerance != SNAPSHOTS:
        raise SettingError(
            f"fault_tolerance={fault_tolerance!r} cannot be combined with engine={engine!r}: Spark has its own fault "
            "tolerance, micro-batches"
        )
    kept = {name: settings[name] for name in ("parallelism", "max_parallelism") if name in settings}
    return pipeline.run(run.name, engine=engine, spark=spark, replace=True, **kept)


def unrepeatable_ends(logical: LogicalGraph) -> str:
    """Why its sources cannot be read, or its sinks written, by a second run; empty if they can.

    What a second run writes to a folder or a database would be there twice.
    """
    for node, uid in logical.uids.items():
        if isinstance(node.spec, Sink) and node.spec.writes_outside:
            return f"its sink {uid!r} writes outside the job, so a second run would write again: use a TableSink"
        if node.role == "source" and not getattr(node.spec, "resettable", True):
            return f"its source {uid!r} cannot be read a second time: use one that can, such as from_table"
    return ""
