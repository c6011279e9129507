"""Leaves out unused columns as early as possible.

From the sinks backwards, the columns that every node reads of its inputs are determined: a sink, a user's function and
the consumer of a side output read all. Nodes that pass columns on (a filter, a projection, a union) are narrowed to
those that are read downstream, so a filter copies no column that only its condition reads. Results, state, uids and the
user's view of the streams do not change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard, cast

import pyarrow as pa

from workbench.operators.contract.base import ReadsColumns
from workbench.operators.contract.conforming import conforms
from workbench.operators.contract.narrowing import NarrowsColumns, kept_schema
from workbench.plan.logical import Input, LogicalGraph, Node


def pruned(graph: LogicalGraph) -> LogicalGraph:
    """The same graph with narrowed operators.

    Example:
        Of ``source.filter("kind = 'view'").key_by("ad").aggregate(n=count())`` with the columns ``ad``, ``kind`` and
        ``time``, the filter emits only ``ad``.
    """
    kept = _kept(graph)
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        if not node.inputs:
            made[node] = node  # a source emits all of its columns
            continue
        spec, schema, inputs = node.spec, node.schema, node.inputs
        changed = any(made[item.node] is not item.node for item in inputs)
        if changed:
            inputs = tuple(replace(item, node=made[item.node]) for item in inputs)
        if _narrows(spec):
            # Also if all columns are kept but not all of them arrive: a replaced column keeps its place.
            unread = any(len(_read(graph, node, item, kept[node])) < len(item.schema) for item in node.inputs)
            if changed or unread or len(kept[node]) < len(schema):
                spec = spec.narrowed(kept[node])
                schema = spec.output_schema([item.schema for item in inputs])
        elif getattr(spec, "late_tag", None) not in (None, *graph.used_tags(node)):
            spec = replace(cast(Any, spec), late_tag=None)  # without a consumer, late records count as dropped
        same = spec is node.spec and not changed
        made[node] = node if same else replace(node, spec=spec, inputs=inputs, schema=schema)
    return LogicalGraph(tuple(made.values()), {made[node]: uid for node, uid in graph.uids.items()})


def travelling(graph: LogicalGraph, item: Input, reader: Node) -> pa.Schema:
    """The columns of an input that `reader`, a node of a pruned graph, reads: those that an exchange must carry."""
    return kept_schema(item.schema, _read(graph, reader, item, tuple(reader.schema.names)))


def _kept(graph: LogicalGraph) -> dict[Node, tuple[str, ...]]:
    """The columns of each node's main output that are read, in their order; at least one."""
    read: dict[Node, set[str]] = {node: set() for node in graph.nodes}
    kept: dict[Node, tuple[str, ...]] = {}
    for node in reversed(graph.nodes):  # readers come before their inputs
        wanted = read[node] or {_narrowest(node.schema)}
        kept[node] = tuple(name for name in node.schema.names if name in wanted)
        for item in node.inputs:
            if item.tag is None:
                read[item.node] |= _read(graph, node, item, kept[node])
    return kept


def _read(graph: LogicalGraph, reader: Node, item: Input, kept: tuple[str, ...]) -> frozenset[str]:
    """The columns of `item` that `reader` reads to emit the columns `kept`; at least one."""
    every = frozenset(item.schema.names)
    if item.exchange == "custom" or graph.used_tags(reader):
        return every  # a partitioner reads what travels; side outputs pass records on
    spec = reader.spec
    names = spec.columns_needed(kept) if _narrows(spec) else spec.columns_read() if _reads(spec) else None
    if names is None:
        return every
    return every.intersection(names.union(item.keys)) or frozenset({_narrowest(item.schema)})


def _narrows(spec: object) -> TypeGuard[NarrowsColumns]:
    return conforms(spec, NarrowsColumns)


def _reads(spec: object) -> TypeGuard[ReadsColumns]:
    return conforms(spec, ReadsColumns)


def _narrowest(schema: pa.Schema) -> str:
    """The cheapest column: a batch without columns would have no length."""
    fixed = [field for field in schema if pa.types.is_primitive(field.type)]
    return str(min(fixed, key=lambda field: field.type.bit_width).name if fixed else schema.names[0])
