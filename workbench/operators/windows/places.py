"""The places of records: the entries of their windows, an *entry* being one window of one key.

Entries are numbered from 0 in the order of their first record. Windows that are over keep their numbers until
everything is packed; no record reaches them any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Mask
from workbench.state.key_table import KeyTable
from workbench.windows import WindowAssigner


@dataclass(frozen=True, slots=True)
class Placement:
    """The entries of the records of a batch: pairs of a record and an entry, in the order of the records.

    Attributes:
        rows: shape (pairs,), the record of each pair; None: each record has exactly one, in order.
        entries, starts, ends: shape (pairs,), its entry and the bounds of that window at that point.
        late: shape (n,), the records whose windows are all closed; None: no record is late.
        moves: shape (m, 3): before pair ``moves[j, 0]`` was placed, entry ``moves[j, 2]`` was merged into ``moves[j,
            1]`` (sessions that a record connects).
    """

    rows: Int64s | None
    entries: Int64s
    starts: Int64s
    ends: Int64s
    late: Mask | None = None
    moves: Int64s = field(default_factory=lambda: np.empty((0, 3), np.int64))

    def of_rows(self, values: Int64s) -> Int64s:
        """Values per record, repeated per pair."""
        return values if self.rows is None else values[self.rows]


class Places(Protocol):
    """Finds the entries of records.

    Attributes:
        keeps_keys: whether data about a key is kept while the job runs.
    """

    keeps_keys: bool = False

    def __len__(self) -> int:
        """The number of entries."""

    def place(self, keys: Int64s, times: Int64s | None, closed_end: int, batch: pa.RecordBatch | None) -> Placement:
        """The entries of these records; new ones are added.

        Args:
            keys: shape (n,), key codes.
            times: shape (n,), of the records, all real; None where windows need none.
            closed_end: time windows that end here or earlier are closed.
            batch: the records themselves.
        """

    def windows(self) -> tuple[Int64s, Int64s, Int64s]:
        """The key code, start and end of every entry."""

    def add(self, keys: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
        """Add entries for these windows of keys from a snapshot."""

    def retain(self, entries: Int64s, codes: Int64s) -> None:
        """Keep only these entries; ``entries[i]`` becomes entry i, and ``codes[k]`` is the new code of key k."""

    def full(self, entries: Int64s) -> Int64s:
        """Those of these entries that no further record can reach, at any time; each once."""
        return entries[:0]

    def key_state(self) -> dict[str, pa.Array]:
        """The data about every key, by its code; only where ``keeps_keys``."""
        return {}

    def load_keys(self, keys: Int64s, table: pa.Table) -> None:
        """Restore what ``key_state`` returned."""
        raise AssertionError("nothing is kept of keys")


class TimePlaces(Places):
    """Windows that are determined by a record's time alone."""

    def __init__(self, assigner: WindowAssigner) -> None:
        self._assigner = assigner
        self._clear()

    def _clear(self) -> None:
        self._starts, self._ends = KeyTable(), KeyTable()
        self._windows = KeyTable()  # codes of a start and an end -> window code
        self._entries = KeyTable()  # codes of a window and a key -> entry

    def __len__(self) -> int:
        return len(self._entries)

    def place(self, keys: Int64s, times: Int64s | None, closed_end: int, batch: pa.RecordBatch | None) -> Placement:
        n = len(keys)
        panes = KeyTable()
        pane_of = panes.codes(self._assigner.panes(np.zeros(n, np.int64) if times is None else times))
        pane, starts, ends = self._assigner.assign(panes.keys())  # few, if many records share their windows
        late: Mask | None = None
        is_open = ends > closed_end
        if not is_open.all():
            had = np.bincount(pane, minlength=len(panes)) > 0
            pane, starts, ends = pane[is_open], starts[is_open], ends[is_open]
            late = (had & (np.bincount(pane, minlength=len(panes)) == 0))[pane_of]
        windows = self._windows.codes(self._starts.codes(starts) << 32 | self._ends.codes(ends))
        if len(pane) == len(panes) and np.array_equal(pane, np.arange(len(pane))):  # each record has one window
            return Placement(None, self._entries.codes(windows[pane_of] << 32 | keys), starts[pane_of], ends[pane_of])
        per_pane = np.bincount(pane, minlength=len(panes))
        rows, pairs = spread(pane_of, per_pane)
        entries = self._entries.codes(windows[pairs] << 32 | keys[rows])
        return Placement(rows, entries, starts[pairs], ends[pairs], late)

    def windows(self) -> tuple[Int64s, Int64s, Int64s]:
        both = self._entries.keys()
        bounds = self._windows.keys()[both >> 32]
        return both & 0xFFFFFFFF, self._starts.keys()[bounds >> 32], self._ends.keys()[bounds & 0xFFFFFFFF]

    def add(self, keys: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
        windows = self._windows.codes(self._starts.codes(starts) << 32 | self._ends.codes(ends))
        return self._entries.codes(windows << 32 | keys)

    def retain(self, entries: Int64s, codes: Int64s) -> None:
        keys, starts, ends = (column[entries] for column in self.windows())
        self._clear()
        self.add(codes[keys], starts, ends)


def spread(group_of: Int64s, sizes: Int64s) -> tuple[Int64s, Int64s]:
    """All members of each row's group: the rows, and the numbers of the members, both of shape (pairs,).

    Args:
        group_of: shape (n,).
        sizes: by group; the members of group g are numbered from the sum of the earlier sizes.

    Example:
        >>> spread(np.array([1, 0]), np.array([1, 2]))
        (array([0, 0, 1]), array([1, 2, 0]))
    """
    repeats = sizes[group_of]
    rows = np.repeat(np.arange(len(group_of)), repeats)
    before = np.cumsum(repeats) - repeats
    firsts = (np.cumsum(sizes) - sizes)[group_of]
    return rows, np.arange(len(rows)) - (before - firsts)[rows]
