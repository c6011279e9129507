"""Join two streams without bounds: each record waits for partners for ever, and changelogs are followed.

Each side keeps its records by key. A record that is added or taken back on one side adds or takes back its pairs. A
record of an outer side without a partner is emitted with nulls, which is taken back when the first partner comes and
emitted again when the last one has gone; ``semi`` and ``anti`` emit a left record while it has a partner, or has none.

With a time to live, each record is forgotten when the watermark is that far behind its event time. Nothing is emitted
or taken back then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Mask, Records
from workbench.errors import SettingError
from workbench.operators.changelogs.expiring import Sweeps
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.changelogs.row_kinds import (
    DELETE,
    FIELD,
    INSERT,
    KIND,
    Kinds,
    is_changelog,
    kinds_of,
    plain_rows,
    plain_schema,
    together,
)
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.joins.columns import JoinColumns, JoinRows, key_batch, without_null_keys
from workbench.operators.joins.two_sides import LEFT, RIGHT, SIDES
from workbench.operators.snapshots.pieces import numbers_in
from workbench.operators.snapshots.saved_rows import owned_rows_of
from workbench.state.key_index import KeyIndex

Emitted = Literal["pairs", "semi", "anti"]
"""What comes out: the columns of both sides, or the left records with a partner, or those without."""

_PAIRS_AT_ONCE = 4_096  # few enough for the memory of a batch to be used again by the next one
_FEW_KEYS = 1_024  # not worth packing
_Part = tuple[pa.RecordBatch, Int64s, Kinds, "Int64s | None"]


@dataclass(frozen=True)
class RegularJoin:
    """Joins all records of equal keys (see the module).

    Attributes:
        columns: the columns compared and emitted.
        emitted: the pairs, or left records.
        ttl_us: how long a record waits for partners, in microseconds of event time; None: for ever.

    Raises:
        SettingError: left records of an outer join.
    """

    kind: ClassVar[str] = "join"
    takes_changes: ClassVar[bool] = True
    columns: JoinColumns
    emitted: Emitted = "pairs"
    ttl_us: int | None = None

    def __post_init__(self) -> None:
        if self.emitted != "pairs" and self.columns.how != "inner":
            raise SettingError(f"a {self.emitted} join emits left records only, so it cannot be {self.columns.how!r}")

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """See `JoinColumns`; with the kind of each change, unless pairs are only added."""
        left, right = map(plain_schema, inputs)
        schema = self.columns.output_schema(left, right)
        if self.emitted != "pairs":
            schema = left
        return schema if self._adds_only(inputs) else schema.append(FIELD)

    def _adds_only(self, inputs: Sequence[pa.Schema]) -> bool:
        changes = any(map(is_changelog, inputs)) or self.columns.how != "inner"
        return not changes and self.emitted != "anti" and (self.emitted == "pairs" or not is_changelog(inputs[RIGHT]))

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """The keys of the join and of both sides; those of a side are left out if the others tell its row.

        The keys of the join are among them, so that all changes of a row come from one subtask. The rows of a left
        join have a key only if each left record has at most one partner: it is then that of the left record, without
        columns that are null where there is no partner. Those of an outer join have none: two records with null as the
        key of the join, one of each side, stand beside each other.
        """
        (left, right), columns = keys, self.columns
        if left is None:
            return None
        if self.emitted != "pairs":
            return tuple(dict.fromkeys((*left, *columns.left_keys)))
        if right is None or columns.how == "outer":
            return None
        if columns.how == "left":
            return tuple(dict.fromkeys((*columns.left_keys, *left))) if set(right) <= set(columns.right_keys) else None
        shared = dict(zip(columns.right_keys, columns.left_keys, strict=True))
        names = {name: shared.get(name, columns.right_name(name, inputs[LEFT])) for name in right}
        return tuple(dict.fromkeys((*columns.left_keys, *left, *names.values())))

    def growing(self) -> str | None:
        """All records of both sides."""
        return "all records of both sides" if self.ttl_us is None else None

    def describe(self) -> str:
        said = self.columns.describe()
        return said if self.emitted == "pairs" else said.replace("inner join", f"{self.emitted} join")

    def sees_watermarks(self) -> bool:
        """It does if a watermark makes it forget."""
        return self.ttl_us is not None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _RegularJoin(self, inputs)


class _RegularJoin(Operator):
    """State: the records of both sides, each with its event time and, where it matters, its number of partners."""

    def __init__(self, spec: RegularJoin, inputs: Sequence[pa.Schema]) -> None:
        columns = spec.columns
        self._spec = spec
        self._inputs = [plain_schema(schema) for schema in inputs]
        self._keys = (columns.left_keys, columns.right_keys)
        self._keeps = (columns.keeps_left, columns.keeps_right)
        self._pairs = spec.emitted == "pairs"
        self._plain = KIND not in spec.output_schema(inputs).names
        self._schema = plain_schema(spec.output_schema(inputs))
        self._rows = JoinRows(columns, self._inputs[LEFT], self._inputs[RIGHT])
        self._index = KeyIndex(columns.left_keys, inputs[LEFT])
        self._sides = [LinkedRows(plain_schema(schema), is_changelog(schema)) for schema in inputs]
        self._sweeps = None if spec.ttl_us is None else Sweeps(spec.ttl_us)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        kinds, batch, times = kinds_of(records.batch), plain_rows(records.batch), records.timestamps
        codes = np.full(len(kinds), -1)
        complete = without_null_keys(batch, self._keys[port])
        if complete is None:
            codes = self._codes(batch, port)
        elif complete.any():
            codes[complete] = self._codes(batch.filter(pa.array(complete)), port)
        own, other = self._sides[port], self._sides[1 - port]
        for side in (own, other):
            side.grow(len(self._index))
        counts = other.counts(codes)
        for begin, end in _pieces(counts):
            some = slice(begin, end)
            piece = batch.slice(begin, end - begin)
            self._join(piece, codes[some], counts[some], kinds[some], None if times is None else times[some], port, out)
        own.tidy()

    def _codes(self, batch: pa.RecordBatch, port: int) -> Int64s:
        return self._index.codes(key_batch(batch, self._keys[port], self._spec.columns.left_keys))

    def _join(
        self,
        batch: pa.RecordBatch,
        codes: Int64s,
        counts: Int64s,
        kinds: Kinds,
        times: Int64s | None,
        port: int,
        out: Output,
    ) -> None:
        own, other = self._sides[port], self._sides[1 - port]
        wanted, partners = other.follow(codes)
        parts: list[_Part] = []
        if self._pairs:
            if len(wanted):
                parts.append(self._paired(batch, wanted, partners, kinds, times, port))
            alone = np.flatnonzero(counts == 0) if self._keeps[port] else wanted[:0]
        elif port == LEFT:
            alone = np.flatnonzero((counts > 0) == (self._spec.emitted == "semi"))
        else:
            alone = wanted[:0]
        if len(alone):
            rows = batch if len(alone) == len(batch) else batch.take(pa.array(alone))
            parts.append((self._padded(rows, port), alone, kinds[alone], None if times is None else times[alone]))
        if len(wanted) and (self._keeps[1 - port] if self._pairs else port == RIGHT):
            parts = [*self._others(wanted, partners, kinds, times, port, parts)]
        back = (kinds & 1).astype(np.bool_)
        self._keep(own, batch, codes, counts, times, back)
        self._emit(parts, out)

    def _keep(
        self, own: LinkedRows, batch: pa.RecordBatch, codes: Int64s, counts: Int64s, times: Int64s | None, back: Mask
    ) -> None:
        stored = (codes >= 0) & ~back
        if stored.all():
            own.add(batch, codes, counts, times)
            return
        own.add(batch.filter(pa.array(stored)), codes[stored], counts[stored], None if times is None else times[stored])
        gone = (codes >= 0) & back
        if gone.any():
            own.remove_equal(batch.filter(pa.array(gone)), codes[gone])

    def _paired(
        self, batch: pa.RecordBatch, wanted: Int64s, partners: Int64s, kinds: Kinds, times: Int64s | None, port: int
    ) -> _Part:
        other = self._sides[1 - port]
        mine, theirs = batch.take(pa.array(wanted)), other.take(partners)
        rows = self._rows.assemble(mine, theirs) if port == LEFT else self._rows.assemble(theirs, mine)
        later = None if times is None else np.maximum(times[wanted], other.times[partners])
        return rows, wanted, kinds[wanted], later

    def _padded(self, rows: pa.RecordBatch, port: int) -> pa.RecordBatch:
        """Records of one side alone: with nulls in the columns of the other, or as they are."""
        if not self._pairs:
            return rows
        return self._rows.assemble(rows, None) if port == LEFT else self._rows.assemble(None, rows)

    def _others(
        self,
        wanted: Int64s,
        partners: Int64s,
        kinds: Kinds,
        times: Int64s | None,
        port: int,
        parts: list[_Part],
    ) -> list[_Part]:
        """The records of the other side that get their first partner, or lose their last one, around the pairs."""
        other = self._sides[1 - port]
        touched, lasts, places = np.unique(partners, return_index=True, return_inverse=True)
        weights = 1 - 2 * (kinds[wanted] & 1).astype(np.int64)
        before = other.marks[touched]
        after = before + np.bincount(places, weights).astype(np.int64)
        other.marks[touched] = after
        when = None if times is None else times[wanted[lasts]]
        if self._pairs:  # also around pairs that come and go at once, which a sink by key would take for all there is
            found, lost = before == 0, after == 0
        else:
            found, lost = (before == 0) & (after > 0), (before > 0) & (after == 0)
        if self._spec.emitted == "semi":
            found, lost = lost, found
        made: list[_Part] = []
        for chosen, kind, place in ((found, DELETE, -1), (lost, INSERT, len(kinds))):
            many = int(chosen.sum())
            if many:
                rows = self._padded(other.take(touched[chosen]), 1 - port)
                at = None if when is None else when[chosen]
                made.append((rows, np.full(many, place), np.full(many, kind, np.int8), at))
        return [*made, *parts]

    def _emit(self, parts: list[_Part], out: Output) -> None:
        parts = [part for part in parts if part[0].num_rows]
        if not parts:
            return
        times = None
        if all(part[3] is not None for part in parts):
            places = np.concatenate([part[1] for part in parts])
            times = np.concatenate([cast("Int64s", part[3]) for part in parts])[np.argsort(places, kind="stable")]
        if self._plain:
            rows = parts[0][0] if len(parts) == 1 else plain_rows(together(part[:3] for part in parts))
        else:
            rows = together(part[:3] for part in parts)
        out.emit(Records(rows, times))

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        until_us = None if self._sweeps is None else self._sweeps.due(watermark_us)
        if until_us is None:
            return
        for side in self._sides:
            side.expire(until_us)
        if len(self._index) > _FEW_KEYS + 2 * sum(side.live for side in self._sides):
            used = np.zeros(len(self._index), np.bool_)
            for side in self._sides:
                side.mark_codes(used)
            new_codes = self._index.retain(np.flatnonzero(used))
            for side in self._sides:
                side.renumber(new_codes)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return cast("Snapshot", {name: side.saved() for name, side in zip(SIDES, self._sides, strict=True)})

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for port, side in enumerate(SIDES):
            batch, table = owned_rows_of(snapshots, side, self._keys[port], self._inputs[port], self._context)
            if len(batch):
                codes = self._codes(batch, port)
                marks, times = numbers_in(table, "mark", 0), numbers_in(table, "time")
                self._sides[port].add(batch, codes, marks, times)


def _pieces(counts: Int64s) -> list[tuple[int, int]]:
    """Ranges of records with a limited number of pairs, or of one record."""
    ends = np.cumsum(counts)
    if not len(ends) or ends[-1] <= _PAIRS_AT_ONCE:
        return [(0, len(ends))]
    pieces, begin = [], 0
    while begin < len(ends):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, "right")), begin + 1)
        pieces.append((begin, end))
        begin = end
    return pieces
