"""The start of streams: the nodes of sources in the logical graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from workbench.api.streams.building import located
from workbench.arguments import as_given
from workbench.connectors.contract.base import Source
from workbench.connectors.live.hybrid_source import HybridSource
from workbench.connectors.replay.log import ReplayLog
from workbench.errors import HistoryError, PlanError
from workbench.operators.functions.dead_letters import keeps_dead_letters, side_schemas
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.origin import caller
from workbench.plan.logical import Input, Node
from workbench.plan.watermark_strategy import WatermarkStrategy

if TYPE_CHECKING:
    from workbench.spark.history import History


def source_input(source: Source, strategy: WatermarkStrategy, parallelism: int | None = None) -> Input:
    """The records of a source, with the user's line in its errors.

    Raises:
        PlanError: it has no columns, or its event time does not fit the strategy.
    """
    origin = caller()
    if not len(source.schema):
        raise PlanError(f"the {source.kind} has no columns: give it at least one", origin=origin)
    tells = source.event_time is not None or strategy.by_ingestion
    with located(origin):
        strategy.watermarks.create(source.schema)
    letters = side_schemas(source.on_error) if keeps_dead_letters(source) else {}
    watermarks = strategy if tells else None
    return Input(Node(source, (), source.schema, letters, watermarks, origin, parallelism=parallelism))


def hybrid_input(history: Node, live: Node) -> Input:
    """The records of a source that combines two.

    Raises:
        PlanError: one of them is not a source, or they differ in columns or in their watermarks.
    """
    origin = caller()
    for name, node in (("history", history), ("live", live)):
        if node.role != "source":
            raise PlanError(
                f"{name} already has an operator: pass hybrid the two sources, and apply the operators to its result",
                origin=origin,
            )
    told = [None if node.watermarks is None else node.watermarks.watermarks for node in (history, live)]
    if told[0] != told[1]:
        ways = ["not defined" if policy is None else policy.describe() for policy in told]
        raise PlanError(
            f"the event time of the history is {ways[0]} and that of the live source {ways[1]}: define it in the same "
            "way in both",
            origin=origin,
        )
    with located(origin):
        source = HybridSource(cast("Source", history.spec), cast("Source", live.spec))
    return Input(Node(source, (), source.schema, side_schemas(source.on_error), live.watermarks, origin))


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
