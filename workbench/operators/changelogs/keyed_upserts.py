"""Upserts and deletions by key become a whole changelog: a table of the last rows has what they leave out.

The log of a database often has only the key of a row that is deleted, only the new row of an update, and not even all
values of that. Flink calls the same step ``ChangelogNormalize``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s, Mask, Records
from workbench.errors import RecordError
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.changelogs.row_kinds import (
    AFTER,
    BEFORE,
    DELETE,
    FIELD,
    INSERT,
    Kinds,
    equal_rows,
    kinds_of,
    plain_schema,
    replaced,
    together,
    with_kinds,
)
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.snapshots.saved_rows import owned_rows_of
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex

UNCHANGED = "$unchanged"
"""The column with the places of values that an upsert leaves as they are: null, or `unchanged_bits`."""
CLEAR = 4
"""The kind of a row that stands for the removal of all rows, and whose columns are null."""
_SPARE_KEYS = 16_384
_CLEARED_AT_ONCE = 10_000


def upserts_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of the input: those of the rows, the kind of each change, and `UNCHANGED`."""
    return pa.schema([*schema, FIELD, pa.field(UNCHANGED, pa.binary())])


def unchanged_bits(places: Sequence[int], columns: int, *, moved: bool = False) -> bytes:
    """A cell of the column `UNCHANGED`.

    Args:
        places: of the columns that keep their values.
        columns: the number of columns.
        moved: the values are those of the row that the change before has deleted: its key has changed.
    """
    bits = np.zeros(columns, np.bool_)
    bits[list(places)] = True
    return bytes([moved]) + np.packbits(bits).tobytes()


