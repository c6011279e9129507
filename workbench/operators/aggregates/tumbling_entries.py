"""The entries of tumbling windows: a number for each key in each window, from 0 in order of first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.compiled import place_in_tumbling, warm_up
from workbench.compiled.machinery.codes import ENTRIES, FIRST_START, FULL, KEYS, LATE_COUNT, TIMELESS_COUNT, WINDOWS
from workbench.durations import MAX_TIME
from workbench.elements import Int64s
from workbench.state.key_index import KeyIndex
from workbench.state.key_table import KeyTable
from workbench.windows.tumbling import Tumbling

_CODES: tuple[Int64s, Int64s, int] = (np.empty((0, 2), np.int64), np.empty(0, np.int64), 0)
"""Replaces a table of keys: they are already codes."""
_NONE_RECENT: Int64s = np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class Placed:
    """The result of placing a batch.

    Attributes:
        late, timeless: how many records belong to closed windows, and how many have no event time.
        first_start: the earliest window of the others, MAX_TIME if there are none.
    """

    late: int
    timeless: int
    first_start: int


class TumblingEntries:
    """Finds the entries of records, in one pass of a kernel.

    Args:
        window: the windows.
        keys: names of the key columns; none means one group.
        schema: of the batches.
        counting: whether records are counted as well.

    Attributes:
        index: the codes of the keys.
        fired: by entry, with spare room: whether its window has fired since its last record.
        counts: by entry, with spare room: its records; of length 0 where they are not counted.

    Example:
        >>> schema = pa.schema({"k": pa.int64()})
        >>> entries, of_row = TumblingEntries(Tumbling(10), ["k"], schema), np.empty(3, np.int64)
        >>> entries.place(pa.record_batch([[7, 8, 7]], schema=schema), np.array([3, 12, 4]), -10, of_row)
        Placed(late=0, timeless=0, first_start=0)
        >>> of_row
        array([0, 1, 0])
        >>> entries.starts_and_keys()
        (array([ 0, 10]), array([0, 1]))
    """

    __slots__ = ("_counting", "_entries", "_keys", "_recent", "_window", "_windows", "counts", "fired", "index")

    def __init__(self, window: Tumbling, keys: Sequence[str], schema: pa.Schema, *, counting: bool = False) -> None:
        warm_up(place_in_tumbling)
        self._window = window
        self._keys = tuple(keys)
        self.index = KeyIndex(keys, schema)
        self._windows = KeyTable()  # window start -> window code
        self._entries = KeyTable()  # window code and key code -> entry
        self.fired = np.zeros(0, np.bool_)
        self.counts = np.zeros(0, np.int64)
        self._counting = counting
        self._recent = _NONE_RECENT  # by key code, with spare room: the start and entry of its last record

    def __len__(self) -> int:
        return len(self._entries)

    def place(
        self, batch: pa.RecordBatch, times: Int64s, closed_start: int, entries: Int64s, most: int | None = None
    ) -> Placed | None:
        """Find or add the entry of each record and write it to `entries` (see ``place_in_tumbling``).

        Args:
            batch, times: the records, and shape (n,) their event times.
            closed_start: windows that start here or earlier are closed.
            entries: shape (n,), filled.
            most: the number of entries from which the work is not worthwhile, approximately; None: no limit.

        Returns:
            None, with only some records placed, if there would be more entries than that.
        """
        plain = self.index.plain_numbers([batch.column(name) for name in self._keys])
        numbers = KeyTable() if plain is None else plain[0]
        keys = self.index.codes(batch) if plain is None else plain[1]
        tables = {KEYS: numbers, WINDOWS: self._windows, ENTRIES: self._entries}
        progress = np.zeros(8, np.int64)
        for at, table in tables.items():
            progress[at] = len(table)
        progress[FIRST_START] = MAX_TIME
        size_us, offset_us = self._window.size_us, self._window.offset_us
        while True:
            by_key = _CODES if plain is None else numbers.layout()
            by_entry = self._entries.layout()
            self._grow(len(by_entry[1]), max(len(self.index), len(by_key[1])))
            flags = self.fired.view(np.uint8)
            layouts = (*by_key, *self._windows.layout(), *by_entry)
            marks = self._recent, flags, self.counts
            place_in_tumbling(times, keys, size_us, offset_us, closed_start, progress, *layouts, *marks, entries)
            for at, table in tables.items():
                table.extended(int(progress[at]))
            full = int(progress[FULL])
            if not full:
                return Placed(int(progress[LATE_COUNT]), int(progress[TIMELESS_COUNT]), int(progress[FIRST_START]))
            if most is not None and full == ENTRIES and len(self._entries) >= most:
                return None
            tables[full].enlarge()

    def _grow(self, entries: int, keys: int) -> None:
        """Make room for this many."""
        if entries > len(self.fired):
            fired = np.zeros(max(entries, 2 * len(self.fired)), np.bool_)
            fired[: len(self.fired)] = self.fired
            self.fired = fired
            if self._counting:
                counts = np.zeros(len(fired), np.int64)
                counts[: len(self.counts)] = self.counts
                self.counts = counts
        if keys > len(self._recent):
            recent = np.full((max(keys, 2 * len(self._recent)), 2), -1)
            recent[: len(self._recent)] = self._recent
            self._recent = recent

    def starts_and_keys(self) -> tuple[Int64s, Int64s]:
        """The window start and the key code of every entry."""
        both = self._entries.keys()
        return self._windows.keys()[both >> 32], both & 0xFFFFFFFF

    def add(self, starts: Int64s, keys: Int64s) -> Int64s:
        """The entries of windows by their starts and key codes; new ones are added, with room for their flags."""
        entries = self._entries.codes(self._windows.codes(starts) << 32 | keys)
        self._grow(len(self._entries), 0)
        return entries

    def retain(self, entries: Int64s) -> None:
        """Keep only these entries; ``entries[i]`` becomes entry i. Keys that are in no other entry are forgotten."""
        starts, keys = self.starts_and_keys()
        starts, keys = starts[entries], keys[entries]
        used = np.zeros(len(self.index), np.bool_)
        used[keys] = True
        codes = self.index.retain(np.flatnonzero(used))
        fired = self.fired[entries]
        self._windows, self._entries = KeyTable(), KeyTable()
        self._entries.codes(self._windows.codes(starts) << 32 | codes[keys])
        self.fired = fired
        self.counts = self.counts[entries] if self._counting else self.counts
        self._recent = _NONE_RECENT

    def clear(self) -> None:
        """Forget all entries, but keep the codes of keys and the allocated room."""
        self.counts[: len(self)] = 0
        self._windows.clear()
        self._entries.clear()
        self._recent[: len(self.index)] = -1
