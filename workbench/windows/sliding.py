"""Sliding windows: windows of one size that start at equal intervals, so that they may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import gcd

import numpy as np

from workbench.durations import format_duration, parse_duration
from workbench.elements import Int64s
from workbench.errors import SettingError
from workbench.windows.assigner import Assigned, WindowAssigner

_OVERLAPPING_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Sliding(WindowAssigner):
    """The windows [offset + k * slide, offset + k * slide + size) for every whole k.

    A slide longer than the size leaves gaps: records in a gap belong to no window.

    Attributes:
        size_us: length of a window in microseconds, above zero.
        slide_us: distance from one start to the next, above zero.
        offset_us: where the windows are anchored, from 0 to below slide_us.
    """

    size_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        for name, value in (("size", self.size_us), ("slide", self.slide_us)):
            if value <= 0:
                raise SettingError(f"the window {name} is {format_duration(value)}: it must be longer than zero")
        if not 0 <= self.offset_us < self.slide_us:
            raise SettingError(
                f"the window offset is {format_duration(self.offset_us)}: it must be at least zero and shorter than "
                f"the slide, {format_duration(self.slide_us)}"
            )
        check_overlap(self.size_us, self.slide_us, self.describe())

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        """The windows of one time, the earliest first.

        Example:
            >>> Sliding(10, 4).windows(9)
            [(0, 10), (4, 14), (8, 18)]
        """
        last = time_us - (time_us - self.offset_us) % self.slide_us
        starts = range(last, time_us - self.size_us, -self.slide_us)
        return [(start, start + self.size_us) for start in reversed(starts)]

    def assign(self, times: Int64s) -> Assigned:
        """The windows of each time, the earliest first."""
        most = -(-self.size_us // self.slide_us)
        last = times - (times - self.offset_us) % self.slide_us
        starts = (last[:, None] - np.arange(most - 1, -1, -1) * self.slide_us).ravel()
        rows = np.repeat(np.arange(len(times)), most)
        if self.size_us % self.slide_us:
            inside = starts + self.size_us > times[rows]
            rows, starts = rows[inside], starts[inside]
        return rows, starts, starts + self.size_us

    @property
    def pane_us(self) -> int:
        """The longest interval within which all times belong to the same windows."""
        return gcd(self.size_us, self.slide_us)

    def panes(self, times: Int64s) -> Int64s:
        """Shape (n,): the start of the pane that each time belongs to."""
        return times - (times - self.offset_us) % self.pane_us

    def layout(self) -> str:
        """All parameters: with others, the records of one window would be in two."""
        return self.describe()

    def describe(self) -> str:
        """Such as ``sliding 1h every 10min``."""
        offset = f" from {format_duration(self.offset_us)}" if self.offset_us else ""
        return f"sliding {format_duration(self.size_us)} every {format_duration(self.slide_us)}{offset}"


def check_overlap(size: int, slide: int, window: str) -> None:
    """Reject windows that overlap so much that the windows of a record do not fit into memory.

    Args:
        size, slide: of the windows, both above zero.
        window: description for the error.

    Raises:
        SettingError: with the number of windows of a record.
    """
    overlapping = -(-size // slide)
    if overlapping > _OVERLAPPING_MAX:
        raise SettingError(
            f"{window}: a record would belong to {overlapping:,} windows; choose a longer slide, so that it belongs to"
            f" at most {_OVERLAPPING_MAX:,}"
        )


def sliding(size: str | timedelta, slide: str | timedelta, offset: str | timedelta = "0s") -> Sliding:
    """Windows of one size that start every `slide`.

    Source: F1-8; Flink's sliding windows.

    Args:
        size: length of a window, such as ``"1h"``.
        slide: the interval between starts, such as ``"10min"``: a record then belongs to six windows.
        offset: shifts all windows, such as ``"5min"``.

    Raises:
        SettingError: a size or slide that is not above zero, or an offset that is not shorter than the slide.

    Example:
        >>> sliding("1h", "10min").describe()
        'sliding 1h every 10min'
    """
    return Sliding(
        parse_duration(size, "window size"),
        parse_duration(slide, "window slide"),
        parse_duration(offset, "window offset"),
    )
