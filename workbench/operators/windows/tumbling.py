"""The most frequent case of windows, optimised: running aggregates in tumbling event-time windows (F2-5, F2-6).

A window [start, end) fires when the watermark reaches end - 1. Its state is kept until the watermark reaches
end - 1 + allowed lateness; until then a further record updates the window, which fires again, once per batch. After
that its records are late: they go to the side output, or are counted and dropped.

An *entry* is a key in a window. Entries are numbered in the order of their first record, and accumulators are arrays
indexed by that number. Entries of expired windows stay in place, where no record can reach them, until they are half of
all; then everything is packed. So there is no free list, a record costs three look-ups, and a watermark that fires
nothing costs a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from workbench.compiled.machinery.codes import LATE
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s, Mask, Records
from workbench.errors import RecordError
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.grouping import groups_table, one_key, owned_groups
from workbench.operators.aggregates.preaggregated import RECORDS, Merging, is_preaggregated, records_in
from workbench.operators.aggregates.tumbling_entries import TumblingEntries
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.event_times import GROUPS_MAX
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.keyed_snapshot import key_rows
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.operators.snapshots.pieces import codes_in, column_in
from workbench.operators.windows.columns import TIME, time_of_results
from workbench.windows.tumbling import Tumbling

_FEW_ENTRIES = 1_024  # not worth packing


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
        self._entries = TumblingEntries(window, keys, schema)
        self._accumulators = Accumulators(aggregations, schema)
        self._watermark = NO_TIME
        self._merging = None if RECORDS in schema.names else Merging(aggregations, schema)
        self._unfired_start = MAX_TIME  # a lower bound on the starts of entries that have not fired

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._past = PastWatermarks(context)

    def _due_start(self) -> int:
        """Windows that start here or earlier fire: the watermark has reached their end - 1."""
        return max(NO_TIME, self._watermark - self._window.size_us + 1)

    def _closed_start(self, watermark_us: int | None = None) -> int:
        """Windows that start here or earlier are closed: their lateness has passed as well."""
        reached_us = self._watermark if watermark_us is None else watermark_us
        return max(NO_TIME, reached_us - self._window.size_us + 1 - self._allowed_lateness_us)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            raise RecordError(
                "records without event times reached a window: name the event-time column at the source (event_time=)"
            )
        for part, watermark_us in self._past.parts(records, self._keys, self._watermark):
            self._take(part, watermark_us, out)

    def _take(self, records: Records, watermark_us: int, out: Output) -> None:
        batch = records.batch
        times = records.timestamps
        assert times is not None
        partial = self._merging is not None and is_preaggregated(batch)
        if partial:
            self._context.counters.numRecordsInFolded += records_in(batch) - len(records)
        entries = np.empty(len(records), np.int64)
        placed = self._entries.place(batch, times, self._closed_start(watermark_us), entries)
        assert placed is not None, "any number of entries is welcome"
        if placed.late or placed.timeless:
            self._context.counters.numRecordsWithoutTimestamp += placed.timeless
            if placed.late:
                self._put_aside(records, entries == LATE, placed.late, partial, self._closed_start(watermark_us), out)
            in_time = entries >= 0
            batch, entries = batch.filter(pa.array(in_time)), entries[in_time]
            times = times[in_time]
        if len(entries):
            self._accumulators.grow(len(self._entries.fired))
            if partial:
                assert self._merging is not None
                self._merging.merge(batch, self._accumulators, entries)
            else:
                self._accumulators.update(entries, batch)
            self._unfired_start = min(self._unfired_start, placed.first_start)
            if placed.first_start <= self._due_start():
                self._note_updates(batch, entries, times, partial)
                self._fire(out)
        self._show_open()
        if placed.late and len(self._entries.index) > max(_FEW_ENTRIES, 2 * len(self._entries)):
            self._pack()  # late records have added many keys that are in no window

    def _note_updates(self, batch: pa.RecordBatch, entries: Int64s, times: Int64s, partial: bool) -> None:
        """Note records whose window event time had already passed."""
        updates = self._entries.starts_and_keys()[0][entries] <= self._due_start()
        count = records_in(batch.filter(pa.array(updates))) if partial else int(np.count_nonzero(updates))
        self._context.counters.event_times.update(times[updates], count, self._context.clock.now_us())

    def _show_open(self) -> None:
        seen = self._context.counters.event_times
        if seen.wants_open and len(self._entries) <= GROUPS_MAX:
            starts, _ = self._entries.starts_and_keys()
            live = starts > self._closed_start()
            starts = starts[live]
            fired = self._entries.fired[: len(live)][live].astype(np.int64)
            seen.keep_open(starts, starts + self._window.size_us, fired)

    def _put_aside(
        self, records: Records, is_late: Mask, late: int, partial: bool, closed_start: int, out: Output
    ) -> None:
        assert records.timestamps is not None
        times = records.timestamps[is_late]
        weights: Int64s | None = None
        if partial:
            weights = records.batch.column(RECORDS).to_numpy()[is_late]
        aside = self._late_tag is not None and not partial
        self._context.counters.event_times.late(
            times, closed_start - self._window.panes(times), weights, "side output" if aside else "dropped",
            self._context.clock.now_us(),
        )  # fmt: skip
        if partial:  # late here although its sender took it as on time, or from a pipeline without a side output
            late = records_in(records.batch.filter(pa.array(is_late)))
            batch = records.batch.select([*self._keys, RECORDS])
        elif self._late_tag is not None:
            out.emit_side(self._late_tag, records.where(is_late))
            return
        else:
            batch = records.batch
        self._context.counters.numLateRecordsDropped += late
        self._context.counters.late.note(batch, records.timestamps, is_late, self._watermark, self._keys)

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us > self._watermark:
            self._watermark = watermark_us
            if self._unfired_start <= self._due_start():
                self._fire(out)

    def _fire(self, out: Output) -> None:
        """Emit the due entries by window, and within it by the first record of the key; then drop what is closed."""
        starts, keys = self._entries.starts_and_keys()
        waiting = ~self._entries.fired[: len(starts)]
        due = np.flatnonzero(waiting & (starts <= self._due_start()))
        due = due[np.argsort(starts[due], kind="stable")]
        if len(due):
            self._entries.fired[due] = True
            waiting[due] = False
            self._context.counters.numFiredTimers += len(due)
            rows = self._rows(due, starts[due], keys[due])
            starts_due = starts[due]
            now_us = self._context.clock.now_us()
            ends_due = starts_due + self._window.size_us
            self._context.counters.event_times.fire(rows.batch, starts_due, ends_due, now_us)
            out.emit(rows)
        self._unfired_start = int(starts[waiting].min(initial=MAX_TIME))
        closed = int(np.count_nonzero(starts <= self._closed_start()))
        if closed > _FEW_ENTRIES and 2 * closed > len(starts):
            self._pack()

    def _rows(self, entries: Int64s, starts: Int64s, keys: Int64s) -> Records:
        ends = starts + self._window.size_us
        columns = self._entries.index.keys_table(keys).columns
        columns += [pa.array(starts).view(TIME), pa.array(ends).view(TIME)]
        columns += self._accumulators.results(entries)
        return Records(pa.RecordBatch.from_arrays(columns, schema=self._output_schema), time_of_results(ends))

    def _pack(self) -> None:
        """Forget the closed windows, and keys that are in no other."""
        starts, _ = self._entries.starts_and_keys()
        live = np.flatnonzero(starts > self._closed_start())
        self._entries.retain(live)
        self._accumulators.retain(live)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        """The windows of a key that still accept records, the earliest first, as ``{"windows": [{...}]}``."""
        code = self._entries.index.find(one_key(self._keys, self._output_schema, key))[0]
        starts, keys = self._entries.starts_and_keys()
        entries = np.flatnonzero((keys == code) & (starts > self._closed_start()))
        if not len(entries):
            return None
        entries = entries[np.argsort(starts[entries])]
        rows = self._rows(entries, starts[entries], keys[entries]).batch
        return {"windows": python_rows(rows.drop_columns(list(self._keys)))}

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        starts, keys = self._entries.starts_and_keys()
        live = np.unique(keys[starts > self._closed_start()])
        return len(live), python_rows(self._entries.index.keys_table(live[:limit]))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        starts, keys = self._entries.starts_and_keys()
        live = np.flatnonzero(starts > self._closed_start())
        details = {"window_start": pa.array(starts[live]).view(TIME), "fired": pa.array(self._entries.fired[live])}
        windows = groups_table(self._entries.index, keys[live], details, self._accumulators, live)
        return {"windows": windows, "watermarks": self._past.snapshot(self._watermark)}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        groups = owned_groups(snapshots, "windows", self._keys, self._accumulators, self._context)
        if groups is None:
            return
        starts: Int64s = column_in(groups, "window_start", TIME)
        codes = codes_in(self._entries.index, key_rows(groups, self._keys))
        entries = self._entries.add(starts, codes)
        self._accumulators.grow(len(self._entries.fired))
        self._accumulators.load(entries, groups)
        fired = column_in(groups, "fired", pa.bool_())
        self._entries.fired[entries] = fired
        self._unfired_start = int(starts[~fired].min(initial=MAX_TIME))
