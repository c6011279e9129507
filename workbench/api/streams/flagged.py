"""Rows with flags of their own, such as I, U and D, become a changelog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.api.streams.building import located, operator_node
from workbench.api.streams.grouped import key_names
from workbench.api.streams.joining import by_keys
from workbench.arguments import as_given
from workbench.errors import PlanError
from workbench.expressions import ColumnName, column_name, column_names
from workbench.operators.changelogs.keyed_changes import KeyedChanges
from workbench.operators.functions.dead_letters import OnError
from workbench.origin import Origin
from workbench.plan.logical import Input, Node


def flagged_rows(
    end: Input,
    key: ColumnName | Sequence[ColumnName],
    op: ColumnName,
    kinds: Mapping[object, str] | None,
    on_error: OnError,
    origin: Origin | None,
) -> Node:
    """See `Stream.as_changelog`."""
    with located(origin):
        keys = key_names(column_names(key, "as_changelog"), "as_changelog", end.schema, origin)
        if not keys:
            raise PlanError("as_changelog has no key: name the columns that identify a row, such as as_changelog('id')")
        if kinds is not None and (not isinstance(kinds, Mapping) or not kinds):
            raise PlanError(f"kinds is {as_given(kinds)}: give the meaning of each flag, {{'N': '+I', 'X': '-D'}}")
        meanings = () if kinds is None else tuple(kinds.items())
        spec = KeyedChanges(keys, column_name(op, "op"), meanings, on_error, origin)
    return operator_node(spec, (by_keys(end, keys),), origin)
