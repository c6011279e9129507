"""The rules of changelogs in a pipeline: which operators read them, by which key, and which sinks accept them; and the
names of columns that only the engine uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from workbench.connectors.contract.base import Sink, Source
from workbench.connectors.tables.part_log import EPOCH
from workbench.durable.delayed_encoding import GONE
from workbench.errors import PlanError
from workbench.expressions import plain_name
from workbench.operators.aggregates.preaggregated import RECORDS
from workbench.operators.changelogs.row_kinds import FIELD, KIND, GivesChanges, TakesChanges, is_changelog
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.contract.conforming import conforms
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.with_columns import WithColumns
from workbench.origin import Origin
from workbench.plan.acking import IDS
from workbench.plan.logical import Input, Node
from workbench.runtime.exchange.in_flight import TIMES

ENGINE_NAMES = frozenset({KIND, RECORDS, TIMES, EPOCH.name, GONE.name, *(field.name for field in IDS)})
"""Columns that the engine adds to records, on their way or in its files."""


def check_names(made: pa.Schema, inputs: Sequence[pa.Schema], spec: OperatorSpec | Source) -> None:
    """Reject columns with the names of the engine's own, which would be mistaken for them.

    Args:
        made: the columns that an operator or a source emits.
        inputs: those that the operator reads.
        spec: the operator, or the source.

    Raises:
        PlanError: names the column.
    """
    key = changelog_key(spec)
    taken = [name for name in made.names if name in ENGINE_NAMES]
    if not taken:
        return
    if _gives_kinds(made, inputs, spec, key is not None):
        taken.remove(KIND)
    if taken:
        advice = "; rows with flags of their own become a changelog with as_changelog(...)" if KIND in taken else ""
        raise PlanError(f"a column is named {taken[0]!r}, which the engine uses itself: choose another name{advice}")


def _gives_kinds(made: pa.Schema, inputs: Sequence[pa.Schema], spec: OperatorSpec | Source, declared: bool) -> bool:
    """Whether a column of that name is the one of the kinds: of a changelog that passes through, or is made here."""
    if not is_changelog(made):
        return False
    if isinstance(spec, Select | WithColumns) and any(
        name == KIND and plain_name(value) != KIND for name, value in spec.columns
    ):
        return False
    ours = conforms(spec, GivesChanges) or any(map(is_changelog, inputs)) or declared
    return ours and made.field(made.names.index(KIND)).type == FIELD.type


def changelog_key(spec: object) -> tuple[str, ...] | None:
    """The key of a source whose rows are changes; None: they are only added, or this is no source.

    Raises:
        PlanError: the source has no column of the kinds, or lacks a column of the key.
    """
    key = spec.changelog_key if isinstance(spec, Source) else None
    if key is None:
        return None
    assert isinstance(spec, Source)
    if not is_changelog(spec.schema):
        raise PlanError(f"the {spec.kind} gives changes, but has no column {KIND!r} for their kinds: add it as int8")
    for name in key:
        if name not in spec.schema.names:
            raise PlanError(f"the {spec.kind} has the key {', '.join(key)}, but no column {name!r}: add it")
    return tuple(key)


def check_takes_changes(spec: OperatorSpec) -> None:
    """Reject an operator that would take changes for new records.

    Raises:
        PlanError: names the operator and the nearest way.
    """
    if not conforms(spec, TakesChanges):
        raise PlanError(
            f"{spec.kind} cannot follow a changelog, whose rows replace and remove earlier ones: use it before the "
            "groups, top rows or joins that change their results, or aggregate in a window"
        )


def upsert_key(end: Input) -> tuple[str, ...] | None:
    """The columns that identify a row of a changelog, all of whose changes come from one subtask in their order.

    Returns:
        None: rows have no such columns, or the records are only added.
    """
    node, spec = end.node, end.node.spec
    if end.tag is not None:
        return None
    if not node.inputs:
        return changelog_key(spec) or None
    if conforms(spec, GivesChanges):
        assert isinstance(spec, GivesChanges)
        return spec.upsert_key([upsert_key(item) for item in node.inputs], [item.schema for item in node.inputs])
    key = upsert_key(node.inputs[0])
    if key is None or not isinstance(spec, Filter | Select | WithColumns):
        return None
    if isinstance(spec, Filter):
        return key
    computed = {plain_name(value): name for name, value in reversed(spec.columns)}
    if isinstance(spec, WithColumns):
        replaced = {name for name, value in spec.columns if plain_name(value) != name}
        computed |= {name: name for name in key if name not in replaced}
    return tuple(computed[name] for name in key) if set(key) <= set(computed) else None


def in_order(end: Input) -> Input:
    """A changelog as the input of an operator: all changes of a key go to one subtask, so they stay in their order.

    Another exchange than by the key, or the one that a planner chooses for another parallelism, would let a change
    overtake the one before it.
    """
    key = upsert_key(end)
    if not key or end.exchange in ("hash", "broadcast"):
        return end
    if end.exchange in (None, "forward"):
        return replace(end, keys=key)
    return replace(end, exchange="hash", keys=key, partitioner=None)


def changelog_sink_node(sink: Sink, end: Input, origin: Origin | None) -> Node:
    """The sink of a changelog, by whose key the rows are spread.

    Raises:
        PlanError: the sink cannot take back or replace rows.
    """
    key = upsert_key(end)
    taking = sink.for_changes(key, end.schema)
    taking.check(end.schema)
    if key and not _is_spread_by(end, key):
        end = replace(end, exchange="hash", keys=key, partitioner=None)
    return Node(taking, (end,), end.schema, {}, None, origin)


def _is_spread_by(end: Input, key: tuple[str, ...]) -> bool:
    """Whether all changes of a key come from one subtask without another exchange."""
    node = end.node
    if end.exchange not in (None, "forward") or node.parallelism is not None:
        return False
    return conforms(node.spec, GivesChanges) or (bool(node.inputs) and _is_spread_by(node.inputs[0], key))
