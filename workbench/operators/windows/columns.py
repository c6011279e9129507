"""Arrays with one place per window entry: the data that places and triggers keep of a key's window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.durations import LATEST_TIME
from workbench.elements import Int64s
from workbench.operators.snapshots.pieces import column_in

TIME = pa.timestamp("us", tz="UTC")
"""The type of a window's bounds in time."""


def time_of_results(ends: Int64s) -> Int64s:
    """Shape (windows,): the event times of the results of windows in event time.

    A window that ends after the latest event time fires when the input ends, or early; its results have the latest
    time.

    Args:
        ends: shape (windows,), in microseconds since 1970.

    Example:
        >>> time_of_results(np.array([60_000_000])).tolist()
        [59999999]
    """
    times: Int64s = np.minimum(ends, LATEST_TIME + 1) - 1
    return times


class EntryColumns:
    """Named arrays of one length, indexed by entry, with room to grow.

    Args:
        starts: the value that each column has for a new entry; its type is the column's.

    Example:
        >>> columns = EntryColumns({"pending": False, "seen": 0})
        >>> columns.grow(2)
        >>> columns["seen"][1] = 7
        >>> {name: column.to_pylist() for name, column in columns.arrow(np.array([1])).items()}
        {'pending': [False], 'seen': [7]}
    """

    __slots__ = ("_arrays", "_starts")

    def __init__(self, starts: Mapping[str, bool | int]) -> None:
        self._starts = dict(starts)
        self._arrays: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(0, np.bool_ if isinstance(start, bool) else np.int64) for name, start in starts.items()
        }

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The array itself; ``grow`` and ``retain`` replace it."""
        return self._arrays[name]

    def __len__(self) -> int:
        return min(map(len, self._arrays.values()), default=0)

    def grow(self, entries: int) -> None:
        """Make room for entries 0 to entries - 1."""
        for name, array in self._arrays.items():
            if entries > len(array):
                larger = np.full(max(entries, 2 * len(array)), self._starts[name], array.dtype)
                larger[: len(array)] = array
                self._arrays[name] = larger

    def reset(self, entries: Int64s) -> None:
        """Reset these entries to their start values."""
        for name, array in self._arrays.items():
            array[entries] = self._starts[name]

    def retain(self, entries: Int64s) -> None:
        """Keep only these; ``entries[i]`` becomes entry i."""
        for name, array in self._arrays.items():
            self._arrays[name] = array[entries]

    def arrow(self, entries: Int64s) -> dict[str, pa.Array]:
        """A copy of these entries' values as Arrow columns."""
        return {name: pa.array(array[entries]) for name, array in self._arrays.items()}

    def load(self, entries: Int64s, table: pa.Table) -> None:
        """Restore what ``arrow`` returned.

        Raises:
            ValueError: a column is of another type, or has a null.
        """
        for name, array in self._arrays.items():
            array[entries] = column_in(table, name, pa.from_numpy_dtype(array.dtype))
