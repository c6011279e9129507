"""Recordings of live feeds: the time at which records arrive, and the sink next to a source."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import pyarrow as pa

from workbench.clock import SystemClock
from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.replay.log import ARRIVED
from workbench.errors import PlanError, SettingError, unknown
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.operators.stateless.map_batches import MapBatches
from workbench.plan.logical import Input, LogicalGraph, Node

_KIND = pa.timestamp("us", "UTC")


def with_arrival(schema: pa.Schema) -> pa.Schema:
    """A schema with the column of arrival times.

    Raises:
        PlanError: it has a column of that name.

    Example:
        >>> with_arrival(pa.schema({"n": pa.int64()})).names
        ['n', 'arrived_at']
    """
    if ARRIVED in schema.names:
        raise PlanError(f"the stream already has a column {ARRIVED!r}, which a recording adds: rename it before")
    return schema.append(pa.field(ARRIVED, _KIND))


def arrived(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with the present time in each row."""
    now = pa.array([SystemClock().now_us()] * batch.num_rows, pa.int64()).cast(_KIND)
    return pa.RecordBatch.from_arrays([*batch.columns, now], schema=with_arrival(batch.schema))


def recorded(graph: LogicalGraph, path: str | Path, source: str | None) -> Recorded:
    """A graph whose records of a source are recorded, too.

    Args:
        graph: the graph.
        path: a folder of this recording alone.
        source: the uid of the source; None: there is only one.

    Raises:
        SettingError: there is no such source, or there are several.
        PlanError: it has a column of the name that a recording adds, or gives changes.
        SinkError: the folder is not one, or a column cannot be recorded.
    """
    sources = {uid: node for node, uid in graph.uids.items() if node.role == "source"}
    if source is None and len(sources) > 1:
        raise SettingError(f"the job has several sources: name one, such as source={min(sources)!r}")
    if source is not None and source not in sources:
        raise SettingError(unknown("source", source, sources))
    (node,) = sources.values() if source is None else (sources[source],)
    if is_changelog(node.schema):
        raise PlanError("the source gives changes of rows, and a recording keeps rows only: record its job's results")
    stamp = MapBatches(arrived, with_arrival(node.schema))
    stamped = Node(stamp, (Input(node),), stamp.output_schema([node.schema]), {}, uid=_free("arrived", graph))
    sink = ParquetSink(path)
    sink.check(stamped.schema)
    end = Node(sink, (Input(stamped),), stamped.schema, {}, uid=_free("recorded", graph))
    sinks = [each for each in graph.nodes if each.role == "sink"]
    return Recorded((*sinks, end), sink, stamped.schema)


@dataclass(frozen=True)
class Recorded:
    """A pipeline that is recorded while it runs.

    Attributes:
        sinks: all of it.
        sink: of the recording.
        schema: of what is recorded.
    """

    sinks: tuple[Node, ...]
    sink: ParquetSink
    schema: pa.Schema

    def logical_graph(self) -> LogicalGraph:
        """Its operators."""
        return LogicalGraph.collect(self.sinks)


def _free(name: str, graph: LogicalGraph) -> str:
    taken = set(graph.uids.values())
    return next(uid for uid in chain([name], (f"{name}-{n}" for n in count(2))) if uid not in taken)
