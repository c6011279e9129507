"""Tumbling windows: consecutive windows of equal size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from workbench.durations import format_duration, parse_duration
from workbench.elements import Int64s
from workbench.errors import SettingError
from workbench.windows.assigner import Assigned, WindowAssigner


@dataclass(frozen=True, slots=True)
class Tumbling(WindowAssigner):
    """The windows [offset + k * size, offset + (k + 1) * size) for every whole k, including negative ones.

    Attributes:
        size_us: length of a window in microseconds, above zero.
        offset_us: where the windows are anchored, from 0 to below size_us.
    """

    size_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        if self.size_us <= 0:
            raise SettingError(f"the window size is {format_duration(self.size_us)}: it must be longer than zero")
        if not 0 <= self.offset_us < self.size_us:
            raise SettingError(
                f"the window offset is {format_duration(self.offset_us)}: it must be at least zero and shorter than "
                f"the window size, {format_duration(self.size_us)}"
            )

    def window_start(self, time_us: int) -> int:
        """The start of the window that `time_us` belongs to.

        Example:
            >>> Tumbling(10).window_start(-1)
            -10
        """
        return time_us - (time_us - self.offset_us) % self.size_us

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        """The one window."""
        start = self.window_start(time_us)
        return [(start, start + self.size_us)]

    def panes(self, times: Int64s) -> Int64s:
        """Shape (n,): the start of the window that each time belongs to."""
        starts: Int64s = times - (times - self.offset_us) % self.size_us
        return starts

    def assign(self, times: Int64s) -> Assigned:
        """The one window of each time."""
        starts = self.panes(times)
        return np.arange(len(times)), starts, starts + self.size_us

    def layout(self) -> str:
        """All parameters: with others, the records of one window would be in two."""
        return self.describe()

    def describe(self) -> str:
        """Such as ``tumbling 1h`` or ``tumbling 1d from 6h``."""
        offset = f" from {format_duration(self.offset_us)}" if self.offset_us else ""
        return f"tumbling {format_duration(self.size_us)}{offset}"


def tumbling(size: str | timedelta, offset: str | timedelta = "0s") -> Tumbling:
    """Windows of one size that follow each other without gap or overlap.

    Source: F1-7; Flink's tumbling windows.

    Args:
        size: length of a window, such as ``"1h"``.
        offset: shifts all windows, such as ``"6h"`` for days that begin at six o'clock (UTC).

    Raises:
        SettingError: a size that is not above zero, or an offset that is not shorter than the size.

    Example:
        >>> tumbling("1h")
        Tumbling(size_us=3600000000, offset_us=0)
    """
    return Tumbling(parse_duration(size, "window size"), parse_duration(offset, "window offset"))
