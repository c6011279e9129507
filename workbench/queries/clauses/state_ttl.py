"""The time-to-live of state: SET 'state_ttl' for a script, and the hint STATE_TTL for one SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sqlglot import exp

from workbench.api.streams.stream import Stream
from workbench.durations import parse_duration
from workbench.errors import QueryError, SettingError, unknown
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.expiring import Expires
from workbench.operators.contract.conforming import conforms
from workbench.plan.logical import Node
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Relation

_NAMES = ("state_ttl", "table.exec.state.ttl")


def setting(tree: Tree, text: Text) -> int:
    """The microseconds of ``SET 'state_ttl' = '1 d'``, which Flink calls ``table.exec.state.ttl``.

    Raises:
        QueryError: an unknown setting, or not a duration.
    """
    item = tree.expressions[0].this if len(tree.expressions) == 1 else None
    if not isinstance(item, exp.EQ):
        raise text.error(tree, "SET takes one setting: write SET 'state_ttl' = '1 d'")
    name = str(item.this.name)
    if name.lower() not in _NAMES:
        raise text.error(item, f"{unknown('setting', name, _NAMES)}; others are options of run(...) and of the cell")
    return _duration(item.expression, lambda message: text.error(item, message))


def hinted(hint: Tree | None, tables: Iterable[str], text: Text) -> int | None:
    """The microseconds of ``SELECT /*+ STATE_TTL('a' = '1d', 'b' = '2d') */``; None: there is no hint.

    Args:
        hint: the hint of the SELECT.
        tables: the names in FROM.
        text: the query, for errors.

    Raises:
        QueryError: another hint, an unknown table, or a table without a time.
    """
    if hint is None:
        return None
    at = text.sql.find("/*+")  # the parser has no positions for parts of a hint

    def refused(message: str) -> QueryError:
        return text.error_at(at, at + 2, message)

    given: dict[str, int] = {}
    for call in hint.expressions:
        if not (isinstance(call, exp.Anonymous) and call.name.upper() == "STATE_TTL"):
            raise refused("the hint is not supported: the only one is STATE_TTL('table' = '1d')")
        for item in call.expressions:
            if not isinstance(item, exp.EQ):
                raise refused("STATE_TTL takes tables and times: write STATE_TTL('orders' = '1d')")
            name = next((table for table in tables if table.lower() == str(item.this.name).lower()), None)
            if name is None:
                raise refused(unknown("table", str(item.this.name), tables))
            given[name] = _duration(item.expression, refused)
    if missing := [table for table in tables if table not in given]:
        raise refused(f"STATE_TTL has no time for {missing[0]}, so its state would grow forever: add one")
    return max(given.values())


def _duration(value: Tree, refused: Callable[[str], QueryError]) -> int:
    try:
        us = parse_duration(str(value.name), "state_ttl")
    except SettingError as error:
        raise refused(error.message) from None
    if not us:
        raise refused("state_ttl is 0: it must be above zero; remove it to keep state forever")
    return us


def limited(rows: Relation, ttl_us: int | None, tables: Iterable[Relation]) -> Relation:
    """Set a time-to-live for the operators of a query that have none yet.

    Args:
        rows: the result of a query.
        ttl_us: the time; None: nothing changes.
        tables: the inputs of the query, which stay unchanged.
    """
    if ttl_us is None or rows.stream is None:
        return rows
    made = {table.records._end.node: table.records._end.node for table in tables if table.stream is not None}

    def limit(node: Node) -> Node:
        if node not in made:
            inputs = tuple(replace(item, node=limit(item.node)) for item in node.inputs)
            spec = node.spec
            if conforms(spec, Expires) and isinstance(spec, Expires) and spec.ttl_us is None:
                spec = replace(spec, ttl_us=ttl_us)  # type: ignore[type-var]
            same = spec is node.spec and all(a.node is b.node for a, b in zip(inputs, node.inputs, strict=True))
            made[node] = node if same else replace(node, spec=spec, inputs=inputs)
        return made[node]

    end = rows.records._end
    node = limit(end.node)
    return rows if node is end.node else replace(rows, stream=Stream(replace(end, node=node), rows.records._hidden))
