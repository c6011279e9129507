"""The rows that one side of an interval join keeps, ordered for search by key and time.

Rows are in *runs*, each sorted by key code and time. A new batch becomes a run; runs of similar size are merged, so
there are few of them, a row is moved a logarithmic number of times, and a small batch costs little even if many rows
are kept. Expired rows are dropped when runs are merged, their content when it is half of a run's, and whole runs as
soon as all of their rows have expired.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.compiled import find_ranges, merge_rows, order_by_code, order_by_time, warm_up
from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s, Mask
from workbench.operators.joins.columns import pairs_of
from workbench.operators.snapshots.saved_rows import saved_rows, together

_CODES_PER_ROW = 4  # with more codes than that, counting them all costs more than comparing the rows
_CONTENT_PER_ROW = 2  # to put text in order costs ten times as much as to keep as much of it that has expired
_MOVES_PER_ROW = 32  # with more moves than that, rows are far from sorted


@dataclass(slots=True)
class Run:
    """Rows by key code, then by time.

    Attributes:
        batch: the columns, in the order of arrival; some rows may have expired.
        rows: shape (n,), where each row is in the batch.
        starts: shape (groups + 1,), where each code's rows begin; empty if there are few rows for the codes.
        codes, times: shape (n,).
        ends: shape (n,), until when each row is kept; the times themselves, or those that the rows name.
        matched: shape (n,), the rows that have had a partner or need none; changed in place.
        last_us: the largest end.
        waiting_us: no unmatched row is earlier.
    """

    batch: pa.RecordBatch
    rows: Int64s
    starts: Int64s
    codes: Int64s
    times: Int64s
    ends: Int64s
    matched: Mask
    last_us: int
    waiting_us: int

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Int64s) -> pa.RecordBatch:
        """The content of rows, by their numbers in the run."""
        return self.batch.take(pa.array(self.rows[rows]))


@dataclass(frozen=True, slots=True)
class Found:
    """Pairs of a row that was searched for and a row of a run.

    Attributes:
        run: the run with the partners.
        wanted, partners: shape (pairs,), rows of the search batch and of the run.
    """

    run: Run
    wanted: Int64s
    partners: Int64s


class TimedRows:
    """All rows that one side keeps.

    Args:
        schema: of the rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        warm_up(find_ranges, merge_rows, order_by_code, order_by_time)
        self._schema = schema
        self._runs: list[Run] = []
        self._forgotten_us = NO_TIME

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(
        self, batch: pa.RecordBatch, codes: Int64s, times: Int64s, matched: Mask, ends: Int64s | None = None
    ) -> None:
        """Keep these rows, except those that have expired; without `ends` they expire by their times."""
        until = times if ends is None else ends
        if self._forgotten_us != NO_TIME and int(until.min(initial=MAX_TIME)) <= self._forgotten_us:
            young = until > self._forgotten_us
            batch, codes, times, matched = batch.filter(pa.array(young)), codes[young], times[young], matched[young]
            ends = None if ends is None else ends[young]
        if len(codes):
            self._runs.append(_run(batch, codes, times, times if ends is None else ends, matched, _order(codes, times)))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._merge_last()

    def find(self, codes: Int64s, times: Int64s, before_us: int, after_us: int) -> Iterator[Found]:
        """The rows of the same key with times from ``time + before_us`` to ``time + after_us``, run by run."""
        for run in self._runs:
            firsts = np.empty(len(codes), np.int64)
            counts = np.empty(len(codes), np.int64)
            if find_ranges(run.starts, run.codes, run.times, codes, times, before_us, after_us, firsts, counts):
                wanted, partners = pairs_of(firsts, counts)
                yield Found(run, wanted, partners)

    def take_unmatched(self, until_us: int) -> Iterator[tuple[pa.RecordBatch, Int64s]]:
        """The unmatched rows up to a time, with their times; they count as matched from now on."""
        for run in self._runs:
            if run.waiting_us > until_us:
                continue
            due = np.flatnonzero(~run.matched & (run.times <= until_us))
            run.matched[due] = True
            run.waiting_us = int(run.times[~run.matched].min(initial=MAX_TIME))
            if len(due):
                yield run.take(due), run.times[due]

    def forget(self, until_us: int) -> None:
        """Let rows up to this time expire."""
        self._forgotten_us = max(self._forgotten_us, until_us)
        self._runs = [run for run in self._runs if run.last_us > until_us]

    def mark_codes(self, used: Mask) -> None:
        """Set ``used[code]`` for the key codes of all rows."""
        for run in self._runs:
            used[run.codes] = True

    def renumber(self, new_codes: Int64s) -> None:
        """Code c becomes ``new_codes[c]``; the order of codes does not change."""
        for run in self._runs:
            run.codes = new_codes[run.codes]
            run.starts = _starts(run.codes)

    def saved(self) -> DelayedEncoding:
        """All rows that have not expired, to be copied off the data path: only ``matched`` may change in the
        meantime."""
        runs = [(run, run.times, run.ends, run.matched.copy()) for run in self._runs]
        schema, after_us = self._schema, self._forgotten_us

        def table() -> pa.Table:
            kept = [ends > after_us for _, _, ends, _ in runs]
            batches = [run.take(np.flatnonzero(mask)) for (run, *_), mask in zip(runs, kept, strict=True)]
            times = [times[mask] for (_, times, _, _), mask in zip(runs, kept, strict=True)]
            matched = [matched[mask] for (*_, matched), mask in zip(runs, kept, strict=True)]
            details = {
                "time": pa.array(np.concatenate([np.empty(0, np.int64), *times])),
                "matched": pa.array(np.concatenate([np.empty(0, np.bool_), *matched])),
            }
            return saved_rows(together(batches, schema), details)

        return table

    def _merge_last(self) -> None:
        last, former = self._runs.pop(), self._runs.pop()
        order = np.empty(len(former) + len(last), np.int64)
        own_ends = former.ends is not former.times or last.ends is not last.times
        after_us = NO_TIME if own_ends else self._forgotten_us
        count = merge_rows(former.codes, former.times, last.codes, last.times, after_us, order)
        order = order[:count]
        ends = np.concatenate([former.ends, last.ends]) if own_ends else None
        if ends is not None:
            order = order[ends[order] > self._forgotten_us]
        if len(order):
            content = pa.concat_batches([former.batch, last.batch])
            rows = np.concatenate([former.rows, last.rows + len(former.batch)])
            rows = rows[order]
            if _CONTENT_PER_ROW * len(rows) < len(content):
                content, rows = content.take(pa.array(rows)), np.arange(len(rows))
            codes = np.concatenate([former.codes, last.codes])
            times = np.concatenate([former.times, last.times])
            matched = np.concatenate([former.matched, last.matched])
            made = _run(content, codes, times, times if ends is None else ends, matched, order)
            made.rows = rows
            self._runs.append(made)


def _run(batch: pa.RecordBatch, codes: Int64s, times: Int64s, ends: Int64s, matched: Mask, order: Int64s) -> Run:
    own_ends = ends is not times
    codes, times, matched = codes[order], times[order], matched[order]
    ends = ends[order] if own_ends else times
    waiting_us = int(times[~matched].min(initial=MAX_TIME))
    return Run(batch, order, _starts(codes), codes, times, ends, matched, int(ends.max()), waiting_us)


def _order(codes: Int64s, times: Int64s) -> Int64s:
    """The order of rows by code, then by time."""
    groups = int(codes.max()) + 1
    if groups <= _CODES_PER_ROW * len(codes):
        starts = np.empty(groups + 1, np.int64)
        order = np.empty(len(codes), np.int64)
        order_by_code(codes, starts, order)
        if order_by_time(times, starts, order, _MOVES_PER_ROW * len(codes)):
            return order
    return np.lexsort((times, codes))


def _starts(codes: Int64s) -> Int64s:
    """Where each code begins in sorted codes; empty if there are few rows for the codes."""
    groups = int(codes[-1]) + 1
    if groups > _CODES_PER_ROW * len(codes):
        return np.empty(0, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=groups), out=starts[1:])
    return starts
