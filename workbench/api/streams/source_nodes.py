"""The start of streams: the nodes of sources in the logical graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from workbench.api.streams.building import located, operator_node
from workbench.api.streams.changelogs import check_names
from workbench.api.streams.event_time import WatermarksLike, watermark_strategy
from workbench.arguments import as_given
from workbench.connectors.contract.base import Source
from workbench.connectors.live.hybrid_source import HybridSource
from workbench.connectors.replay.log import ReplayLog
from workbench.durations import Duration
from workbench.errors import HistoryError, PlanError
from workbench.operators.contract.usable_columns import check_usable
from workbench.operators.functions.dead_letters import keeps_dead_letters, side_schemas
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller
from workbench.plan.logical import Input, Node

if TYPE_CHECKING:
    from workbench.spark.history import History


def source_input(
    source: Source,
    event_time: object,
    out_of_orderness: Duration,
    watermarks: WatermarksLike,
    idle_after: Duration | None,
    align: str | bool | None,
    max_drift: Duration | None,
    parallelism: int | None = None,
) -> Input:
    """The records of a source, with the user's line in its errors; for the arguments see `watermark_strategy`.

    Raises:
        PlanError: not a source, it has no columns, two of one name or times in an unknown time zone, or its event time
            does not fit the strategy.
        SettingError: an invalid duration.
    """
    strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after, align, max_drift)
    origin = caller()
    if not isinstance(source, Source):
        raise PlanError(
            f"source is {as_given(source)}: pass a connector, or an object of your own subclass of Source",
            origin=origin,
        )
    if not len(source.schema):
        raise PlanError(f"the {source.kind} has no columns: give it at least one", origin=origin)
    tells = source.event_time is not None or strategy.by_ingestion
    check_usable(source.schema, f"the {source.kind}", origin)
    with located(origin):
        check_names(source.schema, (), source)
        strategy.watermarks.create(source.schema)
    letters = side_schemas(source.on_error) if keeps_dead_letters(source) else {}
    told = strategy if tells else None
    if (follows := source.completed_by) is None:
        return Input(Node(source, (), source.schema, letters, told, origin, parallelism=parallelism))
    node = Node(source, (), source.schema, letters, told, origin, parallelism=1)
    return Input(replace(operator_node(follows, (Input(node),), origin), parallelism=1))


def hybrid_input(history: object, live: object) -> Input:
    """The records of a source that combines two.

    Raises:
        PlanError: one of them is not a source, or they differ in columns or in their watermarks.
    """
    origin = caller()
    nodes: list[Node] = []
    for name, given in (("history", history), ("live", live)):
        if not isinstance(given, Input):
            raise PlanError(f"{name} is {as_given(given)}: pass hybrid two source streams", origin=origin)
        if given.node.role != "source":
            raise PlanError(
                f"{name} already has an operator: pass hybrid the two sources, and apply the operators to its result",
                origin=origin,
            )
        nodes.append(given.node)
    told = [None if node.watermarks is None else node.watermarks.watermarks for node in nodes]
    if told[0] != told[1]:
        ways = ["not defined" if policy is None else policy.describe() for policy in told]
        raise PlanError(
            f"the event time of the history is {ways[0]} and that of the live source {ways[1]}: define it in the same "
            "way in both",
            origin=origin,
        )
    with located(origin):
        source = HybridSource(*(cast("Source", node.spec) for node in nodes))
    return Input(Node(source, (), source.schema, side_schemas(source.on_error), nodes[1].watermarks, origin))


def source_schema(schema: SchemaLike) -> pa.Schema:
    """The schema that a user declared for a source."""
    return declared_schema(schema, "the source", caller())


def opened_log(history: History | ReplayLog | str | Path) -> ReplayLog:
    """The replay log of a history.

    Raises:
        HistoryError: it is not a history, or there is no log at that path.
    """
    if isinstance(history, ReplayLog):
        return history
    if isinstance(history, str | Path):
        return ReplayLog.open(history)
    if not isinstance(log := getattr(history, "log", None), ReplayLog):
        raise HistoryError(
            f"history is {as_given(history)}: pass a wb.History, or the path of one; wb.History.from_arrow makes one "
            "from a table, and wb.Stream.from_table streams a table as it is"
        )
    return log
