"""The best record of each key: the last, the first, or the one with the largest values.

Each key keeps one row. A batch changes it at most once, and records that do not are only compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from workbench.compiled import pick_best, warm_up
from workbench.elements import Int64s, Records
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.changelogs.row_kinds import replaced
from workbench.operators.changelogs.sortable import Order, ranks
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.saved_rows import owned_rows_of
from workbench.state.key_index import KeyIndex


class BestRow(Operator):
    """State: the best row of each key and its ranks, at the key's code.

    Args:
        keys: the key columns.
        order: by which rows are compared, of types with ``is_sortable``; none: by their arrival.
        last_wins: whether the later one of equal rows is the better.
        final: whether no row is ever replaced: then the first rows are emitted, without kinds.
        schema: of the records, which are only added.
    """

    def __init__(
        self, keys: tuple[str, ...], order: Sequence[Order], last_wins: bool, final: bool, schema: pa.Schema
    ) -> None:
        warm_up(pick_best)
        self._keys = keys
        self._order = tuple(order)
        self._last_wins = last_wins
        self._final = final
        self._schema = schema
        self._index = KeyIndex(keys, schema)
        self._kept = pa.schema([schema.field(key) for key in keys]) if final else schema
        self._rows = LinkedRows(self._kept)
        self._best: Int64s = np.empty((0, len(self._order)), np.int64)
        self._known: Int64s = np.empty(0, np.int64)
        self._picked: Int64s = np.empty(0, np.int64)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        batch, times = records.batch, records.timestamps
        touched, rows = self._pick(batch)
        if not len(touched):
            return
        after = batch.take(pa.array(rows))
        times = None if times is None else times[rows]
        if self._final:
            self._rows.add(after.select(list(self._keys)), touched)
            out.emit(Records(after, times))
            return
        before = self._rows.heads(touched)
        had = before >= 0
        self._rows.remove(before[had])
        self._rows.add(after, touched)
        old = self._rows.take(before[had])
        changes, places = replaced(old, after, had, np.ones(len(touched), np.bool_))
        out.emit(Records(changes, None if times is None else times[places]))
        self._rows.tidy()

    def _pick(self, batch: pa.RecordBatch) -> tuple[Int64s, Int64s]:
        """The codes that get another row, and these rows of the batch."""
        codes = self._index.codes(batch)
        self._grow(len(self._index))
        values = np.empty((len(codes), len(self._order)), np.int64)
        for at, order in enumerate(self._order):
            values[:, at] = ranks(batch.column(order.column), order)
        found = np.empty(len(codes), np.int64)
        count = pick_best(codes, values, int(self._last_wins), self._best, self._known, self._picked, found)
        touched = found[:count]
        rows = self._picked[touched]
        self._picked[touched] = -1
        return touched, rows

    def _grow(self, keys: int) -> None:
        held = len(self._known)
        if keys > held:
            more = max(keys, 2 * held) - held
            self._best = np.concatenate([self._best, np.empty((more, len(self._order)), np.int64)])
            self._known = np.concatenate([self._known, np.zeros(more, np.int64)])
            self._picked = np.concatenate([self._picked, np.full(more, -1)])
            self._rows.grow(keys)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        codes = self._index.find(one_key(self._keys, self._schema, key))
        rows = self._rows.heads(codes) if codes[0] >= 0 else codes
        return cast("Mapping[str, object]", self._rows.take(rows).to_pylist()[0]) if rows[0] >= 0 else None

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        known = len(self._index)
        return known, python_rows(self._index.keys_table(np.arange(min(limit, known))))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return cast("Snapshot", {"rows": self._rows.saved()})

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        batch, _ = owned_rows_of(snapshots, "rows", self._keys, self._kept, self._context)
        if len(batch):
            touched, rows = self._pick(batch)
            self._rows.add(batch.take(pa.array(rows)), touched)
