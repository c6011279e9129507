"""The built-in triggers: data that describes when windows fire, so that all windows of a batch are decided at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from workbench.arguments import whole_number
from workbench.durations import format_duration, parse_duration
from workbench.errors import SettingError, unknown
from workbench.windows.trigger import Action, Trigger, TriggerContext
from workbench.windows.window import Window

TimeKind = Literal["event", "processing"]
End = Literal["window", "event", "processing", "never"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a window fires; each firing emits the result once.

    Attributes:
        end: at the window's end in event time, in processing time, in the time that its windows are made of
            (``"window"``), or ``"never"``. After that end, a batch with further records makes it fire once more.
        records: after this many further records; None: never.
        every_us: after this much time, if records have arrived since the last firing; None: never. The moments are
            whole multiples of it since 1970.
        every_in: the kind of time for `every_us`.
        purge: forget the window's records after each firing.
    """

    end: End = "window"
    records: int | None = None
    every_us: int | None = None
    every_in: TimeKind = "processing"
    purge: bool = False

    def __post_init__(self) -> None:
        if self.records is not None and whole_number(self.records, "on_count", 0) == 0:
            raise SettingError(f"on_count({self.records}): a window fires after at least one record")
        if self.every_us is not None and self.every_us <= 0:
            raise SettingError(f"the interval of early() is {format_duration(self.every_us)}: it must be above zero")

    def describe(self) -> str:
        """Such as ``early 1min`` or ``on count 100, purging``; empty for the default."""
        parts = []
        if self.end in ("event", "processing"):
            parts.append(f"on {self.end} time")
        if self.records is not None:
            parts.append(f"on count {self.records}")
        if self.every_us is not None:
            parts.append(f"early {format_duration(self.every_us)}")
        if self.purge:
            parts.append("purging")
        return ", ".join(parts)


AT_END = Schedule()
"""The default of windows: fire at their end."""


def on_event_time() -> Schedule:
    """Fire when the watermark passes the window's end: the default of event-time windows.

    Source: F1-12; Flink's ``EventTimeTrigger``.

    Example:
        >>> on_event_time().describe()
        'on event time'
    """
    return Schedule("event")


def on_processing_time() -> Schedule:
    """Fire when the clock passes the window's end: the default of processing-time windows.

    Source: F1-11; Flink's ``ProcessingTimeTrigger``.

    Example:
        >>> on_processing_time().describe()
        'on processing time'
    """
    return Schedule("processing")


def on_count(n: int) -> Schedule:
    """Fire after every `n` further records in a window, and at no other moment.

    Source: Flink's ``CountTrigger``.

    Args:
        n: number of records, above zero.

    Raises:
        SettingError: `n` is not above zero.

    Example:
        >>> purging(on_count(100)).describe()
        'on count 100, purging'
    """
    return Schedule("never", records=n)


def early(every: str | timedelta, time: TimeKind = "processing") -> Schedule:
    """Fire at the window's end, and before it repeatedly with the result so far, if there are new records.

    Source: Flink's ``ContinuousEventTimeTrigger`` and ``ContinuousProcessingTimeTrigger``.

    Args:
        every: such as ``"1min"``.
        time: ``"processing"`` by the clock, ``"event"`` by the watermark.

    Raises:
        SettingError: not a duration above zero, or an unknown time.

    Example:
        >>> early("1min").describe()
        'early 1min'
    """
    if time not in ("event", "processing"):
        raise SettingError(unknown("time", time, ["event", "processing"]))
    return Schedule(every_us=parse_duration(every, "the interval of early()"), every_in=time)


def purging(trigger: Schedule | Trigger) -> Schedule | Trigger:
    """The same trigger, but a window drops its records after each firing, so that each result covers new records only.

    Source: Flink's ``PurgingTrigger``.

    Args:
        trigger: for example ``wb.triggers.on_count(100)``, or your own `wb.triggers.Trigger`.

    Raises:
        SettingError: not a trigger.

    Example:
        >>> purging(early("10s", "event")).describe()
        'early 10s, purging'
    """
    if not isinstance(trigger, Schedule | Trigger):
        raise SettingError(f"purging({trigger!r}): pass a trigger, for example purging(on_count(100))")
    return replace(trigger, purge=True) if isinstance(trigger, Schedule) else _Purging(trigger)


@dataclass(frozen=True)
class _Purging(Trigger):
    """Lets another trigger decide, and purges after each firing."""

    trigger: Trigger

    def on_record(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        return _purged(self.trigger.on_record(time_us, window, context))

    def on_event_time(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        return _purged(self.trigger.on_event_time(time_us, window, context))

    def on_processing_time(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        return _purged(self.trigger.on_processing_time(time_us, window, context))

    def on_merge(self, window: Window, context: TriggerContext, absorbed: Sequence[TriggerContext]) -> None:
        self.trigger.on_merge(window, context, absorbed)

    def describe(self) -> str:
        return f"{self.trigger.describe()}, purging"


def _purged(action: Action | None) -> Action | None:
    return Action.FIRE_AND_PURGE if action is Action.FIRE else action
