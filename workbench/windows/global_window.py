"""The global window: one window for all records of a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s
from workbench.windows.assigner import Assigned, Bounds, WindowAssigner


@dataclass(frozen=True, slots=True)
class GlobalWindow(WindowAssigner):
    """All records of a key in one window, which ends with the input; its results have no window columns."""

    bounds: ClassVar[Bounds] = "none"
    needs_times: ClassVar[bool] = False

    def windows(self, time_us: int) -> list[tuple[int, int]]:
        """The one window, from the beginning to the end of time."""
        return [(NO_TIME, MAX_TIME)]

    def panes(self, times: Int64s) -> Int64s:
        """Shape (n,): one time for all."""
        return np.zeros_like(times)

    def assign(self, times: Int64s) -> Assigned:
        """The one window for every row."""
        n = len(times)
        return np.arange(n), np.full(n, NO_TIME), np.full(n, MAX_TIME)

    def layout(self) -> str:
        """``global``: there is only one."""
        return self.describe()

    def describe(self) -> str:
        """``global``."""
        return "global"


def global_window() -> GlobalWindow:
    """One window per key; it fires when the input ends, or by its trigger.

    Source: Flink's ``GlobalWindows``.

    Example:
        >>> global_window().describe()
        'global'
    """
    return GlobalWindow()
