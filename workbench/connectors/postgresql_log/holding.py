"""Copied rows that wait until a checkpoint contains them.

A query that is repeated after a failure finds other rows than before: a row that was deleted meanwhile is not among
them, and no deletion of it follows. Whatever had been passed on would stay for ever in an output that replaces rows,
and in an aggregate behind it. So rows of a query are passed on when they cannot be queried again any more. The log
needs none of this: it is the same whenever it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pyarrow as pa

from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.pieces import table_in, value_in

_BYTES_MAX = 32 * 2**20
_ROWS, _TO = "held", "held_to"


class HeldRows:
    """Rows in the order in which they were copied; without `waits` all of them may be passed on at once."""

    def __init__(self) -> None:
        self._batches: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._waits = False
        self._come = self._free = self._gone = 0  # rows so far: copied, in a checkpoint, passed on

    def __len__(self) -> int:
        return self._come - self._gone

    @property
    def waiting(self) -> int:
        """The number of rows that no complete checkpoint contains."""
        return self._come - self._free

    @property
    def is_full(self) -> bool:
        """Whether no more rows should be copied for now."""
        return self._bytes >= _BYTES_MAX

    def wait(self, waits: bool) -> None:
        """Whether rows wait from now on."""
        self._waits = waits
        if not waits:
            self._free = self._come

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows were copied."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        self._come += batch.num_rows
        self.wait(self._waits)

    def take(self, most: int) -> pa.RecordBatch | None:
        """The next rows that may be passed on, as many as this at most; None: there are none."""
        count = min(most, self._free - self._gone)
        if count <= 0:
            return None
        first = self._batches.popleft()
        self._bytes -= first.nbytes
        if count < first.num_rows:
            rest = first.slice(count)
            self._batches.appendleft(rest)
            self._bytes += rest.nbytes
        rows = first.slice(0, count)
        self._gone += rows.num_rows
        return rows

    def durable(self, snapshot: Snapshot) -> None:
        """A checkpoint with this snapshot is complete."""
        if _TO in snapshot:
            self._free = max(self._free, value_in(snapshot, _TO, int))

    def saved(self) -> Snapshot:
        """What a checkpoint has of them."""
        return {_ROWS: pa.Table.from_batches(self._batches), _TO: self._come} if self else {}

    def restore(self, snapshot: Snapshot, schema: pa.Schema) -> None:
        """Continue from what `saved` returned.

        Args:
            snapshot: of the reader.
            schema: of the rows.

        Raises:
            ValueError: it has another form.
        """
        if _ROWS not in snapshot:
            return
        table = table_in(snapshot, _ROWS)
        if _fields(table.schema) != _fields(schema):
            raise ValueError(f"{_ROWS} has the columns {table.schema.names} of other names or types")
        self._batches.extend(table.to_batches())
        self._bytes = table.nbytes
        self._come = self._free = value_in(snapshot, _TO, int)
        self._gone = self._come - table.num_rows


def _fields(schema: pa.Schema) -> Sequence[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]
