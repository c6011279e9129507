"""What a frame tells of the event times that an operator has seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PointFrame:
    """A sampled record.

    Attributes:
        time_us: processing time at which it came.
        event_time_us: its event time.
        behind_us: where it was read, how far behind the largest event time so far of its split; where it was late, how
            far behind the end of its last window, allowed lateness included (below 0: not known).
        fate: ``"in time"`` where it was read; ``"updated"`` (its window fired again), ``"side output"`` or
            ``"dropped"`` at a window.
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
        results: rows that it gave: one for each key.
        values: the first of them, as text.
    """

    start_us: int
    end_us: int
    time_us: int
    results: int
    values: str


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """A window that still takes records: in event time, with how many groups (of more than 4,096 about so many), and
    whether it has fired before."""

    start_us: int
    end_us: int
    groups: int
    fired: bool


@dataclass(frozen=True, slots=True)
class EventTimesFrame:
    """What one operator of a task has seen since its attempt began; points and firings only since the last frame.

    Attributes:
        operator: its uid.
        records: that came in.
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
