"""The Streaming Workbench: a Flink-like streaming runtime in the notebook's own kernel, to see, to touch and to trust.

The map of what is exported:

* histories: `History` (written by Spark, replayed without), `datasets`;
* streams: `Stream`, and the `KeyedStream` and `WindowedStream` that it turns into;
* event time: `INGESTION`, `monotonous`, `punctuated`, `WatermarkGenerator`;
* columns: `col`, `lit`, `expr`, `when`, `coalesce`;
* keyed functions: `ProcessFunction`, its `ProcessContext` and `State`; what state they declare: `ValueState`,
  `ListState`, `MapState`, `ReducingState`, `AggregatingState`;
* two streams: `ConnectedStreams`, `CoProcessFunction` with its `ConnectedContext`, `BroadcastState`;
* windows: `tumbling`, `sliding`, `session`, `count_tumbling`, `count_sliding`, `global_window`, or a `WindowAssigner`
  of one's own; functions see each as a `Window`;
* when windows fire: `on_event_time`, `on_processing_time`, `on_count`, `early`, `purging`, or a `Trigger` of one's own
  with its `TriggerContext` and `Action`; what they keep: `keep_last`, `keep_since`, or an `Evictor`;
* aggregates: `count`, `sum`, `min`, `max`, `mean`, and in windows `median`, `top_k`, `collect`;
* sinks: `TableSink`, `ParquetSink`, `FileSink`, `SqlSink`, `CallbackSink`, `PrintSink`, `DiscardSink`;
* when a failed job starts again: `fixed_delay`, `exponential_delay`, `failure_rate`, `no_restart`;
* jobs: `Pipeline`, `Job`, `job`, `jobs`, `serve` (their dashboards without a notebook), and `SETTINGS`, the names of
  what can be tuned live; `found_jobs` of earlier processes, each a `FoundJob`;
* what is kept of jobs: `savepoints`, `delete_savepoint`, and `Snapshot`, which opens one to be looked at;
* errors: `WorkbenchError` is the base of all.

In a notebook ``%load_ext workbench`` adds ``%%stream`` and ``%stream``.

Example::

    import workbench as wb
    from workbench import col

    flights = wb.Stream.replay(history, speed="3600x", out_of_orderness="24h")
    delays = (flights.filter("dep_delay IS NOT NULL")
        .key_by("origin").window(wb.tumbling("1h"))
        .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay")))
    job = delays.sink_to(wb.TableSink("delays")).run("delays", parallelism=2)
"""

from importlib import import_module
from typing import Any

from workbench.api import Job, KeyedStream, Pipeline, Stream, WindowedStream, job, jobs
from workbench.api.comparing import compare
from workbench.api.connected import ConnectedStreams
from workbench.api.found_jobs import FoundJob, found_jobs
from workbench.api.recording import Recording
from workbench.api.serving import serve
from workbench.api.snapshot import Snapshot, delete_savepoint, savepoints
from workbench.connectors.callback_sink import CallbackSink, DiscardSink
from workbench.connectors.file_sink import FileSink
from workbench.connectors.parquet_sink import ParquetSink
from workbench.connectors.print_sink import PrintSink
from workbench.connectors.sql_sink import SqlSink
from workbench.connectors.table_sink import TableSink
from workbench.errors import (
    CheckpointError,
    CorruptCheckpointError,
    ExpressionError,
    HistoryError,
    JobError,
    PlanError,
    RecordError,
    SettingError,
    SinkError,
    SourceError,
    WorkbenchError,
)
from workbench.expressions import coalesce, col, expr, lit, when
from workbench.operators.aggregations import count, max, mean, min, sum
from workbench.operators.broadcast_state import BroadcastState
from workbench.operators.connect import ConnectedContext, CoProcessFunction
from workbench.operators.process_function import ProcessContext, ProcessFunction
from workbench.operators.punctuated import punctuated
from workbench.operators.watermarks import INGESTION, WatermarkGenerator, monotonous
from workbench.operators.window_functions import collect, median, top_k
from workbench.runtime.restart_strategies import exponential_delay, failure_rate, fixed_delay, no_restart
from workbench.runtime.settings import TUNABLE as SETTINGS
from workbench.spark.history import History
from workbench.state.descriptors import AggregatingState, ListState, MapState, ReducingState, ValueState
from workbench.state.layout import State
from workbench.windows import (
    Action,
    Evictor,
    Trigger,
    TriggerContext,
    Window,
    WindowAssigner,
    count_sliding,
    count_tumbling,
    early,
    global_window,
    keep_last,
    keep_since,
    on_count,
    on_event_time,
    on_processing_time,
    purging,
    session,
    sliding,
    tumbling,
)

__version__ = "0.1.0"

__all__ = [
    "INGESTION",
    "SETTINGS",
    "Action",
    "AggregatingState",
    "BroadcastState",
    "CallbackSink",
    "CheckpointError",
    "CoProcessFunction",
    "ConnectedContext",
    "ConnectedStreams",
    "CorruptCheckpointError",
    "DiscardSink",
    "Evictor",
    "ExpressionError",
    "FileSink",
    "FoundJob",
    "History",
    "HistoryError",
    "Job",
    "JobError",
    "KeyedStream",
    "ListState",
    "MapState",
    "ParquetSink",
    "Pipeline",
    "PlanError",
    "PrintSink",
    "ProcessContext",
    "ProcessFunction",
    "RecordError",
    "Recording",
    "ReducingState",
    "SettingError",
    "SinkError",
    "Snapshot",
    "SourceError",
    "SqlSink",
    "State",
    "Stream",
    "TableSink",
    "Trigger",
    "TriggerContext",
    "ValueState",
    "WatermarkGenerator",
    "Window",
    "WindowAssigner",
    "WindowedStream",
    "WorkbenchError",
    "coalesce",
    "col",
    "collect",
    "compare",
    "count",
    "count_sliding",
    "count_tumbling",
    "delete_savepoint",
    "early",
    "exponential_delay",
    "expr",
    "failure_rate",
    "fixed_delay",
    "found_jobs",
    "global_window",
    "job",
    "jobs",
    "keep_last",
    "keep_since",
    "lit",
    "load_ipython_extension",
    "max",
    "mean",
    "median",
    "min",
    "monotonous",
    "no_restart",
    "on_count",
    "on_event_time",
    "on_processing_time",
    "punctuated",
    "purging",
    "savepoints",
    "serve",
    "session",
    "sliding",
    "sum",
    "top_k",
    "tumbling",
    "unload_ipython_extension",
    "when",
]


def __dir__() -> list[str]:
    """What is for users: completion shows this and not the packages behind it."""
    return [*__all__, "__version__"]


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext workbench``: adds the magics and opens the way for the sidebar."""
    import_module("workbench.kernel").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by ``%unload_ext workbench``."""
    import_module("workbench.kernel").unload_ipython_extension(ipython)
