"""Windows that keep their records until they end, for functions that need them all and for evictors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Mask
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.window_functions import AnyAggregation, by_group
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.changed_types import as_type
from workbench.operators.snapshots.pieces import numbers_in, table_in
from workbench.operators.windows.contents import Fired, Incoming, Results
from workbench.windows import Evictor

_UNUSED = 0.5  # the share of kept records without a window at which they are dropped
_NUMBER = "workbench:number"
"""A column that every batch has, so that it has rows even if no function reads a column: the record's number."""


class WindowFunction(Protocol):
    """Computes results from the records of windows."""

    def compute(self, fired: Fired, records: pa.RecordBatch, groups: Int64s, bounds: Int64s) -> Results:
        """The results of windows.

        Args:
            fired: f windows.
            records: n records, window after window, each in the order of arrival.
            groups: shape (n,), the window of each record, from 0.
            bounds: shape (f + 1,): window w has the rows [bounds[w], bounds[w + 1]).
        """


class WholeAggregates:
    """Aggregates of any kind, computed from all records of a window."""

    def __init__(self, aggregations: Sequence[AnyAggregation], schema: pa.Schema) -> None:
        self._aggregations = aggregations
        running = [item for item in aggregations if isinstance(item, Aggregation)]
        self._accumulators = Accumulators(running, schema) if running else None

    def compute(self, fired: Fired, records: pa.RecordBatch, groups: Int64s, bounds: Int64s) -> Results:
        windows = np.arange(len(fired.entries))
        folded: list[pa.Array] = []
        if self._accumulators is not None:
            self._accumulators.grow(len(windows))
            self._accumulators.clear(windows)
            self._accumulators.update(groups, records)
            folded = self._accumulators.results(windows)
        rest = iter(folded)
        columns = [
            next(rest) if isinstance(item, Aggregation) else item.results(records.column(item.column), groups, bounds)
            for item in self._aggregations
        ]
        return Results(columns)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Records, and the entries that they belong to.

    Attributes:
        batch: the needed columns, and the number of each record in the order of arrival.
        times: shape (records,), NO_TIME where a record has none.
        entries, rows: shape (pairs,).
    """

    batch: pa.RecordBatch
    times: Int64s
    entries: Int64s
    rows: Int64s

    @property
    def numbers(self) -> Int64s:
        """Shape (records,): the number of each record."""
        numbers: Int64s = self.batch.column(_NUMBER).to_numpy()
        return numbers

    def without(self, gone: Mask) -> _Kept:
        """The same without these pairs, and without unreferenced records if there are many."""
        entries, rows = self.entries[~gone], self.rows[~gone]
        used = np.zeros(len(self.times), np.bool_)
        used[rows] = True
        if used.sum() > _UNUSED * len(used):
            return _Kept(self.batch, self.times, entries, rows)
        position = np.cumsum(used) - 1
        return _Kept(self.batch.filter(pa.array(used)), self.times[used], entries, position[rows])


class KeptRecords:
    """Holds the records of windows; a record that belongs to several windows is held once.

    Args:
        columns: the names of the needed columns.
        schema: of the records.
        function: computes results.
        evictor: first decides which records stay.
    """

    def __init__(
        self, columns: Sequence[str], schema: pa.Schema, function: WindowFunction, evictor: Evictor | None
    ) -> None:
        self._columns = list(columns)
        self._schema = pa.schema([*(schema.field(name) for name in columns), pa.field(_NUMBER, pa.int64())])
        self._function = function
        self._evictor = evictor
        self._parts: list[_Kept] = []
        self._into: Int64s = np.empty(0, np.int64)  # by entry: the entry that its records belong to now

    def grow(self, entries: int) -> None:
        known = len(self._into)
        if entries > known:
            self._into = np.concatenate([self._into, np.arange(known, max(entries, 2 * known))])

    def add(self, entries: Int64s, rows: Int64s | None, incoming: Incoming) -> None:
        batch = incoming.batch
        n = batch.num_rows
        times = np.full(n, NO_TIME) if incoming.times is None else incoming.times
        columns = [batch.column(name) for name in self._columns]
        columns.append(pa.array(np.arange(incoming.first, incoming.first + n)))
        some = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if rows is None:
            rows = np.arange(n)
        else:
            used, rows = np.unique(rows, return_inverse=True)
            if len(used) < n:
                some, times = some.take(pa.array(used)), times[used]
        self._parts.append(_Kept(some, times, entries, rows))

    def move(self, sources: Int64s, targets: Int64s) -> None:
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            self._into[source] = target

    def _kept(self) -> _Kept:
        """All records in one piece, with their present entries."""
        into = self._into
        while not np.array_equal(into[into], into):
            into = into[into]
        self._into = into
        parts = self._parts
        if len(parts) == 1:
            [part] = parts
            whole = _Kept(part.batch, part.times, into[part.entries], part.rows)
        elif parts:
            offsets = np.cumsum([0] + [len(part.times) for part in parts[:-1]]).tolist()
            whole = _Kept(
                pa.concat_batches([part.batch for part in parts]),
                np.concatenate([part.times for part in parts]),
                into[np.concatenate([part.entries for part in parts])],
                np.concatenate([part.rows + offset for part, offset in zip(parts, offsets, strict=True)]),
            )
        else:
            none = np.empty(0, np.int64)
            columns = [pa.array([], item.type) for item in self._schema]
            whole = _Kept(pa.RecordBatch.from_arrays(columns, schema=self._schema), none, none, none)
        self._parts = [whole]
        return whole

    def _forget(self, entries: Int64s) -> None:
        gone = np.zeros(len(self._into), np.bool_)
        gone[entries] = True
        kept = self._kept()
        self._parts = [kept.without(gone[kept.entries])]

    def purge(self, entries: Int64s) -> None:
        self._forget(entries)

    def release(self, entries: Int64s) -> None:
        self._forget(entries)

    def retain(self, entries: Int64s) -> None:
        kept = self._kept()
        code = np.full(len(self._into), -1)
        code[entries] = np.arange(len(entries))
        kept = kept.without(code[kept.entries] < 0)
        self._parts = [_Kept(kept.batch, kept.times, code[kept.entries], kept.rows)]
        self._into = np.arange(len(entries))

    def results(self, fired: Fired) -> Results:
        kept = self._kept()
        group_of = np.full(len(self._into), -1)
        group_of[fired.entries] = np.arange(len(fired.entries))
        groups = group_of[kept.entries]
        pairs = np.flatnonzero(groups >= 0)
        numbers = kept.numbers[kept.rows[pairs]]
        if np.any(numbers[1:] < numbers[:-1]):  # rare: records arrive in order
            pairs = pairs[np.argsort(numbers, kind="stable")]
        pairs = pairs[by_group(groups[pairs], len(fired.entries))]
        groups, rows = groups[pairs], kept.rows[pairs]
        records = kept.batch.take(pa.array(rows))
        bounds = np.searchsorted(groups, np.arange(len(fired.entries) + 1))
        if self._evictor is not None:
            stays = self._evictor.keep_in_windows(records, kept.times[rows], bounds)
            if not stays.all():
                evicted = np.zeros(len(kept.entries), np.bool_)
                evicted[pairs[~stays]] = True
                self._parts = [kept.without(evicted)]
                records, groups = records.filter(pa.array(stays)), groups[stays]
                bounds = np.searchsorted(groups, np.arange(len(fired.entries) + 1))
        return self._function.compute(fired, records, groups, bounds)

    def glance(self, entries: Int64s) -> dict[str, pa.Array]:
        counts = np.bincount(self._kept().entries, minlength=len(self._into))
        return {"records": pa.array(counts[entries])}

    def state_names(self) -> Sequence[str]:
        return []

    def state_columns(self, entries: Int64s) -> list[pa.Array]:
        return []

    def state_tables(self, entries: Int64s) -> Snapshot:
        """``records``: the columns, number and time of each; ``members``: pairs of a row of these and an entry."""
        kept = self._kept()
        code = np.full(len(self._into), -1)
        code[entries] = np.arange(len(entries))
        kept = kept.without(code[kept.entries] < 0)
        names = [*(f"record:{name}" for name in self._columns), "number", "time"]
        records = pa.Table.from_arrays([*kept.batch.columns, pa.array(kept.times)], names=names)
        return {"records": records, "members": pa.table({"entry": code[kept.entries], "row": kept.rows})}

    def load(self, entries: Int64s, table: pa.Table, places: Int64s, tables: Snapshot) -> None:
        records, members = table_in(tables, "records"), table_in(tables, "members")
        windows = table_in(tables, "windows").num_rows
        of_member = numbers_in(members, "entry", 0, windows)
        entry_of = np.full(windows, -1)
        entry_of[places] = entries
        mine = entry_of[of_member] >= 0
        used, rows = np.unique(numbers_in(members, "row", 0, records.num_rows)[mine], return_inverse=True)
        records = records.take(pa.array(used))
        columns = [
            as_type(records.column(f"record:{name}"), f"record:{name}", self._schema.field(name).type)
            for name in self._columns
        ]
        columns.append(pa.array(numbers_in(records, "number")))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._parts.append(_Kept(batch, numbers_in(records, "time"), entry_of[of_member[mine]], rows))
