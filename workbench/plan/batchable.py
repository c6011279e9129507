"""The pipelines that micro-batches cannot run: those whose results would depend on how records are cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import CodeType
from typing import Any, cast

from workbench.connectors.contract.base import Source
from workbench.durations import format_duration
from workbench.errors import PlanError
from workbench.operators.process.process_function import ProcessContext
from workbench.plan.logical import LogicalGraph, Node
from workbench.windows import WindowAssigner
from workbench.windows.schedule import AT_END, Schedule
from workbench.windows.session import Session
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

_TIMER = ProcessContext.register_processing_timer.__name__
_INSTEAD = "or choose fault_tolerance='snapshots'"


def stretched(logical: LogicalGraph, interval_us: int) -> LogicalGraph:
    """The graph whose tumbling and sliding windows are multiples of the interval, microseconds: the next larger ones.

    Example:
        >>> import pyarrow as pa, workbench as wb
        >>> seconds = pa.table({"t": pa.array([0, 7_000_000], pa.timestamp("us"))})
        >>> counts = wb.Stream.from_table(seconds, event_time="t").window(wb.tumbling("5s")).aggregate(n=wb.count())
        >>> graph = stretched(counts.sink_to(wb.TableSink("out")).logical_graph(), 10_000_000)
        >>> graph.nodes[1].spec.window.describe()
        'tumbling 10s'
    """
    made: dict[Node, Node] = {}
    for node in logical.nodes:
        spec: Any = node.spec
        window = getattr(spec, "window", None)
        if isinstance(window, Tumbling | Sliding):
            spec = replace(spec, window=_stretched(window, interval_us))
        made[node] = replace(node, spec=spec, inputs=tuple(replace(each, node=made[each.node]) for each in node.inputs))
    return LogicalGraph(tuple(made.values()), {made[node]: uid for node, uid in logical.uids.items()})


def _stretched(window: Tumbling | Sliding, interval_us: int) -> Tumbling | Sliding:
    size_us, offset_us = _multiple(window.size_us, interval_us), window.offset_us // interval_us * interval_us
    if isinstance(window, Tumbling):
        return Tumbling(size_us, offset_us)
    return Sliding(size_us, _multiple(window.slide_us, interval_us), offset_us)


def _multiple(us: int, interval_us: int) -> int:
    return -(-us // interval_us) * interval_us


def check_batches(logical: LogicalGraph, interval_us: int) -> None:
    """Reject a pipeline that cannot be expressed with micro-batches of this interval, microseconds.

    Raises:
        PlanError: names the operator and the fix.
    """
    for node in logical.nodes:
        uid = logical.uids[node]
        if node.role == "source" and not cast("Source", node.spec).resettable:
            raise PlanError(
                f"the source {uid!r} cannot be cut into batches, because a batch that fails is read again, and this "
                "source cannot: read from a source that can, or choose fault_tolerance='at-most-once'"
            )
        if node.watermarks is not None and node.watermarks.align is not None:
            raise PlanError(
                f"the source {uid!r} has aligned watermarks, and micro-batches read until their interval ends: leave "
                f"out align, {_INSTEAD}"
            )
        _check_window(uid, node.spec, interval_us)
        if any(_TIMER in names for names in _names_in(node)):
            raise PlanError(
                f"the operator {uid!r} has timers of processing time, and time does not pass within a batch: use "
                f"ctx.register_event_timer, {_INSTEAD}"
            )


def _check_window(uid: str, spec: Any, interval_us: int) -> None:
    window = getattr(spec, "window", None)
    if not isinstance(window, WindowAssigner):
        return
    described, trigger = window.describe(), getattr(spec, "trigger", AT_END)
    if getattr(spec, "time", "event") == "processing":
        raise PlanError(
            f"the operator {uid!r} has {described} windows of processing time, and time does not pass within a batch: "
            f"use event time, {_INSTEAD}"
        )
    if not isinstance(trigger, Schedule) or _fires_within(trigger, interval_us):
        raise PlanError(
            f"the operator {uid!r} has a trigger that can fire within a batch, and results come with the batch: leave "
            f"it out, {_INSTEAD}"
        )
    if isinstance(window, Session) or window.bounds == "position":
        raise PlanError(
            f"the operator {uid!r} has {described} windows, which end with records and not with a batch: use "
            f"wb.tumbling or wb.sliding, {_INSTEAD}"
        )
    if isinstance(window, Tumbling | Sliding):
        lengths = [window.size_us, window.offset_us, window.slide_us if isinstance(window, Sliding) else 0]
        if any(length % interval_us for length in lengths):
            raise PlanError(
                f"the operator {uid!r} has {described} windows, which are no multiple of the batch_interval, "
                f"{format_duration(interval_us)}: change one of them, let windows=stretch do it, {_INSTEAD}"
            )


def _fires_within(trigger: Schedule, interval_us: int) -> bool:
    """Whether a trigger can fire elsewhere than at the end of a batch."""
    if trigger.records is not None or trigger.end == "processing":
        return True
    return trigger.every_us is not None and (trigger.every_in == "processing" or trigger.every_us % interval_us > 0)


def _names_in(node: Node) -> Iterator[tuple[str, ...]]:
    """The names that the function of a node uses, with those of its methods if it is an object."""
    function = getattr(node.spec, "function", None)
    methods = [each for kind in type(function).__mro__[:-1] for each in vars(kind).values()]
    codes = [code for each in (function, *methods) if isinstance(code := getattr(each, "__code__", None), CodeType)]
    while codes:
        code = codes.pop()
        yield code.co_names
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
