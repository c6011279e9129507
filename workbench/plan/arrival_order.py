"""Which results depend on an order of records that the replay of a history does not keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from workbench.connectors.contract.base import Sink
from workbench.connectors.live.hybrid_source import replayed
from workbench.connectors.replay.log import ReplayLog
from workbench.operators.aggregates.reduce import Reduce
from workbench.operators.changelogs.group_aggregate import GroupAggregate
from workbench.operators.changelogs.row_kinds import KIND
from workbench.operators.changelogs.top_rows import TopRows
from workbench.operators.matching.match import MatchRows
from workbench.operators.process.process import Process
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.operators.windows.apply import WindowApply
from workbench.plan.logical import Input, LogicalGraph, Node

_BY_ORDER = frozenset(("first", "last", "collect_list"))
"""Aggregate functions that depend on the order of their values."""


def unordered(graph: LogicalGraph, parallelism: int) -> list[str]:
    """A sentence for each operator and sink whose result depends on an order that no replay before it keeps.

    A replay keeps the order of all records with one subtask, and of the records of a key with any number if its
    history was written with ``partition_by`` of columns of that key.

    Args:
        graph: of the pipeline.
        parallelism: of operators without their own.

    Example:
        >>> import pyarrow as pa, workbench as wb
        >>> rows = wb.Stream.from_table(pa.table({"n": [1]})).key_by("n").latest_by()
        >>> unordered(rows.sink_to(wb.TableSink("rows")).logical_graph(), 2)
        []
    """
    return [
        f"{graph.uids[node]!r} depends on the order of its records, and a replay of {log.path} with parallelism "
        f"{wide} does not keep the order of arrival{f' within {_named(keys)}' if keys else ''}: run it with "
        f"parallelism=1{f', or write the history with partition_by={list(keys)}' if keys else ''}"
        for node in graph.nodes
        for keys, given in _ordered_inputs(node)
        for log, wide in _lost(given, keys, parallelism)
    ]


def needs_order(graph: LogicalGraph) -> bool:
    """Whether a result depends on the order in which a replay's records come."""
    return any(
        True for node in graph.nodes for _, given in _ordered_inputs(node) for _ in _lost(given, keys=(), parallelism=2)
    )


def _ordered_inputs(node: Node) -> Iterator[tuple[tuple[str, ...], Input]]:
    """The inputs on whose order the results of a node depend, with the keys within which it counts."""
    spec = node.spec
    if node.role == "sink":
        keys = tuple(cast("Sink", spec).upsert_key)
        if keys and KIND not in node.inputs[0].schema.names:
            yield keys, node.inputs[0]
    elif _is_by_order(spec):
        yield from ((given.keys, given) for given in node.inputs)


def _is_by_order(spec: object) -> bool:
    match spec:
        case TopRows():
            return not spec.order
        case WindowAggregate():
            return spec.window.bounds != "time" or _has_ordered(spec.aggregates)
        case GroupAggregate():
            return _has_ordered(spec.aggregates)
    return isinstance(spec, Process | MatchRows | Reduce | WindowApply)


def _has_ordered(aggregates: tuple[tuple[str, object], ...]) -> bool:
    return any(getattr(each, "function", "") in _BY_ORDER for _, each in aggregates)


def _lost(given: Input, keys: tuple[str, ...], parallelism: int) -> Iterator[tuple[ReplayLog, int]]:
    """The replay before an input whose order does not reach it, if there is one, and over how many subtasks it was
    spread. Operators with several inputs, and aggregates, have an order of their own."""
    node, spread = given.node, 1
    while (source := replayed(node.spec)) is None:
        if len(node.inputs) != 1 or isinstance(node.spec, WindowAggregate | GroupAggregate):
            return
        before, wide = node.inputs[0], node.parallelism or parallelism
        by_key = before.exchange == "hash" and set(before.keys).issubset(keys)
        if not by_key and (before.exchange is not None or wide != (before.node.parallelism or parallelism)):
            spread = max(spread, wide)
        node = before.node
    by = source.log.manifest.partitioned
    if by is None or not set(by.by).issubset(keys):
        spread = max(spread, node.parallelism or parallelism)
    if spread > 1:
        yield source.log, spread


def _named(keys: tuple[str, ...]) -> str:
    return ", ".join(keys)
