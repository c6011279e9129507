"""Starts the streaming query of a carried pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.elements import Records
from workbench.spark.carried.parcels import unpacked
from workbench.spark.carried.plan import TOLD, CarriedPlan
from workbench.spark.engine.batch import Batch
from workbench.spark.engine.data_source import ROWS, CarriedDataSource
from workbench.spark.engine.processor import CarriedProcessor
from workbench.spark.engine.sessions import register
from workbench.spark.sending.sent import placed, sent, shipped

if TYPE_CHECKING:
    from workbench.spark.session import DataFrame, SparkSession


def start_carried(
    spark: SparkSession,
    plan: CarriedPlan,
    root: Path,
    *,
    batch_rows: int,
    clocked: bool,
    interval: str,
    write: Callable[[Batch], None],
) -> Any:
    """Start the query; return Spark's handle.

    Args:
        spark: its session.
        plan: of the pipeline.
        root: of its checkpoint directory.
        batch_rows: the approximate number of records in a batch.
        clocked: whether there are batches without records.
        interval: between two batches, as Spark writes it.
        write: called with each batch, on one of Spark's threads.

    Raises:
        PlanError: a function cannot be sent to Spark's workers.
    """
    content = sent(plan)
    name = shipped(spark.sparkContext, content)
    source = register(spark, CarriedDataSource)
    frame: DataFrame = (
        spark.readStream.format(source)
        .option("folder", str(root / "source"))
        .option("plan", str(placed(content)))
        .option("rows", str(batch_rows))
        .option("clocked", str(clocked).lower())
        .load()
    )
    for level in range(plan.levels):
        frame = frame.groupBy("task").transformWithStateInPandas(
            CarriedProcessor(name, level), outputStructType=ROWS, outputMode="Append", timeMode="None"
        )

    def take(rows: DataFrame, number: int) -> None:
        write(_batch(plan, rows.toArrow(), number))

    return (
        frame.writeStream.foreachBatch(take)
        .outputMode("append")
        .queryName(plan.job)
        .option("checkpointLocation", str(root / "spark"))
        .trigger(processingTime=interval)
        .start()
    )


def _batch(plan: CarriedPlan, rows: pa.Table, number: int) -> Batch:
    written: list[tuple[str, Records]] = []
    figures: list[dict[str, Any]] = []
    order = rows.sort_by([("task", "ascending"), ("channel", "ascending")])
    for task, payload in zip(order["task"].to_pylist(), order["payload"].to_pylist(), strict=True):
        if task == TOLD:
            figures.append(json.loads(payload))
            continue
        uid = plan.sink_of(task)
        written += [(uid, item) for item in unpacked(payload) if isinstance(item, Records)]
    return Batch(number, written, figures)