@dataclass(frozen=True)
class KeyedUpserts:
    """Completes changes of the kinds AFTER (an upsert, also of a new row), DELETE (with the key alone) and CLEAR.

    Attributes:
        keys: the columns that identify a row.
        event_time: the event-time column of the rows, or None.
    """

    kind: ClassVar[str] = "changelog"
    takes_changes: ClassVar[bool] = True
    keys: tuple[str, ...]
    event_time: str | None = None

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of the rows, and the kind of each change."""
        schema = _rows_schema(inputs[0])
        check_keys(self.keys, schema)
        return pa.schema([*schema, FIELD])

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """The key."""
        return self.keys

    def growing(self) -> str | None:
        """One entry for each key."""
        return f"the row of each {', '.join(self.keys)}"

    def describe(self) -> str:
        return f"rows by {', '.join(self.keys)}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _KeyedUpserts(self, _rows_schema(inputs[0]))


def _rows_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in plain_schema(schema) if field.name != UNCHANGED])


class _KeyedUpserts(Operator):
    """State: the last row of each key."""

    def __init__(self, spec: KeyedUpserts, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        self._index = KeyIndex(spec.keys, schema)
        self._rows = LinkedRows(schema)
        self._deleted: pa.RecordBatch | None = None

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        batch = records.batch
        kinds, marks = kinds_of(batch), batch.column(UNCHANGED)
        rows = batch.select(self._schema.names)
        begin = 0
        for at in np.flatnonzero(kinds == CLEAR).tolist():
            self._apply_all(rows, kinds, marks, begin, at, out)
            self._clear(out)
            begin = at + 1
        self._apply_all(rows, kinds, marks, begin, batch.num_rows, out)
        self._tidy()

    def _apply_all(
        self, rows: pa.RecordBatch, kinds: Kinds, marks: pa.Array, begin: int, end: int, out: Output
    ) -> None:
        """Apply the changes of a stretch in pieces in which an incomplete row is the first change of its key."""
        if begin == end:
            return
        part, kinds, marks = rows.slice(begin, end - begin), kinds[begin:end], marks.slice(begin, end - begin)
        codes = self._index.codes(part)
        begin = 0
        if marks.null_count < len(marks):
            last: dict[int, int] = {}
            for at, (code, mark) in enumerate(zip(codes.tolist(), marks.to_pylist(), strict=True)):
                if mark is not None and (last.get(code, -1) >= begin or mark[0]):
                    self._apply(part, codes, kinds, marks, begin, at, out)
                    begin = at
                    if mark[0]:
                        self._apply(part, codes, kinds, marks, at, at + 1, out)
                        begin = at + 1
                last[code] = at
        self._apply(part, codes, kinds, marks, begin, len(codes), out)

    def _apply(
        self, rows: pa.RecordBatch, codes: Int64s, kinds: Kinds, marks: pa.Array, begin: int, end: int, out: Output
    ) -> None:
        """Apply changes, and tell each of them: after a failure they come again in other batches, and an output that
        replaces rows may have what a key had in between."""
        if begin == end:
            return
        codes, kinds, rows = codes[begin:end], kinds[begin:end], rows.slice(begin, end - begin)
        self._rows.grow(len(self._index))
        _, back = np.unique(codes[::-1], return_index=True)
        chosen = np.sort(len(codes) - 1 - back)
        touched, has = codes[chosen], kinds[chosen] != DELETE
        heads = self._rows.heads(touched)
        had = heads >= 0
        before = self._rows.take(heads[had])
        rows = self._completed(rows, marks.slice(begin, end - begin), codes)
        deleted = self._last_deleted(rows, codes, kinds)
        after = rows.take(pa.array(chosen[has]))
        same = np.zeros(len(touched), np.bool_)
        both = had & has
        if both.any():
            same[both] = equal_rows(before.filter(pa.array(has[had])), after.filter(pa.array(had[has])))
        gone, come = had & ~same, has & ~same
        self._rows.remove(heads[gone])
        self._rows.add(after.filter(pa.array(come[has])), touched[come])
        self._deleted = deleted
        if len(chosen) < len(codes):
            self._emit_steps(before, had, touched, rows, codes, kinds, out)
        elif gone.any() or come.any():
            self._emit(replaced(before, after, had, has, same)[0], out)

    def _emit_steps(
        self,
        before: pa.RecordBatch,
        had: Mask,
        touched: Int64s,
        rows: pa.RecordBatch,
        codes: Int64s,
        kinds: Kinds,
        out: Output,
    ) -> None:
        """Tell changes of which some have the same key, in their order.

        Args:
            before: the rows of the keys that had one.
            had, touched: shape (m,), whether each key had a row, and its code.
            rows, codes, kinds: the n changes.
        """
        order = np.argsort(codes, kind="stable")
        follows = np.append(False, codes[order[1:]] == codes[order[:-1]])
        known = np.full(len(self._index), -1)
        known[touched[had]] = np.arange(before.num_rows)
        source = known[codes]  # of the row that a change replaces, in `before` and behind it in `rows`
        earlier, later = order[:-1][follows[1:]], order[follows]
        source[later] = np.where(kinds[earlier] != DELETE, before.num_rows + earlier, -1)
        was, has = source >= 0, kinds != DELETE
        both = was & has
        old = pa.concat_batches([before, rows])
        same = np.zeros(len(codes), np.bool_)
        same[both] = equal_rows(old.take(pa.array(source[both])), rows.filter(pa.array(both)))
        gone, come = np.flatnonzero(was & ~same), np.flatnonzero(has & ~same)
        if len(gone) or len(come):
            back = old.take(pa.array(source[gone])), gone, np.where(has[gone], BEFORE, DELETE).astype(np.int8)
            new = rows.take(pa.array(come)), come, np.where(was[come], AFTER, INSERT).astype(np.int8)
            self._emit(together([back, new]), out)

    def _last_deleted(self, rows: pa.RecordBatch, codes: Int64s, kinds: Kinds) -> pa.RecordBatch | None:
        """The row that the last change deletes, which may have got another key."""
        if kinds[-1] != DELETE:
            return None
        earlier = np.flatnonzero(codes[:-1] == codes[-1])
        if len(earlier):
            at = int(earlier[-1])
            return rows.slice(at, 1) if kinds[at] != DELETE else None
        head = self._rows.heads(codes[-1:])
        return self._rows.take(head) if head[0] >= 0 else None

    def _completed(self, rows: pa.RecordBatch, marks: pa.Array, codes: Int64s) -> pa.RecordBatch:
        """The rows with the values that they leave as they are."""
        if marks.null_count == len(marks):
            return rows
        places = np.flatnonzero(marks.is_valid().to_numpy(zero_copy_only=False))
        cells = [cell for cell in marks.to_pylist() if cell is not None]
        width = len(self._schema)
        bits = np.array([np.unpackbits(np.frombuffer(cell, np.uint8, offset=1), count=width) for cell in cells], bool)
        if cells[0][0]:  # alone
            old, known = self._deleted, np.array([0 if self._deleted is not None else -1])
        else:
            heads = self._rows.heads(codes[places])
            old, known = self._rows.take(heads[heads >= 0]), np.where(heads >= 0, np.cumsum(heads >= 0) - 1, -1)
        if (known < 0).any() or old is None:
            self._refuse(rows.slice(int(places[np.flatnonzero(known < 0)[0]]), 1))
        sources = np.zeros(rows.num_rows, np.int64)
        sources[places] = known
        columns = list(rows.columns)
        for at in np.flatnonzero(bits.any(axis=0)).tolist():
            kept: Mask = np.zeros(rows.num_rows, np.bool_)
            kept[places] = bits[:, at]
            columns[at] = pc.if_else(pa.array(kept), old.column(at).take(pa.array(sources)), columns[at])
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _refuse(self, row: pa.RecordBatch) -> NoReturn:
        key = {name: row.column(name)[0].as_py() for name in self._spec.keys}
        raise RecordError(
            f"an update of the row {key} leaves out a large value that it does not change, and no earlier row of it is "
            "known: ALTER TABLE ... REPLICA IDENTITY FULL, and start the job anew"
        )

    def _clear(self, out: Output) -> None:
        """All rows are gone."""
        codes = np.arange(len(self._index))
        self._rows.grow(len(codes))
        heads = self._rows.heads(codes)
        heads = heads[heads >= 0]
        for begin in range(0, len(heads), _CLEARED_AT_ONCE):
            rows = self._rows.take(heads[begin : begin + _CLEARED_AT_ONCE])
            self._emit(with_kinds(rows, np.full(rows.num_rows, DELETE, np.int8)), out)
        self._index, self._rows = KeyIndex(self._spec.keys, self._schema), LinkedRows(self._schema)
        self._deleted = None

    def _emit(self, changes: pa.RecordBatch, out: Output) -> None:
        out.emit(Records.timed(changes, self._spec.event_time))

    def _tidy(self) -> None:
        """Forget rows that were removed, and keys without a row, when there are many."""
        self._rows.tidy()
        if len(self._index) > 2 * self._rows.live + _SPARE_KEYS:
            used: Mask = np.zeros(len(self._index), np.bool_)
            self._rows.mark_codes(used)
            self._rows.renumber(self._index.retain(np.flatnonzero(used)))

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        codes = self._index.find(one_key(self._spec.keys, self._schema, key))
        rows = self._rows.heads(codes) if codes[0] >= 0 and self._rows.count else np.array([-1])
        return cast("Mapping[str, object]", self._rows.take(rows).to_pylist()[0]) if rows[0] >= 0 else None

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        codes = np.arange(len(self._index))
        self._rows.grow(len(codes))
        living = codes[self._rows.heads(codes) >= 0]
        return len(living), python_rows(self._index.keys_table(living[:limit]))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return cast("Snapshot", {"rows": self._rows.saved()})

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        batch, _ = owned_rows_of(snapshots, "rows", self._spec.keys, self._schema, self._context)
        if len(batch):
            self._rows.add(batch, self._index.codes(batch))
