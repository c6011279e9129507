"""State on disk as of one moment: all of its rows, or those that have changed since an earlier moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from workbench.durable.delayed_encoding import GONE

_MOMENTS = 4
"""The number of moments that are kept: the latest complete checkpoint is usually the last one or the one before."""
_CHANGED_MAX = 1_000_000
"""The maximum number of keys that are recorded as changed; if there are more, all rows are written."""


@dataclass(frozen=True, slots=True, eq=False)
class RowsOnDisk:
    """The rows of a store at one moment; calling it returns a reader of all of them.

    Attributes:
        moment: identifies the moment, unique over all stores.
        schema: of the rows.
        all_rows: reads them in batches.
        some_rows: reads those of some keys, with a column that marks deleted ones.
        changes: the keys changed up to each of the last moments, latest first; None if there were too many.
    """

    moment: tuple[object, int]
    schema: pa.Schema
    all_rows: Callable[[], Iterator[pa.RecordBatch]]
    some_rows: Callable[[Sequence[bytes]], Iterator[pa.RecordBatch]]
    changes: tuple[tuple[int, frozenset[bytes] | None], ...]

    def __call__(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self.all_rows())

    def since(self, moment: object) -> pa.RecordBatchReader | None:
        """A reader of the rows that have changed since `moment`, or None if that is not known any more."""
        store, number = self.moment
        if not isinstance(moment, tuple) or moment[0] is not store or number - moment[1] > len(self.changes):
            return None
        keys: set[bytes] = set()
        for at, changed in self.changes:
            if at > moment[1]:
                if changed is None:
                    return None
                keys |= changed
        return pa.RecordBatchReader.from_batches(self.schema.append(GONE), self.some_rows(sorted(keys)))


class ChangedKeys:
    """The keys of a store that have changed between its last moments."""

    def __init__(self) -> None:
        self._store = object()
        self._number = 0
        self._changed: set[bytes] | None = set()
        self._before: tuple[tuple[int, frozenset[bytes] | None], ...] = ()

    def note(self, keys: Sequence[bytes]) -> None:
        """Record that the rows of these keys are written or deleted."""
        if self._changed is not None:
            self._changed.update(keys)
            if len(self._changed) > _CHANGED_MAX:
                self._changed = None

    def moment(self) -> tuple[tuple[object, int], tuple[tuple[int, frozenset[bytes] | None], ...]]:
        """Start a new moment; returns it with the changes up to it and up to those before."""
        self._number += 1
        latest = None if self._changed is None else frozenset(self._changed)
        self._before = ((self._number, latest), *self._before[: _MOMENTS - 1])
        self._changed = set()
        return (self._store, self._number), self._before
