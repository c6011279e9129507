"""Spark as an architecture of fault tolerance among others: the same pipeline and faults, on Spark itself."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.api.running.costs import Cost
from workbench.api.running.faults_by_records import RecordFault
from workbench.errors import SettingError
from workbench.packages import needed
from workbench.runtime.barriers.fault_tolerance import FaultTolerance

SPARK = "spark"
"""The name of the lane, as users write it in the list of architectures."""
POLICY = FaultTolerance(name=SPARK, title="Spark's", help="Spark's own micro-batches")
"""What it claims; nothing in the kernel runs with it."""


def start_spark_lane(pipeline: Any, name: str, settings: Mapping[str, Any], faults: Sequence[RecordFault]) -> Any:
    """Run a pipeline on this process's session of Spark, or a local one.

    Args:
        pipeline: without probes.
        name: of the job.
        settings: of all lanes; Spark takes those that it has.
        faults: a batch with the record at which a task is to die fails; zombies are not for Spark.

    Raises:
        SettingError: a zombie.
    """
    if zombies := [fault for fault in faults if fault.wakes]:
        raise SettingError(
            f"the fault {zombies[0]} cannot happen on Spark, which lets no task write by itself: leave out the fault, "
            f"or {SPARK!r}"
        )
    jobs = needed("workbench.spark.jobs.launch", "Spark")
    absent = needed("workbench.spark.jobs.absent", "Spark")
    kinds = needed("workbench.spark.jobs.faults", "Spark")
    dies = [fault.at for fault in faults if not fault.records]
    rests = [kinds.RestAt(fault.at, fault.records, fault.rest_us) for fault in faults if fault.records]
    return jobs.start_on_spark(
        pipeline,
        name,
        {setting: value for setting, value in settings.items() if setting in absent.TAKEN},
        spark=None,
        checkpoint_dir=None,
        resume=False,
        replace=bool(settings.get("replace")),
        faults=kinds.BatchFaults(dies, rests),
    )


def cost_on_spark(job: Any, records: int) -> Cost:
    """The costs of a job on Spark that has ended; what Spark does not measure is None.

    Args:
        job: the job.
        records: of its input.
    """
    faults = job.batch_faults
    return Cost(
        failures=faults.failures,
        records_again=faults.records_again,
        recovery_ms=statistics.mean(faults.recovery_s) * 1_000 if faults.recovery_s else None,
        records_per_second=records / job.running_s if job.running_s else None,
        p50_ms=None,
        p99_ms=None,
        buffers=None,
        messages=None,
        checkpoints=len(job.checkpoints()),
        bytes=None,
        stall_ms=None,
        timed_out=None,
        queued=None,
        refused=None,
    )
