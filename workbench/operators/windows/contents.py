"""The contents of windows: running aggregates, a row of cells per entry; ``window_rows`` keeps records instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.operators.aggregates.accumulators import Accumulators
from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.contract.base import Snapshot
from workbench.state.key_table import KeyTable
from workbench.windows.sliding import Sliding


@dataclass(frozen=True, slots=True)
class Incoming:
    """Arriving records.

    Attributes:
        batch: n records.
        times: shape (n,), NO_TIME where a record has none; None: no record has one.
        first: the number of the first among all records received so far.
    """

    batch: pa.RecordBatch
    times: Int64s | None
    first: int


@dataclass(frozen=True, slots=True)
class Fired:
    """Windows that fire together.

    Attributes:
        entries: shape (f,), distinct.
        keys: their keys, f rows.
        starts, ends: shape (f,), their bounds.
    """

    entries: Int64s
    keys: pa.RecordBatch
    starts: Int64s
    ends: Int64s


@dataclass(frozen=True, slots=True)
class Results:
    """The results of fired windows.

    Attributes:
        columns: the output columns after the window's bounds.
        which: for each output row the index of its window among those that fired; None: one row each.
    """

    columns: list[pa.Array]
    which: Int64s | None = None


class Contents(Protocol):
    """Holds the contents of windows, by entry."""

    def grow(self, entries: int) -> None:
        """Make room for entries 0 to entries - 1."""

    def add(self, entries: Int64s, rows: Int64s | None, incoming: Incoming) -> None:
        """Add records to entries.

        Args:
            entries: shape (pairs,).
            rows: shape (pairs,), ascending, the record of each pair; None: each record has one, in order.
            incoming: the records.
        """

    def move(self, sources: Int64s, targets: Int64s) -> None:
        """Move everything in ``sources[i]`` to ``targets[i]``, for each i in turn."""

    def purge(self, entries: Int64s) -> None:
        """Empty these entries; they stay in use."""

    def release(self, entries: Int64s) -> None:
        """Release these entries: they are over, and their contents are no longer needed."""

    def retain(self, entries: Int64s) -> None:
        """Keep only these; ``entries[i]`` becomes entry i."""

    def results(self, fired: Fired) -> Results:
        """The present results of these windows."""

    def glance(self, entries: Int64s) -> dict[str, pa.Array]:
        """The contents of these entries for display; nothing changes."""

    def state_names(self) -> Sequence[str]:
        """The names of ``state_columns``."""

    def state_columns(self, entries: Int64s) -> list[pa.Array]:
        """A copy of the few numbers that are kept for each entry."""

    def state_tables(self, entries: Int64s) -> Snapshot:
        """A copy of everything else; entries are numbered 0, 1, ... in the given order."""

    def load(self, entries: Int64s, table: pa.Table, places: Int64s, tables: Snapshot) -> None:
        """Restore a snapshot.

        Args:
            entries: shape (e,), the target entries.
            table: e rows with ``state_columns``.
            places: shape (e,), the numbers of the entries in `tables`.
            tables: ``state_tables``.
        """


@runtime_checkable
class Revises(Protocol):
    """Contents that keep the rows that windows have emitted."""

    def revised(self, entries: Int64s, rows: pa.RecordBatch, which: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """The changes to other rows.

        Args:
            entries: shape (f,), the windows that fire.
            rows: what they emit now.
            which: shape (rows,), the window of each, as an index of `entries`.

        Returns:
            The changes, and the window of each.
        """


class RunningAggregates:
    """Aggregates that are folded record by record: a few numbers per window, for any number of records."""

    def __init__(self, aggregates: Sequence[tuple[str, Aggregation]], schema: pa.Schema) -> None:
        self._names = [name for name, _ in aggregates]
        self._accumulators = Accumulators([aggregation for _, aggregation in aggregates], schema)

    def grow(self, entries: int) -> None:
        self._accumulators.grow(entries)

    def add(self, entries: Int64s, rows: Int64s | None, incoming: Incoming) -> None:
        batch = incoming.batch
        self._accumulators.update(entries, batch if rows is None else batch.take(pa.array(rows)))

    def add_panes(self, entries: Int64s, panes: Int64s, folded: Accumulators) -> None:
        """Add panes that were folded before to entries; both of shape (pairs,)."""
        self._accumulators.merge(folded, panes, entries)

    def move(self, sources: Int64s, targets: Int64s) -> None:
        self._accumulators.merge(self._accumulators, sources, targets)

    def purge(self, entries: Int64s) -> None:
        self._accumulators.clear(entries)

    def release(self, entries: Int64s) -> None:
        """Does nothing: they are packed together with the entries."""

    def retain(self, entries: Int64s) -> None:
        self._accumulators.retain(entries)

    def results(self, fired: Fired) -> Results:
        return Results(self._accumulators.results(fired.entries))

    def glance(self, entries: Int64s) -> dict[str, pa.Array]:
        return dict(zip(self._names, self._accumulators.results(entries), strict=True))

    def state_names(self) -> Sequence[str]:
        return [field.name for field in self._accumulators.state_fields()]

    def state_columns(self, entries: Int64s) -> list[pa.Array]:
        return self._accumulators.state_columns(entries)

    def state_tables(self, entries: Int64s) -> Snapshot:
        return {}

    def load(self, entries: Int64s, table: pa.Table, places: Int64s, tables: Snapshot) -> None:
        self._accumulators.load(entries, table)


@dataclass(frozen=True, slots=True)
class FoldedPanes:
    """A batch of records, folded by key and pane.

    Attributes:
        of_row: shape (n,), the pane of each record.
        keys, times: shape (p,), the key code and start of each pane.
        accumulators: with the panes as slots.
    """

    of_row: Int64s
    keys: Int64s
    times: Int64s
    accumulators: Accumulators


class PaneFolder:
    """Folds the records of a batch that go to the same sliding windows, so that they are added to many windows at
    once."""

    def __init__(self, window: Sliding, aggregations: Sequence[Aggregation], schema: pa.Schema) -> None:
        self._window = window
        self._accumulators = Accumulators(aggregations, schema)

    def fold(self, keys: Int64s, times: Int64s, batch: pa.RecordBatch) -> FoldedPanes:
        """Fold one batch; the result is valid until the next call."""
        starts, panes = KeyTable(), KeyTable()
        of_row = panes.codes(starts.codes(self._window.panes(times)) << 32 | keys)
        both = panes.keys()
        self._accumulators.grow(len(both))
        self._accumulators.clear(np.arange(len(both)))
        self._accumulators.update(of_row, batch)
        return FoldedPanes(of_row, both & 0xFFFFFFFF, starts.keys()[both >> 32], self._accumulators)
