"""The state of all keys of a subtask: one object per key, found by the key's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.state.key_index import KeyIndex
from workbench.state.layout import State, StateLayout

_FEW = 4_096  # fewer keys are not worth packing
_SWEPT = 256  # keys checked for expired state in each step


class KeyedStates(Protocol):
    """Stores the state of a subtask's keys.

    Attributes:
        index: codes of the keys that have an object in memory.
        objects: by code.
    """

    index: KeyIndex
    objects: list[State]

    def codes(self, batch: pa.RecordBatch) -> Int64s:
        """Shape (n,): the code of each row's key; afterwards each of them has an object."""

    def settle(self, pinned: Callable[[], Int64s]) -> Int64s | None:
        """Release memory after a step, if necessary; keys with the codes that `pinned` returns stay.

        Returns:
            The new code of each former one (-1 if the key is no longer in memory), or None if they have not changed.
        """

    def find(self, batch: pa.RecordBatch) -> State | None:
        """The state of the key in the first row, or None if it has none; nothing is added."""

    def keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """The number of keys with state, and at most `limit` of them."""

    def table(self) -> pa.Table | Callable[[], pa.RecordBatchReader]:
        """All present state, with a row for each key that has any: ``key:`` columns, then those of the layout.

        Raises:
            StateTypeError: a field holds a value that its type cannot represent; its `at` is a code.

        Returns:
            The table, or a function that reads it in the background, batch by batch.
        """

    def load(self, table: pa.Table, keys: pa.RecordBatch) -> None:
        """Restore rows of such a table; `keys` has their key columns under their own names. Codes are not kept.

        State on disk can be restored only once, before any key is used.
        """

    def close(self) -> None:
        """Release files."""


class StatesInMemory:
    """Every key's object stays in memory until its state is cleared or has expired.

    Args:
        index: of the keys, empty.
        layout: of the state.
    """

    def __init__(self, index: KeyIndex, layout: StateLayout) -> None:
        self.index = index
        self.objects: list[State] = []
        self._layout = layout
        self._pack_at = _FEW
        self._swept = 0

    def codes(self, batch: pa.RecordBatch) -> Int64s:
        codes = self.index.codes(batch)
        missing = len(self.index) - len(self.objects)
        if missing:
            make = self._layout.make
            self.objects.extend([make() for _ in range(missing)])
        return codes

    def settle(self, pinned: Callable[[], Int64s]) -> Int64s | None:
        if self._layout.expires:
            self._sweep()
        if len(self.objects) < self._pack_at:
            return None
        used = self._layout.used(self.objects)
        used[pinned()] = True
        live = np.flatnonzero(used)
        self._pack_at = max(_FEW, 2 * len(live))
        if 2 * len(live) > len(self.objects):
            return None
        mapping = self.index.retain(live)
        self.objects = [self.objects[code] for code in live.tolist()]
        self._swept = 0
        return mapping

    def _sweep(self) -> None:
        """Check some more keys for expired state."""
        begin = self._swept if self._swept < len(self.objects) else 0
        self._swept = begin + _SWEPT
        for state in self.objects[begin : self._swept]:
            self._layout.purge(state)

    def find(self, batch: pa.RecordBatch) -> State | None:
        code = int(self.index.find(batch)[0])
        return None if code < 0 or self._layout.is_fresh(self.objects[code]) else self.objects[code]

    def keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        used = np.flatnonzero(self._layout.used(self.objects))
        return len(used), self.index.keys_table(used[:limit]).to_pylist()

    def table(self) -> pa.Table:
        columns = self._layout.columns(self.objects)  # of all objects, so that an error's index is a code
        codes = np.flatnonzero(self._layout.used(self.objects))
        table = with_keys(self.index.keys_table(), columns, self._layout.schema().names)
        return table if len(codes) == len(self.objects) else table.take(pa.array(codes))

    def load(self, table: pa.Table, keys: pa.RecordBatch) -> None:
        columns = {name: table.column(name).to_pylist() for name in table.schema.names}
        place(self.objects, self.codes(keys), self._layout.objects(columns, table.num_rows))

    def close(self) -> None:
        self.objects.clear()


def place(objects: list[State], codes: Int64s, states: Sequence[State]) -> None:
    """Store states at the indices of their codes."""
    for code, state in zip(codes.tolist(), states, strict=True):
        objects[code] = state


def with_keys(keys: pa.RecordBatch, columns: Sequence[pa.Array], names: Sequence[str]) -> pa.Table:
    """Key columns, called ``key:NAME``, and other columns next to them."""
    return pa.Table.from_arrays(
        [*keys.columns, *columns], names=[*(f"key:{name}" for name in keys.schema.names), *names]
    )
