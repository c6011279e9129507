"""The committed rows of a job's TableSinks, in memory.

Every subtask of a sink commits to a shard of its own, and replaces the shard's tuple of parts as a whole; a reader
takes the tuples as they are. So nobody waits for anybody: the interpreter makes each replacement atomic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.errors import JobError, unknown


def last_per_key(table: pa.Table, keys: Sequence[str]) -> Int64s:
    """The row indices, ascending, of the last row of each key; a null is a key like any other."""
    names = [f"k{index}" for index in range(len(keys))]
    numbers = pa.array(np.arange(table.num_rows, dtype=np.int64))
    numbered = pa.table([*(table.column(key) for key in keys), numbers], names=[*names, "row"])
    last = numbered.group_by(names, use_threads=False).aggregate([("row", "max")]).column("row_max").to_numpy()
    return np.sort(last)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that one subtask committed; `epochs` has shape (rows,) where parts of several epochs were merged."""

    epoch: int
    rows: pa.Table
    epochs: Int64s

    def merge(self, newer: _Part, keys: Sequence[str]) -> _Part:
        rows = pa.concat_tables([self.rows, newer.rows])
        kept = last_per_key(rows, keys)
        return _Part(newer.epoch, rows.take(kept).combine_chunks(), np.concatenate([self.epochs, newer.epochs])[kept])


@dataclass(slots=True)
class _Table:
    """One table: a tuple of parts and the last committed epoch per shard."""

    schema: pa.Schema
    upsert: tuple[str, ...]
    shards: dict[int, tuple[_Part, ...]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    view: tuple[list[tuple[int, tuple[_Part, ...]]], pa.Table] | None = None


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
        """Make a table known, so that it has its schema before its first row; a known one keeps its rows.

        Args:
            upsert: key columns; with them the table keeps only the latest row of each key.
        """
        self._tables.setdefault(name, _Table(schema, tuple(upsert)))

    def commit(self, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        """Make the rows of one subtask and epoch visible; done already means nothing to do.

        A subtask's epochs are committed in increasing order.
        """
        entry = self._entry(name)
        if epoch <= entry.epochs.get(subtask, 0):
            return
        epochs = np.full(table.num_rows, epoch, dtype=np.int64) if entry.upsert else np.empty(0, dtype=np.int64)
        parts = [*entry.shards.get(subtask, ()), _Part(epoch, table, epochs)]
        # Each part is more than twice as long as the next one: fewer rows than two per key, and each row is
        # merged a logarithmic number of times.
        while entry.upsert and len(parts) > 1 and parts[-2].rows.num_rows <= 2 * parts[-1].rows.num_rows:
            newer = parts.pop()
            parts[-1] = parts[-1].merge(newer, entry.upsert)
        entry.shards[subtask] = tuple(parts)
        entry.epochs[subtask] = epoch

    def read(self, name: str) -> pa.Table:
        """All committed rows, by epoch, then subtask, then arrival; of an upsert table the latest row per key.

        Raises:
            JobError: no such table; the error lists all names.
        """
        entry = self._entry(name)
        shards = sorted(entry.shards.copy().items())
        view = entry.view
        if (
            view is not None
            and len(view[0]) == len(shards)
            and all(old[0] == new[0] and old[1] is new[1] for old, new in zip(view[0], shards, strict=True))
        ):
            return view[1]
        parts = [(part.epoch, subtask, part) for subtask, shard in shards for part in shard]
        if not entry.upsert:
            parts.sort(key=lambda item: item[:2])
        rows = pa.concat_tables([entry.schema.empty_table(), *(part.rows for _, _, part in parts)])
        if entry.upsert and parts:
            epochs = np.concatenate([part.epochs for _, _, part in parts])
            # A stable sort: parts stand in the order of subtasks and, within one, of arrival.
            by_age = np.argsort(epochs, kind="stable")
            rows = rows.take(by_age)
            rows = rows.take(last_per_key(rows, entry.upsert))
        entry.view = (shards, rows)
        return rows

    def rows(self, name: str) -> int:
        """How many rows ``read`` returns; cheap: nothing is computed twice between two commits."""
        entry = self._entry(name)
        if entry.upsert:
            return int(self.read(name).num_rows)
        return sum(int(part.rows.num_rows) for shard in entry.shards.copy().values() for part in shard)

    def names(self) -> list[str]:
        """The names of all tables, sorted."""
        return sorted(self._tables.copy())

    def last_epoch(self, name: str, subtask: int | None = None) -> int:
        """The latest epoch of which rows are committed, by `subtask` or by any; 0 when there is none."""
        epochs = self._entry(name).epochs.copy()
        return max(epochs.values(), default=0) if subtask is None else epochs.get(subtask, 0)

    def clear(self, name: str) -> None:
        """Forget all rows of a table, for a job that starts anew; the table stays declared."""
        entry = self._entry(name)
        self._tables[name] = _Table(entry.schema, entry.upsert)

    def _entry(self, name: str) -> _Table:
        entry = self._tables.get(name)
        if entry is None:
            raise JobError(unknown("table", name, self._tables.copy()))
        return entry
