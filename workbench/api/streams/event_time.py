"""Turns arguments about event time, at a source or after an operator, into a strategy."""

from __future__ import annotations

from collections.abc import Callable

from workbench.api.streams.building import expression, operator_node
from workbench.durations import Duration, parse_duration
from workbench.errors import PlanError, SettingError
from workbench.expressions import Expression, column_name
from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.operators.event_time.watermarks import (
    INGESTION,
    Bounded,
    Custom,
    EventTime,
    EventTimeColumn,
    Ingestion,
    WatermarkGenerator,
    Watermarks,
)
from workbench.origin import Origin
from workbench.plan.logical import Input, Node
from workbench.plan.watermark_strategy import WatermarkStrategy

WatermarksLike = Watermarks | Callable[[], WatermarkGenerator] | None
"""A value from `wb.watermarks`, a subclass of `WatermarkGenerator`, or None for a bound."""


def timestamped(
    end: Input, event_time: str | Expression | EventTime, strategy: WatermarkStrategy, origin: Origin | None
) -> Node:
    """See `Stream.assign_timestamps`."""
    own = None if isinstance(event_time, EventTime) else expression(event_time, origin)
    spec = AssignTimestamps(own, strategy.watermarks, strategy.idle_after_us, origin)
    return operator_node(spec, (end,), origin)


def watermark_strategy(
    event_time: object,
    out_of_orderness: Duration,
    watermarks: WatermarksLike,
    idle_after: Duration | None,
    align: str | bool | None = True,
    max_drift: Duration | None = None,
) -> WatermarkStrategy:
    """The strategy for a user's arguments; see `Stream.from_table` and `Stream.assign_timestamps`.

    Raises:
        SettingError: an invalid duration, two kinds of watermarks, or half of an alignment.
        PlanError: an argument about event time without an event-time column.
    """
    bound_us = parse_duration(out_of_orderness, "out_of_orderness")
    idle_us = None if idle_after is None else parse_duration(idle_after, "idle_after")
    group = align if isinstance(align, str) else None
    about = {"out_of_orderness": bound_us or None, "watermarks": watermarks, "idle_after": idle_after, "align": group}
    given = [name for name, value in about.items() if value is not None]
    if event_time is None and given:
        verb = "is" if len(given) == 1 else "are"
        raise PlanError(f"{' and '.join(given)} {verb} about event time: name its column with event_time=...")
    if bound_us and watermarks is not None:
        raise SettingError("out_of_orderness and watermarks both define the watermarks: leave one of them out")
    if event_time is INGESTION and (bound_us or watermarks is not None or group is not None):
        raise SettingError(
            "ingestion times are never out of order, and sources cannot be aligned by them: leave out "
            "out_of_orderness, watermarks and align"
        )
    if (group is not None and max_drift is None) or (max_drift is not None and not align):
        raise SettingError(
            "align names a group, and max_drift says how far ahead in it a source may be: pass both or neither"
        )
    drift_us = None if max_drift is None else parse_duration(max_drift, "max_drift")
    policy = Ingestion() if event_time is INGESTION else _policy(bound_us, watermarks)
    return WatermarkStrategy(policy, idle_us, group, drift_us, bool(align))


def event_time_column(event_time: EventTimeColumn) -> str | None:
    """The column from which a source's reader takes event times."""
    return None if event_time is None or isinstance(event_time, EventTime) else column_name(event_time, "event_time")


def _policy(bound_us: int, watermarks: WatermarksLike) -> Watermarks:
    if watermarks is None:
        return Bounded(bound_us)
    if hasattr(watermarks, "describe") and hasattr(watermarks, "create"):
        return watermarks
    if callable(watermarks):
        return Custom(watermarks)
    raise SettingError(
        f"watermarks is {watermarks!r}: pass wb.watermarks.monotonous(), wb.watermarks.punctuated('column') or a"
        " subclass of wb.watermarks.WatermarkGenerator"
    )
