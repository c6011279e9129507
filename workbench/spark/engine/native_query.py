"""The native tier: a pipeline as a plan of Catalyst."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from workbench.durable.disk import make_folder_durably
from workbench.elements import Records
from workbench.operators.event_time.watermarks import Bounded
from workbench.operators.joins.lookup import LookupJoin
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.union import Union
from workbench.operators.stateless.with_columns import WithColumns
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.plan.arrival_order import needs_order
from workbench.plan.logical import LogicalGraph, Node
from workbench.plan.pruning import travelling
from workbench.spark.carried.parcels import packed, unpacked
from workbench.spark.carried.plan import CarriedPlan
from workbench.spark.engine.batch import Batch
from workbench.spark.engine.native_source import MARK, TICK, TIME, NativeDataSource
from workbench.spark.engine.rereading import can_reread
from workbench.spark.engine.sessions import active_kept, expect_one_batch, register
from workbench.spark.engine.whole_log import quoted, whole_log
from workbench.spark.expression_text import spark_text
from workbench.spark.sending.sent import placed, sent

if TYPE_CHECKING:
    from workbench.spark.session import DataFrame, SparkSession

_NO_TICKS = f"CASE WHEN {TICK} THEN {TIME} IS NULL ELSE TRUE END"
"""Keeps the data rows. The condition reads the event time, so that Spark does not push it below the watermark, where
it would remove the ticks."""
_SINK_ROWS = "sink INT, payload BINARY"


class NativePlan:
    """The frames of a pipeline's nodes.

    Args:
        spark: the session of the query.
        plan: with one subtask of each operator.
        root: of the checkpoint directory.
        batch_rows: the approximate number of records in a batch.
        reread_rows: the same for a source that executors read directly.
        parts: the number of partitions in which a batch is read.
        whole: whether Spark's own reader reads all sources, in one batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: CarriedPlan,
        root: Path,
        batch_rows: int,
        reread_rows: int,
        parts: int,
        *,
        whole: bool,
    ) -> None:
        self._spark, self._root, self._plan, self._whole = spark, root, plan, whole
        self._rows, self._reread_rows, self._parts = batch_rows, reread_rows, parts
        self._graph: LogicalGraph = plan.graph.logical
        self._frames: dict[Node, DataFrame] = {}
        self._windows = [node.spec for node in self._graph.nodes if isinstance(node.spec, WindowAggregate)]

    @property
    def has_windows(self) -> bool:
        """Whether the query aggregates."""
        return bool(self._windows)

    @cached_property
    def _file(self) -> Path:
        """The plan for the processes that read sources."""
        return placed(sent(self._plan))

    @cached_property
    def _format(self) -> str:
        return register(self._spark, NativeDataSource)

    def frame(self, node: Node) -> DataFrame:
        """The rows of a node's main output."""
        if node not in self._frames:
            self._frames[node] = self._translated(node)
        return self._frames[node]

    def written(self, sink: Node) -> DataFrame:
        """The rows for a sink, in its columns."""
        item = sink.inputs[0]
        return self.frame(item.node).where(_NO_TICKS).selectExpr(*map(quoted, item.schema.names))

    def _translated(self, node: Node) -> DataFrame:
        spec, inputs = node.spec, [self.frame(item.node) for item in node.inputs]
        match spec:
            case Filter():
                return inputs[0].where(f"({spark_text(spec.condition, node.inputs[0].schema)}) OR {TICK}")
            case WithColumns():
                schema = node.inputs[0].schema
                added = {name: f.expr(spark_text(each, schema)) for name, each in spec.columns}
                return self._shaped(node, inputs[0].withColumns(added))
            case Select():
                schema = node.inputs[0].schema
                chosen = [f.expr(spark_text(each, schema)).alias(name) for name, each in spec.columns]
                return self._shaped(node, inputs[0].select(*chosen, TIME, TICK))
            case Union():
                frames = [self._shaped(node, frame) for frame in inputs]
                first = frames[0]
                for other in frames[1:]:
                    first = first.union(other)
                return first
            case LookupJoin():
                return self._joined(node, spec, inputs[0])
            case WindowAggregate():
                return self._windowed(node, spec, inputs[0])
        return self._read(node)

    def _shaped(self, node: Node, frame: DataFrame) -> DataFrame:
        return frame.selectExpr(*map(quoted, node.schema.names), TIME, TICK)

    def _read(self, node: Node) -> DataFrame:
        uid = self._graph.uids[node]
        wanted = {
            name
            for reader in self._graph.nodes
            for item in reader.inputs
            if item.node is node
            for name in travelling(self._graph, item, reader).names
        }
        columns = pa.schema([field for field in node.schema if field.name in wanted])
        strategy = node.watermarks
        bound_us = 0
        if strategy is not None and isinstance(strategy.watermarks, Bounded):
            bound_us = strategy.watermarks.out_of_orderness_us
        bound_us += max((window.allowed_lateness_us for window in self._windows), default=0)
        if self._whole and can_reread(node.spec):
            frame = whole_log(self._spark, node.spec.log, columns)
            return frame.withWatermark(TIME, f"{bound_us} microseconds") if self._windows else frame
        folder = self._root / "source" / uid
        make_folder_durably(folder, private=True)
        in_order = needs_order(self._graph)
        reread = node.spec.log.path.absolute() if can_reread(node.spec) and not in_order else None
        frame = (
            self._spark.readStream.format(self._format)
            .option("folder", str(folder))
            .option("plan", str(self._file))
            .option("source", uid)
            .option("rows", str(self._reread_rows if reread else self._rows))
            .option("parts", "1" if in_order else str(self._parts))
            .option("log", str(reread or ""))
            .option("bound", str(bound_us))
            .option("columns", columns.serialize().to_pybytes().hex())
            .load()
        )
        if self._windows:
            frame = frame.withWatermark(MARK, "0 seconds").withWatermark(TIME, "0 seconds")
        return frame.drop(MARK)

    def _joined(self, node: Node, spec: LookupJoin, left: DataFrame) -> DataFrame:
        columns = spec.columns
        names = {field.name: f"__wb_right_{at}" for at, field in enumerate(spec.table.schema)}
        with active_kept():
            right = self._spark.createDataFrame(spec.table.rename_columns(list(names.values())))
        alike = [
            _column(one) == _column(names[other])
            for one, other in zip(columns.left_keys, columns.right_keys, strict=True)
        ]
        condition = alike[0]
        for other in alike[1:]:
            condition = condition & other
        # A tick has no join partner, but must be kept.
        joined = left.join(f.broadcast(right), condition, "left")
        if columns.how == "inner":
            joined = joined.where(_column(names[columns.right_keys[0]]).isNotNull() | _column(TICK))
        taken = left.columns
        kept = [name for name in names if name not in columns.right_keys]
        own = [_column(name) for name in taken if name not in (TIME, TICK)]
        added = [_column(names[name]).alias(name if name not in taken else name + columns.suffix) for name in kept]
        return joined.select(*own, *added, TIME, TICK)

    def _windowed(self, node: Node, spec: WindowAggregate, frame: DataFrame) -> DataFrame:
        window: Any = spec.window
        lengths = [f"{window.size_us} microseconds", f"{getattr(window, 'slide_us', window.size_us)} microseconds"]
        start = f"{window.offset_us} microseconds" if window.offset_us else None
        windows = f.window(TIME, *lengths, start).alias("__wb_window")
        schema = node.inputs[0].schema
        aggregates = [_aggregate(item, schema).alias(name) for name, item in spec.aggregates]
        rows = frame.where(f"{_NO_TICKS} AND {TIME} IS NOT NULL")
        told = rows.groupBy(*[_column(key) for key in spec.keys], windows).agg(*aggregates)
        return told.selectExpr(
            *map(quoted, spec.keys),
            "__wb_window.start AS window_start",
            "__wb_window.end AS window_end",
            *[quoted(name) for name, _ in spec.aggregates],
            f"__wb_window.end AS {TIME}",
            f"FALSE AS {TICK}",
        )


