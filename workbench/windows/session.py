"""Session windows: records of a key without a long gap between them (F1-9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from workbench.durations import MAX_TIME, format_duration, parse_duration
from workbench.errors import SettingError
from workbench.expressions import ColumnName, column_name
from workbench.windows.assigner import WindowAssigner


@dataclass(frozen=True, slots=True)
class Session(WindowAssigner):
    """Each record opens the window [time, time + gap); windows of a key that overlap or touch are merged.

    So records exactly one gap apart belong to the same session, and a session ends one gap after its last record. It
    fires
    when the watermark has reached its end, one microsecond later than windows that do not touch: until then a record at
        the end itself may arrive and extend it, and whether it does must not depend on when watermarks arrive.

    Attributes:
        gap_us: in microseconds, above zero; 0 if `column` is set.
        column: a column with each record's gap, a duration or whole microseconds above zero; None: `gap_us`.
    """

    gap_us: int = 0
    column: str | None = None

    def __post_init__(self) -> None:
        if self.column is None and self.gap_us <= 0:
            raise SettingError(f"the session gap is {format_duration(self.gap_us)}: it must be longer than zero")

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        """The window that a record opens, before it is merged with others."""
        return [(time_us, time_us + self.gap_us)]

    def reached(self, watermark_us: int) -> int:
        """One microsecond behind the watermark, except at the end of the input."""
        return watermark_us if watermark_us == MAX_TIME else watermark_us - 1

    def layout(self) -> str:
        """``session``: an open session may continue with another gap."""
        return "session"

    def describe(self) -> str:
        """Such as ``session 30min``."""
        return f"session {format_duration(self.gap_us) if self.column is None else f'by {self.column}'}"


def session(gap: str | timedelta | None = None, *, column: ColumnName | None = None) -> Session:
    """Windows that end when a key has been silent for a certain time.

    Source: F1-9; Flink's session windows.

    Args:
        gap: the time, such as ``"30min"``.
        column: instead, a column with the time for each record: a duration, or whole microseconds.

    Raises:
        SettingError: a gap that is not above zero, or not exactly one of `gap` and `column`.

    Example:
        >>> session("30min").describe(), session(column="patience").describe()
        ('session 30min', 'session by patience')
    """
    if (gap is None) == (column is None):
        raise SettingError("session() takes either a gap or a column: write session('30min') or session(column='gap')")
    name = None if column is None else column_name(column, "session")
    return Session(0 if gap is None else parse_duration(gap, "session gap"), name)
