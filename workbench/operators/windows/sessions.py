"""The sessions of keys: finds the sessions of records, and merges sessions that a record connects."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.compiled import place_in_sessions, warm_up
from workbench.compiled.machinery.codes import NOWHERE
from workbench.durations import LONGEST_US
from workbench.elements import Int64s
from workbench.errors import RecordError
from workbench.operators.windows.columns import EntryColumns
from workbench.operators.windows.places import Placement, Places
from workbench.windows.session import Session


class SessionPlaces(Places):
    """Each entry is a session; ``kernels.sessions`` describes how a key's sessions are linked."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._count = 0
        warm_up(place_in_sessions)
        self._apart = session.column is None
        self._entries = EntryColumns({"owner": 0, "start": 0, "end": 0, "earlier": NOWHERE})
        self._latest = EntryColumns({"latest": NOWHERE})  # by key code

    def __len__(self) -> int:
        return self._count

    def place(self, keys: Int64s, times: Int64s | None, closed_end: int, batch: pa.RecordBatch | None) -> Placement:
        assert times is not None
        n = len(keys)
        self._latest.grow(int(keys.max(initial=-1)) + 1)
        self._entries.grow(self._count + n)
        gaps = self._gaps(batch, n)
        # A gap of one length reaches two sessions at most; a gap of variable length, or sessions of a restored
        # checkpoint that overlap, may reach all.
        room = n if self._apart else n + self._count
        entries, starts, ends = np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        moves = np.empty((room, 3), np.int64)
        columns = self._entries
        self._count, moved = place_in_sessions(
            keys,
            np.ascontiguousarray(times),
            gaps,
            closed_end,
            self._latest["latest"],
            columns["earlier"],
            columns["owner"],
            columns["start"],
            columns["end"],
            self._count,
            entries,
            starts,
            ends,
            moves,
        )
        moves = moves[:moved].copy()
        late = entries == NOWHERE
        if not late.any():
            return Placement(None, entries, starts, ends, None, moves)
        rows = np.flatnonzero(~late)
        moves[:, 0] = np.searchsorted(rows, moves[:, 0])
        return Placement(rows, entries[rows], starts[rows], ends[rows], late, moves)

    def _gaps(self, batch: pa.RecordBatch | None, n: int) -> Int64s:
        name = self._session.column
        if name is None or batch is None:
            return np.full(n, self._session.gap_us)
        column = batch.column(name)
        kind = pa.duration("us") if pa.types.is_duration(column.type) else pa.int64()
        try:
            gaps = pc.cast(column, options=pc.CastOptions(kind, allow_time_truncate=True)).view(pa.int64())
        except pa.ArrowInvalid:  # of another unit, and beyond 64 bits in microseconds
            longest = pc.max(column.view(pa.int64()) if pa.types.is_duration(column.type) else column)
            raise self._refused(f"{longest} as {column.type}") from None
        if gaps.null_count:
            raise self._refused("null")
        for bound in pc.min_max(gaps).values():
            us = bound.as_py()
            if us is not None and not 0 < us <= LONGEST_US:
                raise self._refused(str(us))
        found: Int64s = gaps.to_numpy()
        return found

    def _refused(self, gap: str) -> RecordError:
        return RecordError(
            f"the column {self._session.column!r} has the session gap {gap}: a gap must be above zero and at most "
            "2**61 microseconds, 73,000 years; filter such records out or give them another with with_columns"
        )

    def windows(self) -> tuple[Int64s, Int64s, Int64s]:
        columns = self._entries
        return columns["owner"][: self._count], columns["start"][: self._count], columns["end"][: self._count]

    def add(self, keys: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
        entries = np.arange(self._count, self._count + len(keys))
        self._count += len(keys)
        self._entries.grow(self._count)
        for name, values in (("owner", keys), ("start", starts), ("end", ends)):
            self._entries[name][entries] = values
        self._link(entries)
        return entries

    def _link(self, entries: Int64s) -> None:
        """Add these to the lists of their keys, which have no others."""
        owners, starts = self._entries["owner"][entries], self._entries["start"][entries]
        self._latest.grow(int(owners.max(initial=-1)) + 1)
        ordered = entries[np.lexsort((-starts, owners))]
        owners = self._entries["owner"][ordered]
        first = np.ones(len(ordered), np.bool_)
        first[1:] = owners[1:] != owners[:-1]
        self._latest["latest"][owners[first]] = ordered[first]
        self._entries["earlier"][ordered] = NOWHERE
        follows = np.flatnonzero(~first)
        ends, starts = self._entries["end"][ordered], self._entries["start"][ordered]
        if (ends < starts).any() or (ends[follows] >= starts[follows - 1]).any():
            self._apart = False
        self._entries["earlier"][ordered[follows - 1]] = ordered[follows]

    def retain(self, entries: Int64s, codes: Int64s) -> None:
        self._entries.retain(entries)
        self._entries["owner"][:] = codes[self._entries["owner"]]
        self._count = len(entries)
        self._latest = EntryColumns({"latest": NOWHERE})
        self._link(np.arange(self._count))
