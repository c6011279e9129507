"""The tier of each operator on Spark, determined before anything runs.

========= ==========================================================================================================
native    a plan of Catalyst with the same results
carried   the workbench's own operator, with its snapshot as a value in Spark's state
refused   cannot run on Spark; the reason says what to write instead
========= ==========================================================================================================

A pipeline is native if all its operators are; otherwise all are carried. Carried operators use the workbench's own
event time, and one query cannot combine it with Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import pyarrow as pa

from workbench.connectors.contract.base import Source
from workbench.connectors.live.callback_sink import CallbackSink
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_source import TableSource
from workbench.durations import format_duration
from workbench.elements import event_times
from workbench.errors import PlanError
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.event_time.watermarks import Bounded
from workbench.operators.joins.lookup import LookupJoin
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.union import Union
from workbench.operators.stateless.with_columns import WithColumns
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.plan.logical import LogicalGraph, Node
from workbench.spark.engine.reading import FAR_US
from workbench.spark.sending.secrets import plain_secret
from workbench.windows.schedule import AT_END
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

Tier = Literal["native", "carried", "refused"]
_STATELESS = (Filter, WithColumns, Select, Union, LookupJoin)
_MILLISECOND = 1_000


@dataclass(frozen=True, slots=True)
class OperatorTier:
    """An operator's tier.

    Attributes:
        operator: its uid.
        kind: the kind of operator, and what it does.
        tier: in which it runs.
        reason: why it is not native, or what differs.
    """

    operator: str
    kind: str
    tier: Tier
    reason: str = ""


@dataclass(frozen=True)
class SparkPlan:
    """The tiers of a pipeline's operators on Spark; returned by ``pipeline.explain(engine="spark")``.

    Source: not in Flink; Apache Beam's runners have such a capability matrix, for all pipelines at once.

    Attributes:
        operators: in the order of the graph.

    Example:
        >>> import pyarrow as pa, workbench as wb
        >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2]})).filter("n > 1")
        >>> plan = numbers.sink_to(wb.TableSink("large")).explain(engine="spark")
        >>> plan.tier, [each.tier for each in plan.operators]
        ('native', ['native', 'native', 'native'])
    """

    operators: tuple[OperatorTier, ...]

    @property
    def tier(self) -> Tier:
        """The tier of the pipeline, in which all its operators run."""
        tiers = {each.tier for each in self.operators}
        return "refused" if "refused" in tiers else "carried" if "carried" in tiers else "native"

    def check(self) -> None:
        """Reject a pipeline that Spark cannot run.

        Raises:
            PlanError: an operator is refused; with its reason.
        """
        for each in self.operators:
            if each.tier == "refused":
                raise PlanError(f"the operator {each.operator!r} cannot run on Spark: {each.reason}")

    def __repr__(self) -> str:
        width = max(len(each.operator) for each in self.operators)
        lines = [
            f"{each.operator:<{width}}  {each.tier:<8}{each.kind}" + (f"  ({each.reason})" if each.reason else "")
            for each in self.operators
        ]
        return "\n".join([f"on Spark: {self.tier}", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(each.operator)}</td><td><b>{each.tier}</b></td><td>{escape(each.kind)}</td>"
            f"<td>{escape(each.reason)}</td></tr>"
            for each in self.operators
        )
        head = "<tr><th>operator</th><th>tier</th><th>what it does</th><th>why, and what differs</th></tr>"
        return f"<p>on Spark: <b>{self.tier}</b></p><table>{head}{rows}</table>"


def tiers(graph: LogicalGraph) -> SparkPlan:
    """The tier of each operator of a pipeline."""
    refusals = {node: _refusal(node) for node in graph.nodes}
    reasons = {node: _not_native(node) for node in graph.nodes}
    first = next((node for node in graph.nodes if reasons[node]), None)
    found = []
    for node in graph.nodes:
        spec: Any = node.spec
        kind = f"{spec.kind} {spec.describe()}" if spec.kind != spec.describe() else spec.kind
        if refusals[node]:
            tier, reason = "refused", refusals[node]
        elif first is None:
            tier, reason = "native", _differs(node)
        elif reasons[node]:
            tier, reason = "carried", reasons[node]
        else:
            tier, reason = "carried", f"native by itself; runs with {graph.uids[first]!r}, which is carried"
        found.append(OperatorTier(graph.uids[node], kind, tier, reason))  # type: ignore[arg-type]
    return SparkPlan(tuple(found))


def _refusal(node: Node) -> str:
    """Why Spark cannot run an operator at all; empty if it can."""
    align = None if node.watermarks is None else node.watermarks.align
    if align is not None:
        return "sources on Spark do not wait for each other: leave out align, or run in the kernel"
    if isinstance(node.spec, Source) and node.spec.completed_by is not None:
        return (
            "its server keeps its log until a checkpoint is confirmed, and readers on Spark confirm none: run in the "
            "kernel"
        )
    if name := plain_secret(node):
        return (
            f"its {name!r} has a secret in plain text, which would be sent to other processes in a file: set an "
            "environment variable, and write '${NAME}' instead"
        )
    return ""


def _differs(node: Node) -> str:
    """How the native tier differs from the kernel, with correct results."""
    spec = node.spec
    if isinstance(spec, WindowAggregate) and spec.allowed_lateness_us:
        wait = format_duration(spec.allowed_lateness_us)
        return f"a window is emitted once, {wait} after its end, with its late records"
    return ""


def _not_native(node: Node) -> str:
    """Why an operator has no equivalent in Catalyst; empty if it has one."""
    if kinds := [f"{field.name} {field.type}" for field in node.schema if not _is_plain(field.type)]:
        return f"Spark has no type equivalent to {kinds[0]}"
    if any(item.tag is not None for item in node.inputs):
        return "Spark has no side outputs"
    spec = node.spec
    if node.role == "source":
        return _source_not_native(node)
    if node.role == "sink":
        timed = isinstance(spec, CallbackSink) and spec.event_times
        return "the sink needs event times, which Spark keeps only in columns" if timed else ""
    if any(item.exchange == "custom" for item in node.inputs) or any(
        item.exchange == "broadcast" for item in node.inputs
    ):
        return "it needs the workbench's own exchange"
    if isinstance(spec, WindowAggregate):
        return _window_not_native(node, spec)
    if isinstance(spec, LookupJoin):
        keys = [node.inputs[0].schema.field(name).type for name in spec.columns.left_keys]
        others = [spec.table.schema.field(name).type for name in spec.columns.right_keys]
        if keys != others or not all(_is_key(kind) for kind in keys):
            return "the join compares types for which equality may differ in Spark"
        if any(not _is_plain(field.type) for field in spec.table.schema):
            return "the table has a type that Spark does not have"
        return ""
    if isinstance(spec, _STATELESS):
        return ""
    return _WHY.get(type(spec).__name__, "it needs the workbench's own operator")


_WHY = {
    "RollingAggregate": "Spark emits a row for each key and batch, not for each record",
    "Reduce": "Spark emits a row for each key and batch, not for each record",
    "Process": "the function, its state and its timers need the workbench's own operator",
    "IntervalJoin": "outer rows have different event times in Spark",
    "WindowJoin": "Spark joins streams by event time, not by window",
    "WindowApply": "Spark has no functions over whole windows",
    "AsyncLookup": "asynchronous calls need the workbench's own operator",
}


def _source_not_native(node: Node) -> str:
    spec, strategy = node.spec, node.watermarks
    if not isinstance(spec, ReplaySource | TableSource):
        return "only the workbench can read this source"
    if strategy is None:
        return "" if spec.event_time is None else "event time is used without watermarks"
    if not isinstance(strategy.watermarks, Bounded):
        return "the watermarks are not based on a bound on disorder"
    if strategy.idle_after_us is not None:
        return "Spark has no idle inputs"
    times = _event_range(spec)
    if times is not None and not 0 < times[0] <= times[1] < FAR_US:
        return "in Spark, event times before 1970 are late, and windows after 9998 never end"
    return ""


def _event_range(spec: ReplaySource | TableSource) -> tuple[int, int] | None:
    if isinstance(spec, ReplaySource):
        ranges = [file.event_us for file in spec.log.manifest.files if file.event_us is not None]
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
    if spec.event_time is None:
        return None
    known = spec.table.column(spec.event_time).drop_null().combine_chunks()
    if not len(known):
        return None
    times = event_times(known, spec.event_time)
    return int(times.min()), int(times.max())


def _window_not_native(node: Node, spec: WindowAggregate) -> str:
    window = spec.window
    if not isinstance(window, Tumbling | Sliding):
        return f"{window.describe()} windows need the workbench's own operator"
    if spec.time != "event" or spec.trigger != AT_END or spec.evictor is not None:
        return "Spark has no triggers, evictors or processing-time windows"
    lengths = (window.size_us, window.offset_us, getattr(window, "slide_us", 0))
    if any(length % _MILLISECOND for length in lengths):
        return "Spark's watermark counts in milliseconds"
    if isinstance(window, Sliding) and window.size_us % window.slide_us:
        return "in Spark, the slide must divide the size of a window"
    if others := [item for _, item in spec.aggregates if not isinstance(item, Aggregation)]:
        return f"{others[0].describe()} needs all values of a window in order"
    schema = node.inputs[0].schema
    if bad := [name for name in spec.keys if not _is_key(schema.field(name).type)]:
        return f"Spark may group the values of {bad[0]!r} differently"
    if _has_windows_before(node):
        return "it aggregates the results of windows"
    return ""


def _has_windows_before(node: Node) -> bool:
    return any(isinstance(before.spec, WindowAggregate) for before in _above(node))


def _above(node: Node) -> Iterator[Node]:
    for item in node.inputs:
        yield item.node
        yield from _above(item.node)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a column of this type is unchanged after a round trip through Spark."""
    return bool(
        pa.types.is_signed_integer(kind)
        or kind in (pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32())
        or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"))
    )


def _is_key(kind: pa.DataType) -> bool:
    return _is_plain(kind) and not pa.types.is_floating(kind)
