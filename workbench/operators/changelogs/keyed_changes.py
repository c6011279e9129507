"""Rows with flags of their own, such as I, U and D, as a changelog with a key: change data capture.

Each key keeps its row. A row whose flag adds or replaces becomes the row of its key, whether or not there was one; a
row whose flag removes takes back the row that the key has, so its other columns may be null, and removes nothing if
there is none. So rows that arrive twice change nothing. A batch changes a key at most once, as in a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.arguments import as_given
from workbench.durations import NO_TIME
from workbench.elements import Int64s, Mask, Records
from workbench.errors import PlanError, RecordError, unknown
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.changelogs.expiring import Expiring
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.changelogs.row_kinds import (
    AFTER,
    BEFORE,
    DELETE,
    FIELD,
    INSERT,
    NAMES,
    equal_rows,
    is_changelog,
    replaced,
)
from workbench.operators.changelogs.touched_groups import TouchedGroups
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.functions.dead_letters import (
    TAG,
    OnError,
    as_records,
    check_on_error,
    key_text,
    of_row,
    side_schemas,
)
from workbench.operators.functions.user_function import on_record, record_at
from workbench.operators.snapshots.saved_rows import owned_rows_of
from workbench.origin import Origin
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex

FLAGS: Mapping[str, int] = {
    "+I": INSERT,
    "I": INSERT,
    "INSERT": INSERT,
    "C": INSERT,
    "CREATE": INSERT,
    "R": INSERT,
    "READ": INSERT,
    "-U": BEFORE,
    "UPDATE_BEFORE": BEFORE,
    "+U": AFTER,
    "U": AFTER,
    "UPDATE": AFTER,
    "UPDATE_AFTER": AFTER,
    "-D": DELETE,
    "D": DELETE,
    "DELETE": DELETE,
}
"""The usual flags, in any case: Flink's ``RowKind``, Debezium's c, r, u and d, and the words of SQL."""


@dataclass(frozen=True, eq=False)
class KeyedChanges:
    """The changes of a table that rows with flags describe.

    Args:
        keys: the columns that identify a row of the table.
        op: the column of the flags, which the result does not have.
        kinds: for each flag ``+I``, ``-U``, ``+U`` or ``-D``; empty: `FLAGS`.
        on_error: what happens to rows with another flag.
        origin: the user's line, for errors.
        ttl_us: after this time without a record, in event time, a key is forgotten; None: never.

    Raises:
        PlanError: the input is a changelog already, or `op` or `kinds` do not fit it.
    """

    kind: ClassVar[str] = "changelog"
    takes_changes: ClassVar[bool] = True
    keys: tuple[str, ...]
    op: str
    kinds: tuple[tuple[object, str], ...] = ()
    on_error: OnError = "fail"
    origin: Origin | None = field(default=None, repr=False)
    ttl_us: int | None = None

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of the input but that of the flags, and the kind of each change."""
        schema = inputs[0]
        check_on_error(self.on_error, self.origin)
        if is_changelog(schema):
            raise PlanError("these rows are a changelog already: as_changelog follows rows with flags of their own")
        check_keys(self.keys, schema)
        if self.op not in schema.names:
            raise PlanError(unknown("column", self.op, schema.names))
        if self.op in self.keys:
            raise PlanError(f"the column {self.op!r} holds the flags, so it cannot identify a row: choose another key")
        self._flags(schema)
        return pa.schema([*self._rows(schema), FIELD])

    def _rows(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([one for one in schema if one.name != self.op])

    def _flags(self, schema: pa.Schema) -> tuple[pa.Array, Int64s]:
        """The flags, and the kind of each."""
        kind = schema.field(self.op).type
        given = dict(self.kinds) or FLAGS
        if not self.kinds and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise PlanError(
                f"the column {self.op!r} is {kind}, and only text has flags with a known meaning: give the meaning of "
                "each with kinds={1: '+I', 2: '-D'}"
            )
        meanings = []
        for flag, name in given.items():
            if self.kinds and name not in NAMES:
                raise PlanError(f"kinds[{flag!r}] is {as_given(name)}: valid are {', '.join(map(repr, NAMES))}")
            meanings.append(NAMES.index(name) if isinstance(name, str) else name)
        try:
            flags = pa.array(list(given), kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            raise PlanError(
                f"kinds has the flags {', '.join(map(repr, given))}, and the column {self.op!r} is {kind}: write flags "
                "of that type"
            ) from None
        if flags.null_count:
            raise PlanError("kinds has the flag None, and a null says nothing about its row: fill nulls in (coalesce)")
        return flags, np.array(meanings, np.int64)

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return side_schemas(self.on_error)

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...]:
        """Those of the table."""
        return self.keys

    def growing(self) -> str | None:
        """One row for each key."""
        return None if self.ttl_us is not None else f"a row of each {', '.join(self.keys)}"

    def describe(self) -> str:
        return f"by {', '.join(self.keys)}, flags in {self.op}"

    def sees_watermarks(self) -> bool:
        """It does if a watermark makes it forget."""
        return self.ttl_us is not None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        schema = inputs[0]

        def make() -> Operator:
            return _Table(self, schema, self._rows(schema), *self._flags(schema))

        return make() if self.ttl_us is None else Expiring(make, self.keys, schema, self.ttl_us, False)


class _Table(Operator):
    """State: the row of each key, at the key's code."""

    def __init__(
        self, spec: KeyedChanges, given: pa.Schema, schema: pa.Schema, flags: pa.Array, meanings: Int64s
    ) -> None:
        self._spec = spec
        self._schema = schema
        self._flags = flags
        self._known = np.append(meanings, -1)  # the last one for flags that are not found
        self._index = KeyIndex(spec.keys, given)
        self._touched = TouchedGroups()
        self._rows = LinkedRows(schema)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        kinds = self._kinds(records.batch)
        odd = kinds < 0
        if odd.any():
            self._refuse(records, np.flatnonzero(odd), out)
            kept = np.flatnonzero(~odd)
            times = records.timestamps
            records = Records(records.batch.take(pa.array(kept)), None if times is None else times[kept])
            kinds = kinds[kept]
        if len(records):
            self._change(records, kinds, out)

    def _kinds(self, batch: pa.RecordBatch) -> Int64s:
        """Shape (n,): the kind of each row; -1: its flag is unknown."""
        column = batch.column(self._spec.op)
        if not self._spec.kinds:
            column = pc.utf8_upper(column)
        places = pc.fill_null(pc.index_in(column, value_set=self._flags), len(self._flags))
        return cast("Int64s", self._known[places.to_numpy(zero_copy_only=False)])

    def _refuse(self, records: Records, rows: Int64s, out: Output) -> None:
        spec, batch, times = self._spec, records.batch, records.timestamps
        flags = batch.column(spec.op)
        known = ", ".join(map(repr, self._flags.to_pylist()))

        def sentence(row: int) -> str:
            return f"the flag {spec.op} is {flags[row].as_py()!r} {on_record(batch, row)}, and known are {known}"

        if spec.on_error == "fail":
            raise RecordError(
                f"{sentence(int(rows[0]))}: give its meaning in kinds={{...}} (in SQL 'changelog.insert' = '...'), or "
                "keep such rows aside with on_error='dead_letter'",
                origin=spec.origin,
            )
        letters = []
        for row in rows.tolist():
            record = record_at(batch, row)
            key = tuple(record[name] for name in spec.keys)
            letters.append(
                of_row(
                    sentence(row),
                    batch,
                    row,
                    key_text(key if len(key) > 1 else key[0]),
                    self._context.position(row),
                    time_us=NO_TIME if times is None else int(times[row]),
                )
            )
        self._context.counters.numRecordsInErrors += len(letters)
        out.emit_side(TAG, as_records(letters, self._context, with_times=times is not None))

    def _change(self, records: Records, kinds: Int64s, out: Output) -> None:
        codes = self._index.codes(records.batch)
        self._rows.grow(len(self._index))
        groups, of_rows = self._touched.of(codes, len(self._index))
        last = self._touched.last_rows(of_rows, len(groups))
        heads = self._rows.heads(groups)
        had, has = heads >= 0, kinds[last] & 1 == 0
        before = self._rows.take(heads[had])
        after = records.batch.take(pa.array(last[has])).select(self._schema.names)
        same: Mask = had & has
        if same.any():
            stays = equal_rows(before.filter(pa.array(has[had])), after.filter(pa.array(had[has])))
            same[np.flatnonzero(same)] = stays
        self._rows.remove(heads[had & ~same])
        self._rows.add(after.filter(pa.array(~same[has])), groups[has & ~same])
        changes, places = replaced(before, after, had, has, same)
        if changes.num_rows:
            times = records.timestamps
            out.emit(Records(changes, None if times is None else times[last[places]]))
        self._rows.tidy()

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        codes = self._index.find(one_key(self._spec.keys, self._schema, key))
        rows = self._rows.heads(codes) if codes[0] >= 0 else codes
        return cast("Mapping[str, object]", self._rows.take(rows).to_pylist()[0]) if rows[0] >= 0 else None

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        held = np.flatnonzero(self._rows.heads(np.arange(len(self._index))) >= 0)
        return len(held), python_rows(self._index.keys_table(held[:limit]))

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return cast("Snapshot", {"rows": self._rows.saved()})

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        batch, _ = owned_rows_of(snapshots, "rows", self._spec.keys, self._schema, self._context)
        if len(batch):
            codes = self._index.codes(batch)
            self._rows.grow(len(self._index))
            self._rows.add(batch, codes)
