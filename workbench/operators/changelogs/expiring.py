"""State that is dropped when its key has been quiet for a time: Flink's ``STATE_TTL``, in event time.

The time of a key is that of its latest record. At the first watermark that is the time to live behind it, the key is
forgotten, and nothing is emitted: a later record of the key begins anew. Watermarks are looked at in eighths of the
time to live, so state is kept at least that long, and at most an eighth longer. Records without event time keep their
keys for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Mask, Records
from workbench.operators.contract.base import Json, Operator, OperatorContext, Output, Snapshot
from workbench.operators.snapshots.keyed_snapshot import key_rows, owned_table
from workbench.operators.snapshots.pieces import codes_in, numbers_in
from workbench.state.key_index import KeyIndex
from workbench.state.keyed_states import with_keys

_STEPS = 8
_CHANGED = "changed"


@runtime_checkable
class Expires(Protocol):
    """A spec of an operator whose state can have a time to live.

    Attributes:
        ttl_us: in microseconds of event time; None: state is kept for ever.
    """

    ttl_us: int | None


class Sweeps:
    """At which watermarks state is looked through.

    Args:
        ttl_us: the time to live.

    Example:
        >>> sweeps = Sweeps(80)
        >>> sweeps.due(125), sweeps.due(129), sweeps.due(131)
        (40, None, 50)
    """

    __slots__ = ("_last_us", "_step_us", "_ttl_us")

    def __init__(self, ttl_us: int) -> None:
        self._ttl_us = ttl_us
        self._step_us = max(ttl_us // _STEPS, 1)
        self._last_us = NO_TIME

    def due(self, watermark_us: int) -> int | None:
        """State up to this time has expired; None: nothing is to be done."""
        now_us = watermark_us // self._step_us * self._step_us
        if now_us <= self._last_us:
            return None
        self._last_us = now_us
        return now_us - self._ttl_us


class Expiring(Operator):
    """State: that of another operator, and by key the time of its latest record.

    Args:
        make: returns the operator without state.
        keys: of its state.
        schema: of the records.
        ttl_us: the time to live, in microseconds.
        once: whether only the first record of a key counts, because no other one changes its state.
    """

    def __init__(
        self, make: Callable[[], Operator], keys: tuple[str, ...], schema: pa.Schema, ttl_us: int, once: bool
    ) -> None:
        self._make = make
        self._inner = make()
        self._keys = keys
        self._once = once
        self._index = KeyIndex(keys, schema)
        self._times: Int64s = np.empty(0, np.int64)
        self._sweeps = Sweeps(ttl_us)

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._inner.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        codes, times = self._index.codes(records.batch), records.timestamps
        known = self._grow()
        if times is not None:
            if self._once:
                codes, times = codes[codes >= known], times[codes >= known]
            np.maximum.at(self._times, codes, times)
        self._inner.process(records, port, out)

    def _grow(self) -> int:
        known, keys = len(self._times), len(self._index)
        if keys > known:
            self._times = np.concatenate([self._times, np.full(keys - known, NO_TIME)])
        return known

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        until_us = self._sweeps.due(watermark_us)
        if until_us is not None:
            kept = (self._times > until_us) | (self._times == NO_TIME)
            if not kept.all():
                self._forget(kept)

    def _forget(self, kept: Mask) -> None:
        pieces = {}
        for name, piece in self._inner.snapshot(0).items():
            table = piece() if callable(piece) else piece
            pieces[name] = self._of_keys(table, kept) if isinstance(table, pa.Table) else table
        self._inner = self._make()
        self._inner.open(self._context)
        self._inner.restore([pieces])
        self._index.retain(np.flatnonzero(kept))
        self._times = self._times[kept]

    def _of_keys(self, table: pa.Table, kept: Mask) -> pa.Table:
        """The rows of some keys; their columns are those of a keyed table, or of whole records."""
        prefix = "key:" if f"key:{self._keys[0]}" in table.schema.names else "column:"
        arrays = [table.column(prefix + key).combine_chunks() for key in self._keys]
        codes = self._index.find(pa.RecordBatch.from_arrays(arrays, list(self._keys)))
        return table.filter(pa.array(kept[codes]))

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        return self._inner.query(key)

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        return self._inner.query_keys(limit)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        changed: pa.Table | Json = with_keys(self._index.keys_table(), [pa.array(self._times)], ["time"])
        return {**self._inner.snapshot(checkpoint_id), _CHANGED: changed}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._inner.restore(snapshots)
        table = owned_table(snapshots, _CHANGED, self._keys, self._context)
        if table is not None:
            codes = codes_in(self._index, key_rows(table, self._keys))
            self._grow()
            np.maximum.at(self._times, codes, numbers_in(table, "time"))
