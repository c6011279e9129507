"""Frames of the event times at an operator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PointFrame:
    """A sampled record.

    Attributes:
        time_us: processing time at which it arrived.
        event_time_us: its event time.
        behind_us: at a source, how far it is behind the largest event time of its split so far; at a window, how far
            behind the end of its last window, including allowed lateness (below 0: not known).
        fate: at a source ``"in time"``; at a window ``"updated"`` (its window fired again), ``"side output"`` or
            ``"dropped"``.
    """

    time_us: int
    event_time_us: int
    behind_us: int
    fate: str


@dataclass(frozen=True, slots=True)
class FiredFrame:
    """A window that fired.

    Attributes:
        start_us, end_us: in event time.
        time_us: processing time at which it fired.
        results: the number of rows that it emitted, one for each key.
        values: the first rows, as text.
    """

    start_us: int
    end_us: int
    time_us: int
    results: int
    values: str


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """A window that still accepts records: its bounds in event time, its number of groups (an estimate above 4,096),
    and whether it has fired before."""

    start_us: int
    end_us: int
    groups: int
    fired: bool


@dataclass(frozen=True, slots=True)
class EventTimesFrame:
    """The event times at one operator of a task since its attempt began; points and firings only since the last frame.

    Attributes:
        operator: its uid.
        records: the number of records received.
        examined, disorder, bound_us, dropped, aside, updated, shortfalls: see
            `workbench.operators.contract.event_times.EventTimes`.
        points: sampled records.
        fired, open: windows.
    """

    operator: str
    records: int
    examined: int = 0
    disorder: tuple[int, ...] = ()
    bound_us: int | None = None
    dropped: int = 0
    aside: int = 0
    updated: int = 0
    shortfalls: tuple[int, ...] = ()
    points: tuple[PointFrame, ...] = ()
    fired: tuple[FiredFrame, ...] = ()
    open: tuple[OpenFrame, ...] = ()
