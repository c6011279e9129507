"""The rules of changelogs in a pipeline: which operators read them, by which key, and which sinks accept them."""

from __future__ import annotations

from dataclasses import replace

from workbench.connectors.contract.base import Sink
from workbench.errors import PlanError
from workbench.expressions import plain_name
from workbench.operators.changelogs.row_kinds import MakesChanges, TakesChanges
from workbench.operators.contract.base import OperatorSpec
from workbench.operators.contract.conforming import conforms
from workbench.operators.stateless.filter import Filter
from workbench.operators.stateless.select import Select
from workbench.operators.stateless.with_columns import WithColumns
from workbench.origin import Origin
from workbench.plan.logical import Input, Node


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
    if end.tag is not None or not node.inputs:
        return None
    if conforms(spec, MakesChanges):
        assert isinstance(spec, MakesChanges)
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
    return conforms(node.spec, MakesChanges) or _is_spread_by(node.inputs[0], key)
