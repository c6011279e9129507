"""The committed rows of a job's TableSinks, in memory.

A subtask commits by appending its rows to a queue, so a task never waits for a table, however large it is. The content
is computed by the next reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from workbench.connectors.contract.plain_types import given_table
from workbench.connectors.tables.latest_rows import LatestRows
from workbench.errors import JobError, unknown
from workbench.operators.changelogs.net_rows import NetRows
from workbench.operators.changelogs.row_kinds import is_changelog, plain_schema, present_rows

_MERGED_ROWS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that one subtask committed."""

    epoch: int
    subtask: int
    rows: pa.Table


class _AllRows:
    """Every row, by epoch, then subtask, then arrival."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._settled: list[_Part] = []  # of earlier epochs than the latest: no rows will be inserted before them
        self._recent: list[_Part] = []
        self._table: pa.Table | None = None
        self.count = 0

    def add(self, part: _Part) -> None:
        if self._recent and part.epoch > self._recent[-1].epoch:
            for recent in self._recent:
                self._settle(recent)
            self._recent = []
        self._recent = sorted([*self._recent, part], key=_order)
        self.count += part.rows.num_rows
        self._table = None

    def _settle(self, part: _Part) -> None:
        """Each merged part is more than twice as long as the next: there are few parts, and each row is merged few
        times."""
        parts = self._settled
        parts.append(part)
        while len(parts) > 1 and parts[-2].rows.num_rows <= min(2 * parts[-1].rows.num_rows, _MERGED_ROWS_MAX):
            newer = parts.pop()
            rows = pa.concat_tables([parts[-1].rows, newer.rows]).combine_chunks()
            parts[-1] = _Part(newer.epoch, newer.subtask, rows)

    def table(self) -> pa.Table:
        if self._table is None:
            rows = [part.rows for part in (*self._settled, *self._recent)]
            self._table = pa.concat_tables(rows) if rows else self._schema.empty_table()
        return self._table


def _order(part: _Part) -> tuple[int, int]:
    return part.epoch, part.subtask


class _LatestPerKey:
    """The latest row of each key, in the order in which they were committed."""

    def __init__(self, keys: Sequence[str], schema: pa.Schema) -> None:
        self._latest = LatestRows(keys, schema)
        self._table: pa.Table | None = schema.empty_table()

    @property
    def count(self) -> int:
        return len(self._latest)

    def add(self, part: _Part) -> None:
        self._table = None
        for batch in part.rows.to_batches():
            self._latest.add(batch, part.epoch)

    def table(self) -> pa.Table:
        if self._table is None:
            self._table = self._latest.table()
        return self._table


class _Changed:
    """The rows that changes have left; those of a key are replaced, without a key equal rows cancel each other."""

    def __init__(self, keys: Sequence[str], schema: pa.Schema) -> None:
        self._rows: LatestRows | NetRows = LatestRows(keys, schema) if keys else NetRows(schema)
        self._table: pa.Table | None = None
        self._schema = schema

    @property
    def count(self) -> int:
        return int(self.table().num_rows)

    def add(self, part: _Part) -> None:
        self._table = None
        for batch in part.rows.to_batches():
            if isinstance(self._rows, LatestRows):
                self._rows.add(batch, part.epoch)
            else:
                self._rows.add(batch)

    def table(self) -> pa.Table:
        if self._table is None:
            self._table = present_rows(self._rows.table())
        return self._table


@dataclass(slots=True)
class _Table:
    """One table: rows committed since the last read, the present content, the last epoch of each subtask."""

    schema: pa.Schema
    upsert: tuple[str, ...]
    view: _AllRows | _LatestPerKey | _Changed
    fresh: deque[_Part] = field(default_factory=deque)
    epochs: dict[int, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    """Held by readers, never by committing tasks."""
    shown: tuple[pa.Table, pa.Table] | None = None
    """The rows at the last read, and the same in the types of their sources."""

    @classmethod
    def empty(cls, schema: pa.Schema, upsert: tuple[str, ...]) -> _Table:
        if is_changelog(schema):
            return cls(schema, upsert, _Changed(upsert, schema))
        return cls(schema, upsert, _LatestPerKey(upsert, schema) if upsert else _AllRows(schema))

    def look(self) -> _AllRows | _LatestPerKey | _Changed:
        """The view of everything committed; requires the lock."""
        fresh = [self.fresh.popleft() for _ in range(len(self.fresh))]
        for part in sorted(fresh, key=_order):
            self.view.add(part)
        return self.view

    def read(self) -> pa.Table:
        """All rows of the view, in the types of their sources; requires the lock."""
        rows = self.look().table()
        if self.shown is None or self.shown[0] is not rows:
            self.shown = rows, given_table(rows, plain_schema(self.schema))
        return self.shown[1]


class Tables:
    """Committed rows by table name; one writer per subtask, any number of readers.

    Example:
        >>> tables = Tables()
        >>> tables.declare("delays", pa.schema([("origin", pa.string())]))
        >>> tables.commit("delays", subtask=0, epoch=1, table=pa.table({"origin": ["JFK"]}))
        >>> tables.rows("delays")
        1
    """

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    def declare(self, name: str, schema: pa.Schema, upsert: Sequence[str] = ()) -> None:
        """Register a table, so that it has its schema before its first row; a registered one keeps its rows.

        Args:
            upsert: key columns; with them the table keeps only the latest row of each key.
        """
        if name not in self._tables:
            self._tables[name] = _Table.empty(schema, tuple(upsert))

    def commit(self, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        """Make the rows of one subtask and epoch visible; does nothing if they are. Returns at once.

        A subtask's epochs are committed in increasing order.
        """
        entry = self._entry(name)
        if epoch > entry.epochs.get(subtask, 0):
            entry.fresh.append(_Part(epoch, subtask, table))
            entry.epochs[subtask] = epoch

    def read(self, name: str) -> pa.Table:
        """All committed rows, by epoch, then subtask, then arrival; of an upsert table the latest row per key.

        Raises:
            JobError: no such table; the error lists all names.
        """
        entry = self._entry(name)
        with entry.lock:
            return entry.read()

    def rows(self, name: str) -> int:
        """The number of rows that ``read`` returns; cheap: each committed row is processed once."""
        entry = self._entry(name)
        with entry.lock:
            return entry.look().count

    def names(self) -> list[str]:
        """The names of all tables, sorted."""
        return sorted(self._tables.copy())

    def last_epoch(self, name: str, subtask: int | None = None) -> int:
        """The latest epoch with committed rows, of `subtask` or of any; 0 if there is none."""
        epochs = self._entry(name).epochs.copy()
        return max(epochs.values(), default=0) if subtask is None else epochs.get(subtask, 0)

    def clear(self, name: str) -> None:
        """Drop all rows of a table, for a new start of a job; the table stays registered."""
        entry = self._entry(name)
        self._tables[name] = _Table.empty(entry.schema, entry.upsert)

    def _entry(self, name: str) -> _Table:
        entry = self._tables.get(name)
        if entry is None:
            raise JobError(unknown("table", name, self._tables.copy()))
        return entry