def _column(name: str) -> Any:
    return f.col(quoted(name))


def _aggregate(item: Any, schema: pa.Schema) -> Any:
    if item.column is None:
        return f.count(f.lit(1))
    if item.function == "sum" and pa.types.is_integer(schema.field(item.column).type):
        column = _column(item.column)
        told = f"{item.describe()} exceeded the range of int64: cast the column to float64 before aggregating"
        exceeded = f.try_sum(column).isNull() & (f.count(column) > 0)
        return f.when(exceeded, f.raise_error(f.lit(told)).cast("bigint")).otherwise(f.try_sum(column))
    functions = {"count": f.count, "sum": f.sum, "min": f.min, "max": f.max, "mean": f.avg}
    return functions[item.function](_column(item.column))


def start_native(
    spark: SparkSession,
    plan: CarriedPlan,
    root: Path,
    *,
    batch_rows: int,
    reread_rows: int,
    parts: int,
    interval: str,
    whole: bool,
    write: Callable[[Batch], None],
) -> Any:
    """Start the query; return Spark's handle. `NativePlan` and `start_carried` describe the arguments.

    Raises:
        PlanError: a function cannot be sent to Spark's workers.
    """
    if whole:
        expect_one_batch(spark)
    native = NativePlan(spark, plan, root, batch_rows, reread_rows, parts, whole=whole)
    frames = [(uid, node, native.written(node)) for uid, node in plan.sinks]
    if len(frames) == 1:
        [(uid, node, frame)] = frames
        schema = node.inputs[0].schema

        def take(rows: DataFrame, number: int) -> None:
            write(Batch(number, [(uid, Records(batch)) for batch in _as(rows.toArrow(), schema).to_batches()], []))

    else:  # the rows of each sink as parcels, in one query
        first, *others = [
            frame.mapInArrow(_Packing(at, node.inputs[0].schema), _SINK_ROWS)
            for at, (_, node, frame) in enumerate(frames)
        ]
        frame = first
        for other in others:
            frame = frame.union(other)

        def take(rows: DataFrame, number: int) -> None:
            found = [
                (frames[row["sink"]][0], item)
                for row in rows.toArrow().to_pylist()
                for item in unpacked(row["payload"])
                if isinstance(item, Records)
            ]
            write(Batch(number, found, []))

    writer = frame.writeStream.foreachBatch(take).queryName(plan.job).option("checkpointLocation", str(root / "spark"))
    if whole:  # the windows are complete at the end of the only batch
        writer = writer.outputMode("update" if native.has_windows else "append").trigger(availableNow=True)
    else:
        writer = writer.outputMode("append").trigger(processingTime=interval)
    return writer.start()


class _Packing:
    """Packs the rows of one sink into parcels, in a worker."""

    def __init__(self, sink: int, schema: pa.Schema) -> None:
        self._sink, self._schema = sink, schema

    def __call__(self, batches: Any) -> Any:
        for batch in batches:
            if batch.num_rows:
                [rows] = _as(pa.Table.from_batches([batch]), self._schema).to_batches()
                payload = pa.array([packed([Records(rows)])], pa.binary())
                yield pa.RecordBatch.from_arrays([pa.array([self._sink], pa.int32()), payload], ["sink", "payload"])


def _as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the types that they have in the kernel."""
    columns = [rows.column(name).cast(field.type) for name, field in zip(rows.column_names, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema).combine_chunks()
