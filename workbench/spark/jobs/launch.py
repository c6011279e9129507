"""Starts a pipeline on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.api.beginning.sink_places import check_fresh, check_places, hold_places
from workbench.api.job.registry import check_free
from workbench.durations import parse_duration
from workbench.errors import SettingError
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import build_physical_graph
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import MemoryStorage, check_name
from workbench.spark.carried.clocked import is_clocked
from workbench.spark.engine.directory import Directory, Identity
from workbench.spark.engine.sessions import query_session
from workbench.spark.engine.tiers import tiers
from workbench.spark.jobs.spark_job import SparkJob, SparkRun

_TAKEN = {"parallelism", "max_parallelism", "checkpoint_interval", "speed"}
"""Settings that have a meaning on Spark."""
_WHY_NOT = {
    "buffer_timeout": "Spark has no buffers between operators: set checkpoint_interval, the time between two batches",
    "buffer_size": "Spark has no buffers between operators: set checkpoint_interval, the time between two batches",
    "fault_tolerance": "Spark has its own fault tolerance, micro-batches",
    "checkpoint_mode": "Spark has no barriers: every batch is atomic",
    "speed": "on Spark the speed of a replay is that of its stream: write it in Stream.replay(speed=)",
}


def start_on_spark(
    logical: LogicalGraph,
    name: str,
    given: Mapping[str, Any],
    *,
    spark: object | None,
    checkpoint_dir: str | Path | None,
    resume: bool,
) -> SparkJob:
    """Run a pipeline on Spark; see `Pipeline.run` for the errors.

    Args:
        logical: the pipeline.
        name: of the job.
        given: the settings that the user wrote.
        spark: a session, or None.
        checkpoint_dir, resume: as in `Pipeline.run`.
    """
    check_name(name, "job name")
    check_free(name)
    for setting in given:
        if setting not in _TAKEN or setting == "speed":
            why = _WHY_NOT.get(setting, "it has no meaning on Spark")
            raise SettingError(f"{setting} cannot be set with engine='spark': {why}")
    plan = tiers(logical)
    plan.check()
    settings = Settings().with_values({key: value for key, value in given.items() if key != "checkpoint_interval"})
    interval_us = 0
    if (interval := given.get("checkpoint_interval")) not in (None, "disabled"):
        interval_us = parse_duration(interval, "checkpoint_interval")
    check_places(logical)
    partitions = max(2, settings.parallelism)
    carried = plan.tier == "carried"
    graph = build_physical_graph(
        logical,
        partitions if carried else 1,
        local_aggregation=False,
        max_parallelism=settings.max_parallelism,
    )
    session = query_session(spark, partitions, several=carried)
    directory = Directory(checkpoint_dir, resume, Identity.of(graph, plan.tier, partitions), name)
    try:
        held = hold_places(logical, name, directory.run, MemoryStorage())
        try:
            if not directory.folder("epochs").exists():
                check_fresh(logical, name)
            return SparkJob(SparkRun(name, graph, plan, session, directory, interval_us, is_clocked(graph), held))
        except BaseException:
            for place in held:
                place.release()
            raise
    except BaseException:
        directory.close()
        raise
