"""Where records go: the entries of their windows, an *entry* being one window of one key.

Entries are numbered from 0 in the order of their first record. Windows that are over keep their numbers until all is
packed anew; no record reaches them any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.elements import Int64s
from workbench.kernels import number_rows
from workbench.operators.window_columns import EntryColumns
from workbench.state.key_table import KeyTable
from workbench.windows import CountWindows, WindowAssigner

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the records of a batch go: pairs of a record and an entry, in the order of the records.

    Attributes:
        rows: shape (pairs,), the record of each pair; None: each record has exactly one, in order.
        entries, starts, ends: shape (pairs,), its entry and the bounds of that window as of then.
        late: shape (n,), the records whose windows are all closed; None: no record is late.
        moves: shape (m, 3): before pair ``moves[j, 0]`` was placed, entry ``moves[j, 2]`` became part of
            ``moves[j, 1]`` (sessions that a record connects).
    """

    rows: Int64s | None
    entries: Int64s
    starts: Int64s
    ends: Int64s
    late: Mask | None = None
    moves: Int64s = field(default_factory=lambda: np.empty((0, 3), np.int64))

    def of_rows(self, values: Int64s) -> Int64s:
        """What is known per record, per pair."""
        return values if self.rows is None else values[self.rows]


class Places(Protocol):
    """Finds the entries of records.

    Attributes:
        keeps_keys: whether something is known of a key for as long as the job runs.
    """

    keeps_keys: bool

    def __len__(self) -> int:
        """How many entries there are."""
        ...

    def place(self, keys: Int64s, times: Int64s | None, closed_end: int, batch: pa.RecordBatch | None) -> Placement:
        """The entries of these records; new ones are added.

        Args:
            keys: shape (n,), key codes.
            times: shape (n,), of the records, all real; None where windows need none.
            closed_end: windows in time that end here or earlier are closed.
            batch: the records themselves.
        """
        ...

    def windows(self) -> tuple[Int64s, Int64s, Int64s]:
        """The key code, start and end of every entry."""
        ...

    def add(self, keys: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
        """Entries for these windows of keys, as a snapshot knew them."""
        ...

    def retain(self, entries: Int64s, codes: Int64s) -> None:
        """Keep only these entries; ``entries[i]`` becomes entry i, and ``codes[k]`` is the new code of key k."""
        ...

    def full(self, entries: Int64s) -> Int64s:
        """Those of these that no further record can reach, whatever the time."""
        ...

    def key_state(self) -> dict[str, pa.Array]:
        """What is known of every key, by its code; only where ``keeps_keys``."""
        ...

    def load_keys(self, keys: Int64s, table: pa.Table) -> None:
        """Take over what ``key_state`` gave."""
        ...


class TimePlaces:
    """Windows that follow from a record's time alone."""

    keeps_keys = False

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
        instants = np.zeros(len(keys), np.int64) if times is None else times
        rows, starts, ends = self._assigner.assign(instants)
        is_open = ends > closed_end
        late = None
        if not is_open.all():
            in_some, in_open = np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.bool_)
            in_some[rows] = True
            rows, starts, ends = rows[is_open], starts[is_open], ends[is_open]
            in_open[rows] = True
            late = in_some & ~in_open
        return Placement(rows, self.add(keys[rows], starts, ends), starts, ends, late)

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

    def full(self, entries: Int64s) -> Int64s:
        return entries[:0]

    def key_state(self) -> dict[str, pa.Array]:
        return {}

    def load_keys(self, keys: Int64s, table: pa.Table) -> None:
        """There is nothing per key."""


class CountPlaces(TimePlaces):
    """Windows over the positions of a key's records; how many a key has had is kept for as long as the job runs."""

    keeps_keys = True

    def __init__(self, assigner: CountWindows) -> None:
        super().__init__(assigner)
        self._keys = EntryColumns({"seen": 0})  # by key code
        self._known = 0

    def place(self, keys: Int64s, times: Int64s | None, closed_end: int, batch: pa.RecordBatch | None) -> Placement:
        self._know(keys)
        positions = np.empty(len(keys), np.int64)
        number_rows(keys, self._keys["seen"], positions)
        rows, starts, ends = self._assigner.assign(positions)
        return Placement(rows, self.add(keys[rows], starts, ends), starts, ends)

    def _know(self, keys: Int64s) -> None:
        self._known = max(self._known, int(keys.max(initial=-1)) + 1)
        self._keys.grow(self._known)

    def full(self, entries: Int64s) -> Int64s:
        keys, _, ends = self.windows()
        return entries[ends[entries] <= self._keys["seen"][keys[entries]]]

    def key_state(self) -> dict[str, pa.Array]:
        return self._keys.arrow(np.arange(self._known))

    def load_keys(self, keys: Int64s, table: pa.Table) -> None:
        self._know(keys)
        self._keys.load(keys, table)
