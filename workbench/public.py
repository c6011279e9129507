"""What ``workbench`` exports, by the modules that it comes from.

Importing this imports the whole runtime, so ``workbench`` does it when the first name is asked for: a command that only
prints its help needs none of them.
"""

from workbench.api import Job, KeyedStream, Pipeline, Stream, WindowedStream, job, jobs
from workbench.api.job.comparing import compare
from workbench.api.job.serving import serve
from workbench.api.kept.recording import Recording
from workbench.api.kept.snapshot import Snapshot, delete_savepoint, savepoints
from workbench.api.running.found_jobs import FoundJob, found_jobs
from workbench.api.streams.connected import ConnectedStreams
from workbench.connectors.live.callback_sink import CallbackSink, DiscardSink
from workbench.connectors.live.print_sink import PrintSink
from workbench.connectors.parts.file_sink import FileSink
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.sql.sink import SqlSink
from workbench.connectors.tables.table_sink import TableSink
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
from workbench.operators.aggregates.aggregations import count, max, mean, min, sum
from workbench.operators.aggregates.window_functions import collect, median, top_k
from workbench.operators.event_time.punctuated import punctuated
from workbench.operators.event_time.watermarks import INGESTION, WatermarkGenerator, monotonous
from workbench.operators.process.broadcast_state import BroadcastState
from workbench.operators.process.connect import ConnectedContext, CoProcessFunction
from workbench.operators.process.process_function import ProcessContext, ProcessFunction
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.policies import register_fault_tolerance
from workbench.runtime.settings.restart_strategies import exponential_delay, failure_rate, fixed_delay, no_restart
from workbench.runtime.settings.settings import TUNABLE as SETTINGS
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
    "FaultTolerance",
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
    "register_fault_tolerance",
    "savepoints",
    "serve",
    "session",
    "sliding",
    "sum",
    "top_k",
    "tumbling",
    "when",
]
