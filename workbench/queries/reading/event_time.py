"""Finds the columns of a stream that hold event time."""

from __future__ import annotations

from workbench.connectors.contract.base import Source
from workbench.expressions import plain_name
from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.filter_function import FilterFunction
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.union import Union
from workbench.operators.stateless.with_columns import WithColumns
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.operators.windows.over import Over
from workbench.plan.logical import Node
from workbench.windows import WindowAssigner
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

EventTimes = dict[str, int]
"""By column: its value minus the event time of its record, in microseconds."""


def event_times(node: Node) -> EventTimes:
    """The columns of a node's output whose difference from event time is known.

    Example:
        >>> clicks = wb.Stream.from_table(pa.table({"t": [0], "n": [1]}), event_time="t")
        >>> event_times(clicks.select(at="t", n="n").sink_to(wb.DiscardSink()).logical_graph().nodes[1])
        {'at': 0}
    """
    spec = node.spec
    if isinstance(spec, Source):
        name = getattr(spec, "event_time", None)
        known = isinstance(name, str) and node.watermarks is not None and name in node.schema.names
        return {str(name): 0} if known else {}
    if isinstance(spec, AssignTimestamps):
        assigned = None if spec.event_time is None else plain_name(spec.event_time)
        return {} if assigned is None else {assigned: 0}
    inputs = [{} if item.tag is not None else event_times(item.node) for item in node.inputs]
    if isinstance(spec, Filter | FilterFunction | Over | Union):
        first, *others = inputs
        return {name: ahead for name, ahead in first.items() if all(other.get(name) == ahead for other in others)}
    if isinstance(spec, Select | WithColumns):
        computed = {name: plain_name(expression) for name, expression in spec.columns}
        kept = {} if isinstance(spec, Select) else {n: at for n, at in inputs[0].items() if n not in computed}
        return kept | {name: inputs[0][of] for name, of in computed.items() if of is not None and of in inputs[0]}
    if isinstance(spec, WindowAggregate) and spec.time == "event" and spec.window.bounds == "time":
        return window_times(spec.window)
    return {}


def window_times(window: WindowAssigner) -> EventTimes:
    """The bounds of windows relative to the event time of their results, the last microsecond of the window.

    Example:
        >>> window_times(wb.tumbling("1s"))
        {'window_end': 1, 'window_start': -999999}
    """
    known = {"window_end": 1}
    if isinstance(window, Tumbling | Sliding):
        known["window_start"] = 1 - window.size_us
    return known
