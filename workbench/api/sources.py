"""Where streams begin: the class methods of `Stream` that make one from a source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from workbench.connectors.base import Source
from workbench.connectors.generator_source import GeneratorSource
from workbench.connectors.replay_log import ReplayLog
from workbench.connectors.replay_source import ReplaySource
from workbench.connectors.table_source import TableSource
from workbench.durations import parse_duration, parse_speed
from workbench.operators.user_function import SchemaLike
from workbench.operators.watermarks import Bounded
from workbench.origin import caller
from workbench.plan.logical import Node
from workbench.plan.watermark_strategy import WatermarkStrategy

if TYPE_CHECKING:
    from workbench.spark.history import History


class StreamSources:
    """The sources; `Stream` inherits them."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @classmethod
    def replay(
        cls,
        history: History | ReplayLog | str | Path,
        *,
        speed: str | float = "max",
        out_of_orderness: str = "0s",
        idle_after: str | None = None,
    ) -> Self:
        """Replay a history: its records come in the order, and at a multiple of the pace, in which they arrived.

        Args:
            history: a `History`, an open replay log, or the path of one (no JVM is needed).
            speed: seconds of history per second (``"600x"``), or ``"max"``; a running job can be tuned.
            out_of_orderness: how much later than a record with a later event time a record may come; the watermark
                stays that far behind the largest event time seen on each channel.
            idle_after: a channel without records for so long (of the clock) no longer holds the watermark back.

        Raises:
            SettingError: a bad speed or duration.
            HistoryError: no replay log at that path.
        """
        log = _open_log(history)
        return cls._source(ReplaySource(log, parse_speed(speed)), out_of_orderness, idle_after)

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        *,
        event_time: str | None = None,
        out_of_orderness: str = "0s",
        rate: float | None = None,
        idle_after: str | None = None,
    ) -> Self:
        """Stream the rows of an Arrow table in order.

        Args:
            table: the rows.
            event_time: column that carries event time, or None.
            out_of_orderness, idle_after: as for `replay`.
            rate: records per second over all subtasks; None for full speed.
        """
        return cls._source(TableSource(table, event_time=event_time, rate=rate), out_of_orderness, idle_after)

    @classmethod
    def from_generator(
        cls,
        function: Callable[[int, int], pa.RecordBatch],
        schema: SchemaLike,
        *,
        event_time: str | None = None,
        out_of_orderness: str = "0s",
        rate: float | None = None,
        limit: int | None = None,
        idle_after: str | None = None,
    ) -> Self:
        """Stream what a function computes: ``function(first, n)`` gives the `n` rows that start with row `first`.

        Args:
            function: deterministic, so that a recovery reads the same rows again.
            schema: of the rows.
            event_time, out_of_orderness, rate, idle_after: as for `from_table`.
            limit: number of rows; None for a stream without end.
        """
        fields = schema if isinstance(schema, pa.Schema) else pa.schema(list(schema.items()))
        source = GeneratorSource(function, fields, event_time=event_time, rate=rate, limit=limit)
        return cls._source(source, out_of_orderness, idle_after)

    @classmethod
    def _source(cls, spec: Source, out_of_orderness: str, idle_after: str | None) -> Self:
        strategy = WatermarkStrategy(
            Bounded(parse_duration(out_of_orderness, "out_of_orderness")),
            None if idle_after is None else parse_duration(idle_after, "idle_after"),
        )
        watermarks = strategy if spec.event_time is not None else None
        return cls(Node(spec, (), spec.schema, {}, watermarks, caller()))


def _open_log(history: History | ReplayLog | str | Path) -> ReplayLog:
    if isinstance(history, ReplayLog):
        return history
    if isinstance(history, str | Path):
        return ReplayLog.open(Path(history))
    return history.log
