"""One window, as user functions, triggers and evictors see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The half-open interval [start, end) of time, or of a key's records for count windows.

    Source: F1-7; Flink's ``TimeWindow``.

    Attributes:
        start: microseconds since 1970 in UTC; for count windows the position of the first record, from 0.
        end: the first time or position after the window.

    Example:
        >>> Window(0, 60_000_000).end_time.minute
        1
    """

    start: int
    end: int

    @property
    def start_time(self) -> datetime:
        """The start of a window in time (UTC).

        Example:
            >>> Window(0, 60_000_000).start_time.isoformat()
            '1970-01-01T00:00:00+00:00'
        """
        return _EPOCH + timedelta(microseconds=self.start)

    @property
    def end_time(self) -> datetime:
        """The end of a window in time (UTC), exclusive."""
        return _EPOCH + timedelta(microseconds=self.end)
