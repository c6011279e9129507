"""Count windows: windows over the positions of a key's records (F1-6, F1-8, F1-10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from workbench.arguments import whole_number
from workbench.elements import Int64s
from workbench.windows.assigner import Assigned, Bounds, WindowAssigner
from workbench.windows.sliding import Sliding, check_overlap


@dataclass(frozen=True, slots=True)
class CountWindows(WindowAssigner):
    """The windows [k * slide, k * slide + length) over the positions of a key's records, k = 0, 1, ...

    A window is complete with its last record, and fires then; windows that are incomplete when the input ends are not
    emitted. Positions count the key's records in the order of arrival, from 0; time is not involved.

    Attributes:
        length: number of records in a window, above zero.
        slide: number of records between starts, above zero.
    """

    bounds: ClassVar[Bounds] = "position"
    needs_times: ClassVar[bool] = False
    length: int
    slide: int

    def __post_init__(self) -> None:
        for name, value in (("length", self.length), ("slide", self.slide)):
            object.__setattr__(self, name, whole_number(value, f"the {name} of a count window"))
        check_overlap(self.length, self.slide, self.describe())

    def windows(self, position: int) -> list[tuple[int, int]]:
        """The windows of one position, the earliest first.

        Example:
            >>> CountWindows(4, 3).windows(3)
            [(0, 4), (3, 7)]
        """
        return [window for window in Sliding(self.length, self.slide).windows(position) if window[0] >= 0]

    def assign(self, positions: Int64s) -> Assigned:
        """The windows of each position."""
        rows, starts, ends = Sliding(self.length, self.slide).assign(positions)
        real = starts >= 0
        return rows[real], starts[real], ends[real]

    def layout(self) -> str:
        """All parameters: with others, the records of one window would be in two."""
        return self.describe()

    def describe(self) -> str:
        """Such as ``count 4`` or ``count 4 every 3``."""
        return f"count {self.length}" + (f" every {self.slide}" if self.slide != self.length else "")


def count_tumbling(length: int) -> CountWindows:
    """Windows of `length` records of a key, without overlap.

    ``window_start`` and ``window_end`` of the results are positions among the key's records, int64.

    Source: F1-6, F1-10; Flink's ``countWindow``.

    Args:
        length: records in a window.

    Raises:
        SettingError: a length that is not a whole number above zero.

    Example:
        >>> count_tumbling(4).describe()
        'count 4'
    """
    return CountWindows(length, length)


def count_sliding(length: int, slide: int) -> CountWindows:
    """Windows of `length` records of a key that start every `slide` records.

    ``window_start`` and ``window_end`` of the results are positions among the key's records, int64.

    Source: F1-8; Flink's ``countWindow``.

    Args:
        length: number of records in a window.
        slide: number of records between starts.

    Raises:
        SettingError: a length or slide that is not a whole number above zero.

    Example:
        >>> count_sliding(4, 3).describe()
        'count 4 every 3'
    """
    return CountWindows(length, slide)
