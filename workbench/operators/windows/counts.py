"""Windows over the positions of a key's records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from workbench.compiled import number_rows, warm_up
from workbench.elements import Int64s
from workbench.operators.snapshots.pieces import numbers_in
from workbench.operators.windows.columns import EntryColumns
from workbench.operators.windows.places import Placement, Places
from workbench.state.key_table import KeyTable
from workbench.windows.count import CountWindows


class CountPlaces(Places):
    """Finds the entries of records by their positions; the number of records per key is kept while the job runs."""

    keeps_keys = True

    def __init__(self, window: CountWindows) -> None:
        warm_up(number_rows)
        self._window = window
        self._entries = KeyTable()  # number of a window and key code -> entry
        self._keys = EntryColumns({"seen": 0})  # by key code
        self._known = 0

    def __len__(self) -> int:
        return len(self._entries)

    def place(self, keys: Int64s, times: Int64s | None, closed_end: int, batch: pa.RecordBatch | None) -> Placement:
        self._know(keys)
        positions = np.empty(len(keys), np.int64)
        number_rows(keys, self._keys["seen"], positions)
        rows, starts, ends = self._window.assign(positions)
        return Placement(rows, self.add(keys[rows], starts, ends), starts, ends)

    def _know(self, keys: Int64s) -> None:
        self._known = max(self._known, int(keys.max(initial=-1)) + 1)
        self._keys.grow(self._known)

    def windows(self) -> tuple[Int64s, Int64s, Int64s]:
        both = self._entries.keys()
        starts = (both >> 32) * self._window.slide
        return both & 0xFFFFFFFF, starts, starts + self._window.length

    def add(self, keys: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
        return self._entries.codes(starts // self._window.slide << 32 | keys)

    def retain(self, entries: Int64s, codes: Int64s) -> None:
        kept = self._entries.keys()[entries]
        self._entries = KeyTable()
        self._entries.codes(kept)  # all keys are kept, so their codes do not change

    def full(self, entries: Int64s) -> Int64s:
        keys, _, ends = self.windows()
        return np.unique(entries[ends[entries] <= self._keys["seen"][keys[entries]]])

    def key_state(self) -> dict[str, pa.Array]:
        return self._keys.arrow(np.arange(self._known))

    def load_keys(self, keys: Int64s, table: pa.Table) -> None:
        self._know(keys)
        numbers_in(table, "seen", 0)
        self._keys.load(keys, table)
