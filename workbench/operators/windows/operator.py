"""Windows of every kind: adds records to their windows, fires them, and forgets them when they are over.

A batch is processed in this order: late records are removed; the others go into the entries of their windows (see
``window_places``), interrupted by the firings that they cause (``Waves``); what is due because time has passed fires at
the end, so a window that has already fired is corrected once per batch.

A window in time is over when its time, lateness included, has passed; a count window when it is full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from workbench.durations import LAST_WATERMARK, LATEST_TIME, MAX_TIME, NO_TIME
from workbench.elements import Int64s, Mask, Records
from workbench.errors import RecordError
from workbench.operators.contract.base import EventTimeOutput, Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.event_times import GROUPS_MAX
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.operators.snapshots.pieces import value_in
from workbench.operators.windows.columns import time_of_results
from workbench.operators.windows.contents import (
    Contents,
    Fired,
    FoldedPanes,
    Incoming,
    PaneFolder,
    Revises,
    RunningAggregates,
)
from workbench.operators.windows.entries import WindowEntries
from workbench.operators.windows.firing import Moment, Waves
from workbench.operators.windows.places import Placement
from workbench.operators.windows.settings import WindowSettings
from workbench.windows.session import Session


class WindowOperator(Operator):
    """The operator logic of windows that compute results.

    Args:
        settings: the windows, and when they fire.
        keys: the key columns; none means one group.
        schema: of the records.
        output_schema: of the results: keys, bounds of the window, results of `contents`.
        contents: holds the contents of windows.
        late_tag: the side output for late records; None: they are counted and dropped.
        panes: folds records before they are added to many windows; only with `RunningAggregates`.
    """

    def __init__(
        self,
        settings: WindowSettings,
        keys: Sequence[str],
        schema: pa.Schema,
        output_schema: pa.Schema,
        contents: Contents,
        late_tag: str | None,
        panes: PaneFolder | None = None,
    ) -> None:
        self._settings = settings
        self._output_schema = output_schema
        self._late_tag = late_tag
        self._keys = tuple(keys)
        self._panes = panes
        self._entries = WindowEntries(settings, keys, schema, contents)
        self._contents = contents
        self._moment = Moment()
        self._passed_us = NO_TIME  # the last watermark sent downstream
        self.tells_event_time = isinstance(settings.window, Session) and settings.time == "event"
        self._timed = True  # whether records have event times
        self._arrived = 0

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._past = PastWatermarks(context)

    # records -----------------------------------------------------------------------------------------------------

    def process(self, records: Records, port: int, out: Output) -> None:
        self._moment.now_us = max(self._moment.now_us, self._context.clock.now_us())
        self._fire_due(out)
        records, times = self._with_times(records)
        if len(records) == 0:
            return
        parts = [(records, self._moment.watermark_us)]
        if times is records.timestamps:
            parts = self._settings.apart(self._past.parts(records, self._keys, self._moment.watermark_us))
        for part, watermark_us in parts:
            self._take(part, times if part is records else part.timestamps, watermark_us, out)

    def _take(self, records: Records, times: Int64s | None, watermark_us: int, out: Output) -> None:
        batch, places, closed_end = records.batch, self._entries.places, self._closed_end(watermark_us)
        keys = self._entries.index.codes(batch)
        folded = None
        if self._panes is not None and times is not None:
            folded = self._panes.fold(keys, times, batch)
            placement = places.place(folded.keys, folded.times, closed_end, None)
        else:
            placement = places.place(keys, times, closed_end, batch)
        if placement.late is not None:
            late = placement.late if folded is None else placement.late[folded.of_row]
            self._put_aside(records, late, closed_end, out)
        if len(placement.entries):
            self._put_in(placement, folded, Incoming(batch, times, self._arrived), out)
        self._arrived += len(records)
        self._pass(out)
        if self._is_event_timed:
            self._show_open()

    def _with_times(self, records: Records) -> tuple[Records, Int64s | None]:
        """The records that can have a window, and their times."""
        self._timed = records.timestamps is not None
        if self._settings.window.bounds == "time" and self._settings.time == "processing":
            return records, np.full(len(records), self._moment.now_us)
        times = records.timestamps
        if not self._settings.window.needs_times:
            return records, times
        if times is None:
            raise RecordError(
                "records without event times reached a window: name the event-time column at the source (event_time=), "
                "or use processing time (time='processing')"
            )
        timeless = times == NO_TIME
        if not timeless.any():
            return records, times
        self._context.counters.numRecordsWithoutTimestamp += int(timeless.sum())
        timed = records.where(~timeless)
        return timed, timed.timestamps

    def _put_aside(self, records: Records, late: Mask, closed_end: int, out: Output) -> None:
        count = int(late.sum())
        if count and records.timestamps is not None and self._is_event_timed:
            late_times = records.timestamps[late]
            self._context.counters.event_times.late(
                late_times, self._short(late_times, closed_end), None,
                "dropped" if self._late_tag is None else "side output", self._moment.now_us,
            )  # fmt: skip
        if self._late_tag is None:
            self._context.counters.numLateRecordsDropped += count
            if records.timestamps is not None:
                watermark_us = self._moment.watermark_us
                self._context.counters.late.note(records.batch, records.timestamps, late, watermark_us, self._keys)
        elif count:
            out.emit_side(self._late_tag, records.where(late))

    def _put_in(self, placement: Placement, folded: FoldedPanes | None, incoming: Incoming, out: Output) -> None:
        entries, moves = placement.entries, placement.moves
        self._entries.grow()
        self._entries.expect(placement)
        times = incoming.times if folded is None else folded.times
        pair_times = None if times is None else placement.of_rows(times)
        if self._settings.allowed_lateness_us:
            self._note_updates(placement, folded, incoming)
        waves = self._entries.firing.waves(placement, pair_times, self._moment)
        if folded is not None:
            assert isinstance(self._contents, RunningAggregates)
            panes = np.arange(len(entries)) if placement.rows is None else placement.rows
            self._contents.add_panes(entries, panes, folded.accumulators)
        elif waves is None:
            self._note_latest(entries, pair_times)
            self._contents.add(entries, placement.rows, incoming)
            self._move(moves)
        else:
            self._put_in_waves(waves, placement, incoming, pair_times, out)
        if len(moves):
            self._entries.end(moves[:, 2])
        full = self._entries.places.full(entries)
        if len(full):
            self._entries.end(full)
            self._contents.release(full)

    def _put_in_waves(
        self, waves: Waves, placement: Placement, incoming: Incoming, pair_times: Int64s | None, out: Output
    ) -> None:
        """Add the records wave by wave, and emit all results in the order of the records that made them fire."""
        rows = np.arange(len(placement.entries)) if placement.rows is None else placement.rows
        keys = self._entries.places.windows()[0]
        results: list[tuple[Records, Int64s]] = []
        for wave in range(waves.count):
            pairs = np.flatnonzero(waves.of_pair == wave)
            entries = placement.entries[pairs]
            self._note_latest(entries, None if pair_times is None else pair_times[pairs])
            self._contents.add(entries, rows[pairs], incoming)
            self._move(placement.moves[waves.of_move == wave])
            now = waves.of_pair[waves.acting] == wave
            fires, purges = waves.acting[now & waves.fires], waves.acting[now & waves.purges]
            if len(fires):
                entries = placement.entries[fires]
                result, which = self._results(entries, keys[entries], placement.starts[fires], placement.ends[fires])
                results.append((result, fires[which]))
            if len(purges):
                self._purge(placement.entries[purges])
        _emit_in_order(results, out)

    @property
    def _is_event_timed(self) -> bool:
        return self._settings.window.bounds == "time" and self._settings.time == "event"

    def _short(self, times: Int64s, closed_end: int) -> Int64s:
        """How far behind the end of its last window's lateness each time came; -1 where its window is not known."""
        window = self._settings.window
        if isinstance(window, Session) and window.column is not None:
            return np.full(len(times), -1)
        rows, _, ends = window.assign(times)
        last = np.full(len(times), NO_TIME)
        np.maximum.at(last, rows, ends)
        return closed_end - last

    def _note_updates(self, placement: Placement, folded: FoldedPanes | None, incoming: Incoming) -> None:
        """Note records for which a window had already ended."""
        over = placement.ends <= self._moment.passed_end("event")
        if not over.any() or incoming.times is None:
            return
        rows = np.flatnonzero(over) if placement.rows is None else np.unique(placement.rows[over])
        if folded is not None:
            rows = np.flatnonzero(np.isin(folded.of_row, rows))
        seen = self._context.counters.event_times
        seen.update(incoming.times[rows], len(rows), self._moment.now_us)

    def _show_open(self) -> None:
        seen = self._context.counters.event_times
        if seen.wants_open and len(self._entries.places) <= GROUPS_MAX:
            _, starts, ends = self._entries.places.windows()
            live = ends > self._closed_end(self._moment.watermark_us)
            starts, ends = starts[live], ends[live]
            seen.keep_open(starts, ends, (ends <= self._moment.passed_end("event")).astype(np.int64))

    def _move(self, moves: Int64s) -> None:
        if len(moves):
            self._contents.move(np.ascontiguousarray(moves[:, 2]), np.ascontiguousarray(moves[:, 1]))

    def _purge(self, entries: Int64s) -> None:
        self._contents.purge(entries)
        self._entries.latest[entries] = NO_TIME

    def _note_latest(self, entries: Int64s, times: Int64s | None) -> None:
        if times is not None and self._settings.window.bounds != "time":
            np.maximum.at(self._entries.latest, entries, times)

    # time --------------------------------------------------------------------------------------------------------

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if self.tells_event_time:
            watermark_us = self._settings.window.reached(watermark_us)
        if watermark_us > self._moment.watermark_us:
            self._moment.watermark_us = watermark_us
            if watermark_us == MAX_TIME:
                self._moment.now_us = MAX_TIME  # the input has ended: no window waits for the clock any more
            self._pass(out)
            self._passed_us = watermark_us
        if self.tells_event_time:
            cast("EventTimeOutput", out).emit_watermark(watermark_us)

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        out.emit_idle(idle)

    def next_time_us(self) -> int | None:
        return self._entries.firing.next_time_us()

    def on_time(self, now_us: int, out: Output) -> None:
        self._moment.now_us = max(self._moment.now_us, now_us)
        self._pass(out)

    def _pass(self, out: Output) -> None:
        """Time has passed: fire what is due, then forget what is over."""
        self._fire_due(out)
        self._entries.forget(self._closed_end(self._moment.watermark_us))

    def _closed_end(self, watermark_us: int) -> int:
        """Time windows that end here or earlier are over."""
        if self._settings.window.bounds == "position":
            return NO_TIME
        passed = Moment(watermark_us, self._moment.now_us).passed_end(self._settings.time)
        return max(NO_TIME, passed - self._settings.allowed_lateness_us)

    def _fire_due(self, out: Output) -> None:
        firing = self._entries.firing
        if not firing.is_due(self._moment):
            return
        keys, starts, ends = self._entries.places.windows()
        for some in firing.due(self._moment, starts, ends):
            entries = some.entries[some.fires]
            if len(entries):
                self._context.counters.numFiredTimers += len(entries)
                moments = some.moments[some.fires]
                results, which = self._results(entries, keys[entries], starts[entries], ends[entries], moments)
                if self._is_event_timed:
                    shown = entries[which]
                    seen, now_us = self._context.counters.event_times, self._context.clock.now_us()
                    seen.fire(results.batch, starts[shown], ends[shown], now_us)
                out.emit(results)
            if some.purges.any():
                self._purge(some.entries[some.purges])

    # results -----------------------------------------------------------------------------------------------------

    def _results(
        self, entries: Int64s, keys: Int64s, starts: Int64s, ends: Int64s, moments: Int64s | None = None
    ) -> tuple[Records, Int64s]:
        """The results of windows (by entry, key code and bounds), and for each row the index of its window."""
        fired = Fired(entries, self._entries.index.keys_table(keys), starts, ends)
        results = self._contents.results(fired)
        which = np.arange(len(entries)) if results.which is None else results.which
        columns = [*fired.keys.columns, *self._bounds(starts, ends).values()]
        if results.which is not None:
            columns = [column.take(pa.array(which)) for column in columns]
        times = self._times(entries, ends, moments)
        batch = pa.RecordBatch.from_arrays([*columns, *results.columns], schema=self._output_schema)
        if isinstance(self._contents, Revises):
            batch, which = self._contents.revised(entries, batch, which)
        return Records(batch, None if times is None else times[which]), which

    def _times(self, entries: Int64s, ends: Int64s, moments: Int64s | None) -> Int64s | None:
        """The event times of results; no trigger makes a result late: only event-time windows know their times in
        advance."""
        times = time_of_results(ends)
        if self._settings.window.bounds != "time":
            if not self._timed:
                return None
            times = self._entries.latest[entries]
            if moments is not None:
                planned = (times != NO_TIME) & (moments <= LATEST_TIME)  # no record has a later time
                times = np.where(planned, np.maximum(times, moments), times)
        elif self._settings.time == "event":
            return times
        first_us = min(self._passed_us, LAST_WATERMARK) + 1
        return np.where(times == NO_TIME, NO_TIME, np.maximum(times, first_us))

    def _bounds(self, starts: Int64s, ends: Int64s) -> dict[str, pa.Array]:
        """The columns ``window_start`` and ``window_end``, if such windows have them."""
        fields = self._settings.bounds()
        return {item.name: pa.array(bound).cast(item.type) for item, bound in zip(fields, (starts, ends), strict=False)}

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        """The windows of a key that still accept records, the earliest first, as ``{"windows": [{...}]}``.

        A window that keeps its records shows their number instead of its aggregates.
        """
        entries = self._entries.of_key(key)
        if not len(entries):
            return None
        _, starts, ends = self._entries.places.windows()
        columns = {**self._bounds(starts[entries], ends[entries]), **self._contents.glance(entries)}
        return {"windows": python_rows(pa.RecordBatch.from_pydict(columns))}

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        return self._entries.keys(limit)

    # snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        watermarks = self._past.snapshot(self._moment.watermark_us)
        about = {"watermarks": watermarks, "timed": self._timed, "arrived": self._arrived}
        return {**self._entries.snapshot(), **about}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._moment.watermark_us = self._passed_us = self._past.restore(snapshots)
        self._timed = True
        for snapshot in snapshots:
            self._timed &= value_in(snapshot, "timed", bool)
            self._arrived = max(self._arrived, value_in(snapshot, "arrived", int))
            self._entries.load(snapshot, self._context)


def _emit_in_order(results: Sequence[tuple[Records, Int64s]], out: Output) -> None:
    """Emit results together, in the order of the pairs that they belong to."""
    if len(results) == 1:
        out.emit(results[0][0])
    elif results:
        together = Records.concat([result for result, _ in results])
        order = np.argsort(np.concatenate([pairs for _, pairs in results]), kind="stable")
        times = together.timestamps
        out.emit(Records(together.batch.take(pa.array(order)), None if times is None else times[order]))
