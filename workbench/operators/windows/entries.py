"""The windows of keys as entries: their places, firing and contents, kept consistent.

Entries of windows that are over stay in place until they are half of all; then everything is packed. So there is no
free list, and an entry's number means the same to all parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.keyed_snapshot import check_columns, key_rows, owned
from workbench.operators.snapshots.pieces import codes_in, numbers_in, table_in
from workbench.operators.windows.columns import EntryColumns
from workbench.operators.windows.contents import Contents
from workbench.operators.windows.places import Placement
from workbench.operators.windows.settings import WindowSettings
from workbench.state.key_index import KeyIndex

_FEW_ENTRIES = 1_024  # not worth packing


class WindowEntries:
    """All data about windows.

    Args:
        settings: the windows, and when they fire.
        keys: the key columns; none means one group.
        schema: of the records.
        contents: holds the contents of windows.

    Attributes:
        index: codes of the keys.
        places, firing, contents: the parts; all refer to entries by number.
    """

    def __init__(self, settings: WindowSettings, keys: Sequence[str], schema: pa.Schema, contents: Contents) -> None:
        self._settings = settings
        self._keys = tuple(keys)
        self._schema = schema
        self.index = KeyIndex(keys, schema)
        self.places = settings.places()
        self.firing = settings.firing()
        self.contents = contents
        self._columns = EntryColumns({"over": False, "latest": NO_TIME})
        self._over = 0  # how many entries are over
        self._next_over = MAX_TIME  # a lower bound on the ends of time windows that are not over

    def __len__(self) -> int:
        return len(self.places)

    @property
    def latest(self) -> Int64s:
        """By entry, the latest time of its records, where it is tracked; NO_TIME before."""
        return self._columns["latest"]

    def live(self) -> Int64s:
        """The entries whose windows are not over."""
        return np.flatnonzero(~self._columns["over"][: len(self)])

    def grow(self) -> None:
        """Make room for all entries that the places have added."""
        for part in (self._columns, self.contents, self.firing):
            part.grow(len(self))

    def expect(self, placement: Placement) -> None:
        """Windows have received records: update when the first of them is over."""
        self._next_over = min(self._next_over, int(placement.ends.min()))

    # forgetting --------------------------------------------------------------------------------------------------

    def end(self, entries: Int64s) -> None:
        """Mark entries as over, or as merged into others; each once."""
        self._columns["over"][entries] = True
        self._over += len(entries)
        self.firing.release(entries)

    def forget(self, closed_end: int) -> None:
        """End time windows that end here or earlier; pack when that is worthwhile."""
        if self._next_over <= closed_end:
            ends = self.places.windows()[2]
            live = self.live()
            is_over = ends[live] <= closed_end
            if is_over.any():
                self.end(live[is_over])
                self.contents.release(live[is_over])
            self._next_over = int(ends[live[~is_over]].min(initial=MAX_TIME))
        known = max(len(self), 0 if self.places.keeps_keys else len(self.index))
        if known > _FEW_ENTRIES and known > 2 * (len(self) - self._over):
            self._pack()

    def _pack(self) -> None:
        """Drop the entries that are over, and keys without other entries."""
        live = self.live()
        used = np.full(len(self.index), self.places.keeps_keys)
        used[self.places.windows()[0][live]] = True
        codes = self.index.retain(np.flatnonzero(used))
        self.places.retain(live, codes)
        for part in (self._columns, self.contents, self.firing):
            part.retain(live)
        self._over = 0

    # queries -----------------------------------------------------------------------------------------------------

    def of_key(self, key: Mapping[str, object]) -> Int64s:
        """The live entries of a key, the earliest window first."""
        code = self.index.find(one_key(self._keys, self._schema, key))[0]
        keys, starts, ends = self.places.windows()
        live = self.live()
        entries = live[keys[live] == code]
        ordered: Int64s = entries[np.lexsort((ends[entries], starts[entries]))]
        return ordered

    def keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """The number of keys with live entries, and at most `limit` of them."""
        codes = np.unique(self.places.windows()[0][self.live()])
        return len(codes), python_rows(self.index.keys_table(codes[:limit]))

    # snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """``windows``: a row per live entry; ``keys``: data about keys; and the tables of the contents."""
        keys, starts, ends = self.places.windows()
        live = self.live()
        details = {
            "start": pa.array(starts[live]),
            "end": pa.array(ends[live]),
            "latest": pa.array(self.latest[live]),
            "place": pa.array(np.arange(len(live))),
            **self.firing.state(live),
            **dict(zip(self.contents.state_names(), self.contents.state_columns(live), strict=True)),
        }
        snapshot: Snapshot = {"windows": self._keyed(keys[live], details)}
        if self.places.keeps_keys:
            snapshot["keys"] = self._keyed(np.arange(len(self.index)), self.places.key_state())
        return {**snapshot, **self.contents.state_tables(live)}

    def _keyed(self, codes: Int64s, details: Mapping[str, pa.Array]) -> pa.Table:
        keys = self.index.keys_table(codes)
        names = [f"key:{name}" for name in self._keys] + list(details)
        return pa.Table.from_arrays([*keys.columns, *details.values()], names=names)

    def load(self, snapshot: Snapshot, context: OperatorContext) -> None:
        """Restore what belongs to this subtask now from one subtask's snapshot.

        Raises:
            CheckpointError: the state has other keys, windows or aggregates than the operator.
        """
        if self.places.keeps_keys:
            table, codes = self._owned(snapshot, "keys", ["seen"], context)
            self.places.load_keys(codes, table)
        known = len(self.index)
        state = [*self.contents.state_names(), *self.firing.state(np.empty(0, np.int64))]
        table, codes = self._owned(snapshot, "windows", ["start", "end", "latest", "place", *state], context)
        if table.num_rows == 0:
            return
        if self.places.keeps_keys and len(self.index) > known:
            raise ValueError("its windows are of keys of which nothing is known")
        starts, ends = numbers_in(table, "start"), numbers_in(table, "end")
        entries = self.places.add(codes, starts, ends)
        self.grow()
        self.latest[entries] = numbers_in(table, "latest")
        self.firing.load(entries, table, ends)
        places = numbers_in(table, "place", 0, table_in(snapshot, "windows").num_rows)
        self.contents.load(entries, table, places, snapshot)
        self._next_over = min(self._next_over, int(ends.min()))

    def _owned(
        self, snapshot: Snapshot, name: str, columns: Sequence[str], context: OperatorContext
    ) -> tuple[pa.Table, Int64s]:
        """The rows of a snapshot's table that belong to this subtask now, and the codes of their keys."""
        table = snapshot.get(name)
        keys = [f"key:{key}" for key in self._keys]
        found = table.schema.names if isinstance(table, pa.Table) else ()
        check_columns(found, [*keys, *columns], "keys, windows or aggregates", context)
        rows = owned(table, keys, context).combine_chunks()
        return rows, codes_in(self.index, key_rows(rows, self._keys))
