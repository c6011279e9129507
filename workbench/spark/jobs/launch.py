"""Starts a pipeline on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from workbench.api.beginning.sink_places import check_fresh, check_places, hold_places
from workbench.api.job.registry import check_free, jobs, make_room, register
from workbench.api.job.repeating import unrepeatable_ends
from workbench.api.kept.job_record import this_cell
from workbench.durations import parse_duration
from workbench.plan.arrival_order import needs_order, unordered
from workbench.plan.physical import build_physical_graph
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import MemoryStorage, check_name
from workbench.spark.carried.clocked import is_clocked
from workbench.spark.engine.directory import Directory, Identity, check_unused
from workbench.spark.engine.sessions import query_session
from workbench.spark.engine.tiers import tiers
from workbench.spark.engine.whole_log import is_read_whole
from workbench.spark.jobs import batch_limits
from workbench.spark.jobs.absent import check_settings
from workbench.spark.jobs.faults import BatchFaults
from workbench.spark.jobs.query_runner import SparkRun
from workbench.spark.jobs.spark_job import SparkJob


def start_on_spark(
    pipeline: Any,
    name: str,
    given: Mapping[str, Any],
    *,
    spark: object | None,
    checkpoint_dir: str | Path | None,
    resume: bool,
    replace: bool = False,
    faults: BatchFaults | None = None,
) -> SparkJob:
    """Run a pipeline on Spark; see `Pipeline.run` for the errors.

    Args:
        pipeline: a `Pipeline`.
        name: of the job.
        given: the settings that the user wrote.
        spark: a session, or None.
        checkpoint_dir, resume, replace: as in `Pipeline.run`.
        faults: that happen to its batches.
    """
    logical = pipeline.logical_graph()
    check_name(name, "job name")
    running = jobs().get(name) if replace else None
    if running is None:
        check_free(name)
    check_settings(given)
    plan = tiers(logical)
    plan.check()
    settings = Settings().with_values({key: value for key, value in given.items() if key != "checkpoint_interval"})
    interval_us = 0
    if (interval := given.get("checkpoint_interval")) not in (None, "disabled"):
        interval_us = parse_duration(interval, "checkpoint_interval")
    check_places(logical)
    partitions = max(2, settings.parallelism)
    carried = plan.tier == "carried"
    in_order = settings.parallelism == 1 and unordered(logical, partitions)
    graph = build_physical_graph(
        logical,
        partitions if carried and not in_order else 1,
        local_aggregation=False,
        max_parallelism=settings.max_parallelism,
    )
    in_batches = bool(interval_us) or faults is not None
    whole = (
        plan.tier == "native"
        and not in_batches
        and not needs_order(graph.logical)
        and is_read_whole(graph.logical, batch_limits.REREAD_ROWS)
    )
    session = query_session(spark, partitions, several=carried)
    check_unused(checkpoint_dir, resume)
    if running is not None:
        make_room(running)
    again = _again(pipeline, name, given)
    directory = Directory(checkpoint_dir, resume, Identity.of(graph, plan.tier, partitions, whole=whole), name)
    try:
        held = hold_places(logical, name, directory.run, MemoryStorage())
        try:
            if not directory.folder("epochs").exists():
                check_fresh(logical, name)
            run = SparkRun(
                name, graph, plan, session, directory, interval_us, is_clocked(graph), held, this_cell(), again,
                faults or BatchFaults(),
            )  # fmt: skip
            job = SparkJob(run)
        except BaseException:
            for place in held:
                place.release()
            raise
    except BaseException:
        directory.close()
        raise
    try:
        register(cast("Any", job))
    except BaseException:
        job.cancel()  # another thread has taken the name meanwhile
        raise
    return job


def _again(pipeline: Any, name: str, given: Mapping[str, Any]) -> Callable[[str, object | None], Any] | str:
    """Runs the pipeline from the beginning on an engine; or why it cannot."""
    if why := unrepeatable_ends(pipeline.logical_graph()):
        return why

    def run(engine: str, spark: object | None) -> Any:
        return pipeline.run(name, replace=True, engine=engine, spark=spark, **given)

    return run
