"""Cumulative windows: windows of one start that grow step by step, up to a maximum size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from workbench.durations import format_duration, parse_duration
from workbench.elements import Int64s
from workbench.errors import SettingError
from workbench.windows.assigner import Assigned, WindowAssigner
from workbench.windows.sliding import check_overlap


@dataclass(frozen=True, slots=True)
class Cumulative(WindowAssigner):
    """The windows [start, start + n * step) for n from 1 to size / step, where start = offset + k * size.

    Attributes:
        size_us: the longest window in microseconds, a multiple of step_us.
        step_us: by how much a window is longer than the one before it, above zero.
        offset_us: where the windows are anchored, from 0 to below size_us.
    """

    size_us: int
    step_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        for name, value in (("size", self.size_us), ("step", self.step_us)):
            if value <= 0:
                raise SettingError(f"the window {name} is {format_duration(value)}: it must be longer than zero")
        if self.size_us % self.step_us:
            raise SettingError(
                f"the window size is {format_duration(self.size_us)}: it must be a multiple of the step, "
                f"{format_duration(self.step_us)}"
            )
        if not 0 <= self.offset_us < self.size_us:
            raise SettingError(
                f"the window offset is {format_duration(self.offset_us)}: it must be at least zero and shorter than "
                f"the window size, {format_duration(self.size_us)}"
            )
        check_overlap(self.size_us, self.step_us, self.describe())

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        """The windows of one time, the shortest first.

        Example:
            >>> Cumulative(12, 4).windows(5)
            [(0, 8), (0, 12)]
        """
        within = (time_us - self.offset_us) % self.size_us
        start = time_us - within
        first = within // self.step_us + 1
        return [(start, start + n * self.step_us) for n in range(first, self.size_us // self.step_us + 1)]

    def assign(self, times: Int64s) -> Assigned:
        """The windows of each time, the shortest first."""
        most = self.size_us // self.step_us
        within = (times - self.offset_us) % self.size_us
        counts = most - within // self.step_us
        rows = np.repeat(np.arange(len(times)), counts)
        last = np.repeat(np.cumsum(counts), counts) - np.arange(len(rows)) - 1  # windows of the row after this one
        starts = (times - within)[rows]
        return rows, starts, starts + (most - last) * self.step_us

    def panes(self, times: Int64s) -> Int64s:
        """Shape (n,): the start of the step that each time belongs to."""
        steps: Int64s = times - (times - self.offset_us) % self.step_us
        return steps

    def layout(self) -> str:
        """All parameters: with others, the records of one window would be in two."""
        return self.describe()

    def describe(self) -> str:
        """Such as ``cumulative 1d every 1h``."""
        offset = f" from {format_duration(self.offset_us)}" if self.offset_us else ""
        return f"cumulative {format_duration(self.size_us)} every {format_duration(self.step_us)}{offset}"


def cumulative(size: str | timedelta, step: str | timedelta, offset: str | timedelta = "0s") -> Cumulative:
    """Windows that begin together and end one after the other: the day so far, at the end of each hour.

    Source: Flink's ``CUMULATE``.

    Args:
        size: length of the longest window, such as ``"1d"``, a multiple of the step.
        step: the interval between the ends of windows with one start, such as ``"1h"``.
        offset: shifts all windows, such as ``"6h"``.

    Raises:
        SettingError: a size or step that is not above zero, a size that is not a multiple of the step, or an offset
            that is not shorter than the size.

    Example:
        >>> cumulative("1d", "1h").describe()
        'cumulative 1d every 1h'
    """
    return Cumulative(
        parse_duration(size, "window size"),
        parse_duration(step, "window step"),
        parse_duration(offset, "window offset"),
    )
