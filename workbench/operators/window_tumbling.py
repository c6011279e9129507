"""The common case of windows, made fast: running aggregates in tumbling event-time windows (F2-5, F2-6).

A window [start, end) fires when the watermark reaches end - 1. Its state is kept until the watermark reaches
end - 1 + allowed lateness; until then a further record updates the window and makes it fire again, once per batch.
After that its records are late: they go to the side output, or are counted and dropped.

An *entry* is a key in a window. Entries are numbered in the order of their first record, and accumulators are arrays
indexed by that number. Entries of windows whose time is over stay where they are, where no record can reach them any
more, until they are half of all; then everything is packed anew. So there is no free list, a record costs three
look-ups, and a watermark that fires nothing costs a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import RecordError
from workbench.kernels import place_in_tumbling
from workbench.kernels.windows import (
    ENTRIES,
    FIRST_START,
    FULL,
    KEYS,
    LATE,
    LATE_COUNT,
    TIMELESS_COUNT,
    WINDOWS,
)
from workbench.operators.accumulators import Accumulators
from workbench.operators.aggregations import Aggregation
from workbench.operators.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.grouping import groups_table, keys_of, one_key, owned_groups
from workbench.operators.window_columns import TIME
from workbench.operators.window_places import Mask
from workbench.state import KeyIndex
from workbench.state.key_table import KeyTable
from workbench.windows import Tumbling

_FEW_ENTRIES = 1_024  # not worth packing
_CODES: tuple[Int64s, Int64s, int] = (np.empty((0, 2), np.int64), np.empty(0, np.int64), 0)
"""Instead of a table of keys: they are codes already."""
_NONE_RECENT: Int64s = np.empty((0, 2), np.int64)


class TumblingAggregate(Operator):
    """State: per entry its key's code, its window's start, whether it has fired, and its accumulators."""

    def __init__(
        self,
        window: Tumbling,
        keys: Sequence[str],
        aggregations: Sequence[Aggregation],
        allowed_lateness_us: int,
        late_tag: str | None,
        schema: pa.Schema,
        output_schema: pa.Schema,
    ) -> None:
        self._window = window
        self._keys = tuple(keys)
        self._allowed_lateness_us = allowed_lateness_us
        self._late_tag = late_tag
        self._output_schema = output_schema
        self._index = KeyIndex(keys, schema)
        self._accumulators = Accumulators(aggregations, schema)
        self._windows = KeyTable()  # window start -> window code
        self._entries = KeyTable()  # window code and key code -> entry
        self._fired = np.zeros(0, np.bool_)  # by entry, with room to grow
        self._recent = _NONE_RECENT  # by key code, with room to grow: the start and entry of its last record
        self._watermark = NO_TIME
        self._unfired_start = MAX_TIME  # no entry that is yet to fire starts earlier

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def _due_start(self) -> int:
        """Windows that start here or earlier fire: their end - 1 is at or below the watermark."""
        return max(NO_TIME, self._watermark - self._window.size_us + 1)

    def _closed_start(self) -> int:
        """Windows that start here or earlier are closed: their lateness has passed as well."""
        return max(NO_TIME, self._watermark - self._window.size_us + 1 - self._allowed_lateness_us)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            raise RecordError(
                "records without event times reached a window: name the event-time column at the source (event_time=)"
            )
        batch = records.batch
        entries = np.empty(len(records), np.int64)
        late, timeless, first_start = self._place(batch, records.timestamps, entries)
        if late or timeless:
            self._context.counters.numRecordsWithoutTimestamp += timeless
            if late:
                self._put_aside(records, entries == LATE, late, out)
            in_time = entries >= 0
            batch, entries = batch.filter(pa.array(in_time)), entries[in_time]
        if len(entries):
            self._accumulators.update(entries, batch)
            self._unfired_start = min(self._unfired_start, first_start)
            if first_start <= self._due_start():
                self._fire(out)
        if late and len(self._index) > max(_FEW_ENTRIES, 2 * len(self._entries)):
            self._pack(*self._starts_and_keys())  # late records have brought many keys that are in no window

    def _place(self, batch: pa.RecordBatch, times: Int64s, entries: Int64s) -> tuple[int, int, int]:
        """Fill `entries` (see ``place_in_tumbling``); how many are late, how many have no time, the first start."""
        plain = self._index.plain_numbers(batch)
        numbers = KeyTable() if plain is None else plain[0]
        keys = self._index.codes(batch) if plain is None else plain[1]
        tables = {KEYS: numbers, WINDOWS: self._windows, ENTRIES: self._entries}
        progress = np.zeros(8, np.int64)
        for at, table in tables.items():
            progress[at] = len(table)
        progress[FIRST_START] = MAX_TIME
        size_us, offset_us, closed_start = self._window.size_us, self._window.offset_us, self._closed_start()
        while True:
            by_key = _CODES if plain is None else numbers.layout()
            by_entry = self._entries.layout()
            self._grow(len(by_entry[1]), max(len(self._index), len(by_key[1])))
            flags = self._fired.view(np.uint8)
            layouts = (*by_key, *self._windows.layout(), *by_entry)
            place_in_tumbling(
                times, keys, size_us, offset_us, closed_start, progress, *layouts, self._recent, flags, entries
            )
            for at, table in tables.items():
                table.extended(int(progress[at]))
            full = int(progress[FULL])
            if not full:
                return int(progress[LATE_COUNT]), int(progress[TIMELESS_COUNT]), int(progress[FIRST_START])
            tables[full].enlarge()

    def _put_aside(self, records: Records, is_late: Mask, late: int, out: Output) -> None:
        assert records.timestamps is not None
        if self._late_tag is None:
            self._context.counters.numLateRecordsDropped += late
            self._context.counters.late.note(records.batch, records.timestamps, is_late, self._watermark, self._keys)
            return
        out.emit_side(self._late_tag, Records(records.batch.filter(pa.array(is_late)), records.timestamps[is_late]))

    def _grow(self, entries: int, keys: int) -> None:
        """Make room for so many."""
        if entries > len(self._fired):
            fired = np.zeros(max(entries, 2 * len(self._fired)), np.bool_)
            fired[: len(self._fired)] = self._fired
            self._fired = fired
            self._accumulators.grow(len(fired))
        if keys > len(self._recent):
            recent = np.full((max(keys, 2 * len(self._recent)), 2), -1)
            recent[: len(self._recent)] = self._recent
            self._recent = recent

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us > self._watermark:
            self._watermark = watermark_us
            if self._unfired_start <= self._due_start():
                self._fire(out)

    def _starts_and_keys(self) -> tuple[Int64s, Int64s]:
        """The window start and the key code of every entry."""
        both = self._entries.keys()
        return self._windows.keys()[both >> 32], both & 0xFFFFFFFF

    def _fire(self, out: Output) -> None:
        """Emit the due entries by window, and within it by the first record of the key; then drop what is closed."""
        starts, keys = self._starts_and_keys()
        waiting = ~self._fired[: len(starts)]
        due = np.flatnonzero(waiting & (starts <= self._due_start()))
        due = due[np.argsort(starts[due], kind="stable")]
        if len(due):
            self._fired[due] = True
            waiting[due] = False
            self._context.counters.numFiredTimers += len(due)
            out.emit(self._rows(due, starts[due], keys[due]))
        self._unfired_start = int(starts[waiting].min(initial=MAX_TIME))
        closed = int(np.count_nonzero(starts <= self._closed_start()))
        if closed > _FEW_ENTRIES and 2 * closed > len(starts):
            self._pack(starts, keys)

    def _rows(self, entries: Int64s, starts: Int64s, keys: Int64s) -> Records:
        ends = starts + self._window.size_us
        columns = self._index.keys_table(keys).columns
        columns += [pa.array(starts).view(TIME), pa.array(ends).view(TIME)]
        columns += self._accumulators.results(entries)
        return Records(pa.RecordBatch.from_arrays(columns, schema=self._output_schema), ends - 1)

    def _pack(self, starts: Int64s, keys: Int64s) -> None:
        """Forget the closed windows, and keys that are in no other."""
        live = np.flatnonzero(starts > self._closed_start())
        starts, keys = starts[live], keys[live]
        used = np.zeros(len(self._index), np.bool_)
        used[keys] = True
        codes = self._index.retain(np.flatnonzero(used))
        self._windows, self._entries = KeyTable(), KeyTable()
        self._entries.codes(self._windows.codes(starts) << 32 | codes[keys])
        self._accumulators.retain(live)
        self._fired = self._fired[live]
        self._recent = _NONE_RECENT

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        """The windows of a key that still take records, the earliest first, as ``{"windows": [{...}]}``."""
        code = self._index.find(one_key(self._keys, self._output_schema, key))[0]
        starts, keys = self._starts_and_keys()
        entries = np.flatnonzero((keys == code) & (starts > self._closed_start()))
        if not len(entries):
            return None
        entries = entries[np.argsort(starts[entries])]
        rows = self._rows(entries, starts[entries], keys[entries]).batch
        return {"windows": rows.drop_columns(list(self._keys)).to_pylist()}

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        starts, keys = self._starts_and_keys()
        live = np.unique(keys[starts > self._closed_start()])
        return len(live), self._index.keys_table(live[:limit]).to_pylist()

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        starts, keys = self._starts_and_keys()
        live = np.flatnonzero(starts > self._closed_start())
        details = {"window_start": pa.array(starts[live]).view(TIME), "fired": pa.array(self._fired[live])}
        windows = groups_table(self._index, keys[live], details, self._accumulators, live)
        return {"windows": windows, "watermark": self._watermark}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        watermarks = [snapshot["watermark"] for snapshot in snapshots]
        self._watermark = min((mark for mark in watermarks if isinstance(mark, int)), default=NO_TIME)
        groups = owned_groups(snapshots, "windows", self._keys, self._accumulators, self._context)
        if groups is None:
            return
        starts = groups.column("window_start").combine_chunks().view(pa.int64()).to_numpy()
        codes = self._index.codes(keys_of(groups, self._keys))
        entries = self._entries.codes(self._windows.codes(starts) << 32 | codes)
        self._grow(len(self._entries), 0)
        self._accumulators.load(entries, groups)
        fired = groups.column("fired").to_numpy()
        self._fired[entries] = fired
        self._unfired_start = int(starts[~fired].min(initial=MAX_TIME))
