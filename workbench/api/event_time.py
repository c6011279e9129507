"""What people say about event time, at a source or behind an operator, as a strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.api.building import expression, operator_node
from workbench.durations import parse_duration
from workbench.errors import PlanError, SettingError
from workbench.expressions import Expression
from workbench.operators.timestamps import AssignTimestamps
from workbench.operators.watermarks import (
    INGESTION,
    Bounded,
    Custom,
    EventTime,
    EventTimeColumn,
    Ingestion,
    WatermarkGenerator,
    Watermarks,
)
from workbench.origin import caller
from workbench.plan.logical import ExchangeKind, Input, Node
from workbench.plan.watermark_strategy import WatermarkStrategy

if TYPE_CHECKING:
    from workbench.api.stream import Stream

WatermarksLike = Watermarks | Callable[[], WatermarkGenerator] | None
"""``wb.monotonous()``, ``wb.punctuated(...)``, a subclass of `WatermarkGenerator`, or None for a bound."""


class StreamEventTime:
    """What changes event time behind a source; `Stream` inherits it."""

    if TYPE_CHECKING:
        schema: pa.Schema

        def _input(self, exchange: ExchangeKind | None = None, keys: tuple[str, ...] = ()) -> Input: ...

        def _derived(self, node: Node) -> Stream: ...

    def assign_timestamps(
        self,
        event_time: str | Expression | EventTime,
        *,
        out_of_orderness: str = "0s",
        watermarks: WatermarksLike = None,
        idle_after: str | None = None,
    ) -> Stream:
        """Give the records new event times, and tell event time anew from here on.

        Watermarks of the input end here, only the one at its end goes on.

        Source: F2-5; Flink's ``assignTimestampsAndWatermarks``.

        Args:
            event_time: a column or expression (timestamp, date or int64 microseconds), or ``wb.INGESTION`` for the
                time at which a record comes here. Null means none, and what is more than 2**61 microseconds (73,000
                years) from 1970 fails the job: ``"nullif(valid_until, 9223372036854775807)"`` makes null of what
                stands for ever.
            out_of_orderness: how much later than a record with a later event time a record may come, such as ``"5s"``.
            watermarks: instead of that bound, ``wb.monotonous()``, ``wb.punctuated(...)`` or a
                `wb.WatermarkGenerator`.
            idle_after: a subtask without records for so long (of the clock), such as ``"10s"``, no longer holds event
                time back; say it where some subtasks may get no records.

        Raises:
            ExpressionError: the event time is no time, or does not fit the columns.
            SettingError: a bad duration, or two ways to tell the watermarks.

        Example:
            >>> import pyarrow as pa, workbench as wb
            >>> stream = wb.Stream.from_table(pa.table({"landed": pa.array([0], pa.timestamp("us"))}))
            >>> stream.assign_timestamps("landed", out_of_orderness="5s").columns
            ['landed']
        """
        origin = caller()
        own = None if isinstance(event_time, EventTime) else expression(event_time, origin)
        strategy = watermark_strategy(event_time, out_of_orderness, watermarks, idle_after)
        spec = AssignTimestamps(own, strategy.watermarks, strategy.idle_after_us, origin)
        return self._derived(operator_node(spec, (self._input(),), origin))


def watermark_strategy(
    event_time: object,
    out_of_orderness: str,
    watermarks: WatermarksLike,
    idle_after: str | None,
    align: str | None = None,
    max_drift: str | None = None,
) -> WatermarkStrategy:
    """The strategy for what a person wrote; see `Stream.from_table` and `Stream.assign_timestamps`.

    Raises:
        SettingError: a bad duration, two ways to tell the watermarks, or half of an alignment.
        PlanError: something about event time where there is none.
    """
    bound_us = parse_duration(out_of_orderness, "out_of_orderness")
    idle_us = None if idle_after is None else parse_duration(idle_after, "idle_after")
    about = {"out_of_orderness": bound_us or None, "watermarks": watermarks, "idle_after": idle_after, "align": align}
    given = [name for name, value in about.items() if value is not None]
    if event_time is None and given:
        verb = "is" if len(given) == 1 else "are"
        raise PlanError(f"{' and '.join(given)} {verb} about event time: name its column with event_time=...")
    if bound_us and watermarks is not None:
        raise SettingError("out_of_orderness and watermarks are two ways to tell event time: leave one of them out")
    if event_time is INGESTION and (bound_us or watermarks is not None or align is not None):
        raise SettingError(
            "the time of reading never goes back and is no other source's: leave out out_of_orderness, watermarks"
            " and align"
        )
    if (align is None) != (max_drift is None):
        raise SettingError("align names a group and max_drift how far a source may be ahead in it: give both or none")
    drift_us = 0 if max_drift is None else parse_duration(max_drift, "max_drift")
    policy = Ingestion() if event_time is INGESTION else _policy(bound_us, watermarks)
    return WatermarkStrategy(policy, idle_us, align, drift_us)


def event_time_column(event_time: EventTimeColumn) -> str | None:
    """The column that a source's reader takes event times from."""
    return None if isinstance(event_time, EventTime) else event_time


def _policy(bound_us: int, watermarks: WatermarksLike) -> Watermarks:
    if watermarks is None:
        return Bounded(bound_us)
    if hasattr(watermarks, "describe") and hasattr(watermarks, "create"):
        return watermarks
    if callable(watermarks):
        return Custom(watermarks)
    raise SettingError(
        f"watermarks is {watermarks!r}: pass wb.monotonous(), wb.punctuated('column') or a subclass of"
        " wb.WatermarkGenerator"
    )
