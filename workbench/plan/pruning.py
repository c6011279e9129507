"""Leaving out columns that nobody reads, as early as they can be left out.

From the sinks backwards, every node says which columns of its inputs it reads: a sink, a user's function and whoever
takes a side output read all. What passes columns on (a filter, a projection, a union) is narrowed to those that are
read behind it, so a filter copies no column that only its condition looks at. Results, state, uids and what a person
sees of the streams are the same.
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
        ``time``, the filter gives ``ad`` alone.
    """
    kept = _kept(graph)
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        if not node.inputs:
            made[node] = node  # a source gives what it has
            continue
        spec, schema, inputs = node.spec, node.schema, node.inputs
        changed = any(made[item.node] is not item.node for item in inputs)
        if changed:
            inputs = tuple(replace(item, node=made[item.node]) for item in inputs)
        if _narrows(spec):
            # Also where all is kept, if not all of it comes: a column that is replaced keeps its place.
            unread = any(len(_read(graph, node, item, kept[node])) < len(item.schema) for item in node.inputs)
            if changed or unread or len(kept[node]) < len(schema):
                spec = spec.narrowed(kept[node])
                schema = spec.output_schema([item.schema for item in inputs])
        elif getattr(spec, "late_tag", None) not in (None, *graph.used_tags(node)):
            spec = replace(cast(Any, spec), late_tag=None)  # nobody takes the late records: they count as dropped
        same = spec is node.spec and not changed
        made[node] = node if same else replace(node, spec=spec, inputs=inputs, schema=schema)
    return LogicalGraph(tuple(made.values()), {made[node]: uid for node, uid in graph.uids.items()})


def travelling(graph: LogicalGraph, item: Input, reader: Node) -> pa.Schema:
    """The columns of an input that `reader`, a node of a pruned graph, reads: what an exchange has to carry."""
    return kept_schema(item.schema, _read(graph, reader, item, tuple(reader.schema.names)))


def _kept(graph: LogicalGraph) -> dict[Node, tuple[str, ...]]:
    """The columns of each node's main output that something reads, in their order; at least one."""
    read: dict[Node, set[str]] = {node: set() for node in graph.nodes}
    kept: dict[Node, tuple[str, ...]] = {}
    for node in reversed(graph.nodes):  # readers come before what they read
        wanted = read[node] or {_narrowest(node.schema)}
        kept[node] = tuple(name for name in node.schema.names if name in wanted)
        for item in node.inputs:
            if item.tag is None:
                read[item.node] |= _read(graph, node, item, kept[node])
    return kept


def _read(graph: LogicalGraph, reader: Node, item: Input, kept: tuple[str, ...]) -> frozenset[str]:
    """The columns of `item` that `reader` reads to give the columns `kept`; at least one."""
    every = frozenset(item.schema.names)
    if item.exchange == "custom" or graph.used_tags(reader):
        return every  # a partitioner looks at what travels; side outputs pass records on
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
    """The column that costs least: a batch without columns would have no length."""
    fixed = [field for field in schema if pa.types.is_primitive(field.type)]
    return str(min(fixed, key=lambda field: field.type.bit_width).name if fixed else schema.names[0])
