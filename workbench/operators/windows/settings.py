"""The settings of windows apart from what they compute, with their checks and the logic that they select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import pyarrow as pa

from workbench.durations import format_duration
from workbench.elements import Records
from workbench.errors import ExpressionError, PlanError, SettingError, unknown
from workbench.operators.windows.columns import TIME
from workbench.operators.windows.counts import CountPlaces
from workbench.operators.windows.firing import Firing, ScheduledFiring
from workbench.operators.windows.places import Places, TimePlaces
from workbench.operators.windows.scripted import ScriptedFiring, runs_at
from workbench.operators.windows.sessions import SessionPlaces
from workbench.windows import Evictor, WindowAssigner
from workbench.windows.count import CountWindows
from workbench.windows.schedule import AT_END, Schedule, TimeKind
from workbench.windows.session import Session
from workbench.windows.sliding import Sliding
from workbench.windows.trigger import Trigger


@dataclass(frozen=True)
class WindowSettings:
    """The windows, their time, when they fire, and what they keep.

    Attributes:
        window: determines the windows of a record.
        time: a record's time: its event time, or the clock's when it arrives at the window.
        allowed_lateness_us: how long after its end an event-time window accepts records.
        trigger: when windows fire.
        evictor: which records of a window stay when it fires; None: all.

    Raises:
        SettingError: inconsistent settings.
    """

    window: WindowAssigner
    time: TimeKind = "event"
    allowed_lateness_us: int = 0
    trigger: Schedule | Trigger = AT_END
    evictor: Evictor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.window, WindowAssigner):
            raise SettingError(f"the window is {self.window!r}: write for example wb.tumbling('1h')")
        if self.time not in get_args(TimeKind):
            raise SettingError(unknown("time of a window", self.time, get_args(TimeKind)))
        if not isinstance(self.trigger, Schedule | Trigger):
            raise SettingError(f"the trigger is {self.trigger!r}: write for example wb.triggers.early('1min')")
        if self.evictor is not None and not isinstance(self.evictor, Evictor):
            raise SettingError(f"the evictor is {self.evictor!r}: write for example wb.windows.keep_last(100)")
        if self.allowed_lateness_us < 0:
            raise SettingError(f"allowed_lateness is {self.allowed_lateness_us}us: a duration cannot be negative")
        if self.allowed_lateness_us and (self.time == "processing" or self.window.bounds != "time"):
            kind = "processing time" if self.window.bounds == "time" else f"{self.window.describe()} windows"
            raise SettingError(
                f"allowed_lateness is {format_duration(self.allowed_lateness_us)}, but nothing is late in {kind}: "
                "leave it out"
            )
        if self.time == "processing" and isinstance(self.trigger, Schedule) and self.trigger.end == "event":
            raise SettingError(
                "windows of processing time cannot wait for event time: leave out the trigger 'on event time', or the "
                "time 'processing'"
            )
        if self.window.bounds == "position" and isinstance(self.trigger, Schedule) and self.trigger.end in _TIMES:
            raise SettingError(
                f"{self.window.describe()} windows end with a record, not at a time: leave out the trigger "
                f"'{self.trigger.describe()}', or use wb.triggers.on_count() or wb.triggers.early()"
            )

    def bounds(self) -> list[pa.Field]:
        """The fields ``window_start`` and ``window_end``, if such windows have them."""
        if self.window.bounds == "none":
            return []
        kind = TIME if self.window.bounds == "time" else pa.int64()
        return [pa.field("window_start", kind), pa.field("window_end", kind)]

    def columns_read(self) -> frozenset[str]:
        """The columns that windows and evictor read."""
        gap = {self.window.column} if isinstance(self.window, Session) and self.window.column is not None else set()
        return frozenset(gap | set(() if self.evictor is None else self.evictor.columns))

    def check(self, schema: pa.Schema) -> None:
        """Reject records without the columns that windows and evictor read.

        Raises:
            ExpressionError: a column does not exist.
            PlanError: a gap that is not a number of microseconds.
        """
        for name in sorted(self.columns_read()):
            if name not in schema.names:
                raise ExpressionError(f"{self.describe()}: {unknown('column', name, schema.names)}")
        if isinstance(self.window, Session) and self.window.column is not None:
            kind = schema.field(self.window.column).type
            if not (pa.types.is_duration(kind) or pa.types.is_integer(kind)):
                raise PlanError(
                    f"the session gap {self.window.column!r} has type {kind}: make it a duration or whole microseconds"
                )

    def layout(self) -> str:
        """What must be the same when windows resume from a checkpoint, such as ``tumbling 1h``."""
        return self.window.layout() + (" processing-time" if self.time == "processing" else "")

    def describe(self) -> str:
        """Such as ``tumbling 1h, lateness 5s``."""
        parts = [self.window.describe()]
        if self.time == "processing":
            parts.append("processing time")
        if self.allowed_lateness_us:
            parts.append(f"lateness {format_duration(self.allowed_lateness_us)}")
        parts.append(self.trigger.describe())
        if self.evictor is not None:
            parts.append(self.evictor.describe())
        return ", ".join(part for part in parts if part)

    @property
    def takes_panes(self) -> bool:
        """Whether records can be folded before they are added to windows, because none is used individually."""
        return (
            isinstance(self.window, Sliding)
            and self.window.slide_us < self.window.size_us
            and isinstance(self.trigger, Schedule)
            and self.trigger.records is None
            and (self.trigger.every_us is None or self.trigger.every_in == "processing")
        )

    def sees_watermarks(self) -> bool:
        """Whether results show which records that are not late came before a watermark: windows that end are over for
        all of these records, but other firings are between them."""
        trigger = self.trigger
        return isinstance(trigger, Trigger) or (trigger.every_us is not None and trigger.every_in == "event")

    def apart(self, parts: list[tuple[Records, int]]) -> list[tuple[Records, int]]:
        """Parts of a batch, each with its watermark, cut where a user's trigger may act between two records."""
        if not isinstance(self.trigger, Trigger):
            return parts
        return [(run, watermark_us) for part, watermark_us in parts for run in runs_at(part, watermark_us)]

    def places(self) -> Places:
        """Create the logic that finds the entries of records."""
        if isinstance(self.window, Session):
            return SessionPlaces(self.window)
        return CountPlaces(self.window) if isinstance(self.window, CountWindows) else TimePlaces(self.window)

    def firing(self) -> Firing:
        """Create the logic that decides when windows fire."""
        if isinstance(self.trigger, Trigger):
            end_in = self.time if self.window.bounds == "time" else None
            return ScriptedFiring(self.trigger, end_in, self.allowed_lateness_us)
        schedule = self.trigger
        records = schedule.records
        if isinstance(self.window, CountWindows):
            if schedule.end == "window":
                records = self.window.length
            return ScheduledFiring(schedule, None, records)
        end: dict[str, TimeKind | None] = {"window": self.time, "never": None}
        return ScheduledFiring(schedule, end[schedule.end] if schedule.end in end else _TIMES[schedule.end], records)


_TIMES: dict[str, TimeKind] = {"event": "event", "processing": "processing"}
