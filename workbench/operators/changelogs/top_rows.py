"""The first rows of each key in an order: Top-N, of records and of changelogs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa

from workbench.compiled import order_by_code, warm_up
from workbench.elements import Int64s, Mask, Records
from workbench.errors import PlanError
from workbench.operators.changelogs.best_row import BestRow
from workbench.operators.changelogs.expiring import Expiring
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.changelogs.row_kinds import (
    DELETE,
    FIELD,
    INSERT,
    is_changelog,
    plain_rows,
    plain_schema,
    replaced,
    together,
    weights_of,
)
from workbench.operators.changelogs.sortable import Order, check_orders, is_sortable, ranks
from workbench.operators.changelogs.touched_groups import TouchedGroups
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.snapshots.saved_rows import owned_rows_of
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex


@dataclass(frozen=True)
class TopRows:
    """The first `limit` records of each key, as a changelog.

    Attributes:
        keys: the key columns; none: all records have one key.
        order: the columns that order the records of a key; none: their arrival.
        limit: how many are kept.
        rank: the name of a column for their places from 1 on; None: there is none.
        last_wins: whether the later one of records that are equal in this order comes first.
        ttl_us: after this time without a record, in event time, a key is forgotten; None: never.
    """

    kind: ClassVar[str] = "top"
    takes_changes: ClassVar[bool] = True
    keys: tuple[str, ...]
    order: tuple[Order, ...]
    limit: int = 1
    rank: str | None = None
    last_wins: bool = False
    ttl_us: int | None = None

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of the input, the place, and the kind of each change; first records by arrival have no kind.

        Raises:
            PlanError: a column that cannot be a key or be ordered, or a taken name.
        """
        schema = plain_schema(inputs[0])
        check_keys(self.keys, schema)
        check_orders(self.order, schema)
        fields = list(schema)
        if self.rank is not None:
            if self.rank in schema.names:
                raise PlanError(f"the input has a column {self.rank!r} already: choose another name for the place")
            fields.append(pa.field(self.rank, pa.int64()))
        return pa.schema(fields if self._final(inputs[0]) else [*fields, FIELD])

    def _final(self, schema: pa.Schema) -> bool:
        """Whether the first record of a key stays its only one."""
        return self.limit == 1 and not (self.order or self.last_wins or self.rank or is_changelog(schema))

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """The keys and the place; that of the input if it has a place of its own."""
        if self.limit == 1:
            return self.keys
        if self.rank is not None:
            return (*self.keys, self.rank)
        return None if keys[0] is None else tuple(dict.fromkeys((*self.keys, *keys[0])))

    def growing(self) -> str | None:
        """One entry for each key."""
        if not self.keys or self.ttl_us is not None:
            return None
        return f"{'a row' if self.limit == 1 else f'up to {self.limit} rows'} of each {', '.join(self.keys)}"

    def describe(self) -> str:
        by = f" of each {', '.join(self.keys)}" if self.keys else ""
        order = ", ".join(order.describe() for order in self.order) or "arrival"
        first = "last" if self.last_wins and not self.order else "first"
        return f"{first if self.limit == 1 else f'{first} {self.limit}'}{by} by {order}"

    def sees_watermarks(self) -> bool:
        """It does if a watermark makes it forget."""
        return self.ttl_us is not None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        schema = inputs[0]
        if self.ttl_us is None or not self.keys:
            return self._made(schema)
        return Expiring(lambda: self._made(schema), self.keys, schema, self.ttl_us, self._final(schema))

    def _made(self, schema: pa.Schema) -> Operator:
        plain = all(is_sortable(schema.field(order.column).type) for order in self.order)
        if self.limit == 1 and self.rank is None and plain and not is_changelog(schema):
            return BestRow(self.keys, self.order, self.last_wins, self._final(schema), schema)
        return _TopRows(self, schema)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The rows of some keys in their order.

    Attributes:
        rows: shape (n,), their numbers, key after key.
        groups: shape (n,), which of the keys each belongs to.
        places: shape (n,), from 0 within the key.
    """

    rows: Int64s
    groups: Int64s
    places: Int64s

    def first(self, limit: int) -> _Ranked:
        """Those with places below a limit."""
        chosen: Mask = self.places < limit
        return self if chosen.all() else _Ranked(self.rows[chosen], self.groups[chosen], self.places[chosen])


class _TopRows(Operator):
    """State: the top rows of each key; of a changelog all rows, because the next one follows one that is taken back."""

    def __init__(self, spec: TopRows, schema: pa.Schema) -> None:
        self._spec = spec
        self._input = plain_schema(schema)
        self._back = is_changelog(schema)
        self._index = KeyIndex(spec.keys, schema)
        self._rows = LinkedRows(self._input, hashed=self._back)
        warm_up(order_by_code)
        self._touched = TouchedGroups()
        self._bounds: Int64s = np.empty(0, np.int64)  # by code of a full key, the rank of its last row
        self._ordering = list(dict.fromkeys(order.column for order in spec.order))
        first = spec.order[0] if spec.order else None
        self._bounded = not self._back and first is not None and is_sortable(schema.field(first.column).type)

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def process(self, records: Records, port: int, out: Output) -> None:
        weights = weights_of(records.batch)
        batch, times = plain_rows(records.batch), records.timestamps
        codes = self._index.codes(batch)
        possible = self._possible(batch, codes) if self._bounded else None
        if possible is not None:
            codes, times = codes[possible], None if times is None else times[possible]
            if not len(codes):
                return
        groups, of_rows = self._touched.of(codes, len(self._index))
        self._rows.grow(len(self._index))
        if self._back:
            before, after = self._changed(batch, codes, weights, groups)
        else:
            before, after = self._added(batch, possible, codes, of_rows, groups)
        changes, places = self._changes(before, after)
        if changes is not None and changes.num_rows:
            last = self._touched.last_rows(of_rows, len(groups))
            out.emit(Records(changes, None if times is None else times[last[places]]))
        self._rows.tidy()

    def _changed(
        self, batch: pa.RecordBatch, codes: Int64s, weights: Int64s | None, groups: Int64s
    ) -> tuple[_Ranked, _Ranked]:
        """Add and take back rows; the top rows of the keys before and after."""
        before = self._ranked(groups)
        if weights is None:
            self._rows.add(batch, codes)
        else:
            added = weights > 0
            self._rows.add(batch.filter(pa.array(added)), codes[added])
            self._rows.remove_equal(batch.filter(pa.array(~added)), codes[~added])
        return before.first(self._spec.limit), self._ranked(groups).first(self._spec.limit)

    def _added(
        self, batch: pa.RecordBatch, possible: Int64s | None, codes: Int64s, of_rows: Int64s, groups: Int64s
    ) -> tuple[_Ranked, _Ranked]:
        """Compare new rows with the top rows, and keep only those that become top rows themselves.

        Args:
            batch: with the new rows.
            possible: which of its rows these are; None: all.
            codes, of_rows: of the new rows.
            groups: the codes of their keys.
        """
        of, rows = self._rows.follow(groups)
        held, limit = len(rows), self._spec.limit
        both = stored = self._rows.take(rows, self._ordering)
        if self._ordering:
            values = batch.select(self._ordering)
            both = pa.concat_batches([stored, values if possible is None else values.take(pa.array(possible))])
        of = np.concatenate([of, of_rows])
        order = self._order(both, of)
        of = of[order]
        places, new = _places(of, len(groups)), order >= held
        old = order[~new]
        before = _Ranked(rows[old], of[~new], _places(of[~new], len(groups)))
        come = np.flatnonzero(new & (places < limit))
        chosen = order[come] - held
        first = self._rows.count
        places_in_batch = chosen if possible is None else possible[chosen]
        self._rows.add(batch.take(pa.array(places_in_batch)), codes[chosen])
        numbers = np.empty(len(order), np.int64)
        numbers[~new], numbers[come] = rows[old], first + np.arange(len(come))
        after = _Ranked(numbers, of, places)
        self._rows.remove(after.rows[~new & (places >= limit)])
        after = after.first(limit)
        self._note_bounds(groups, after)
        return before, after

    def _possible(self, batch: pa.RecordBatch, codes: Int64s) -> Int64s | None:
        """The records that do not come behind a full key's last row by the first column alone; None: all."""
        held = len(self._bounds)
        if len(self._index) > held:
            more = np.full(max(len(self._index), 2 * held) - held, -(2**63))
            self._bounds = np.concatenate([self._bounds, more])
        order = self._spec.order[0]
        chosen = ranks(batch.column(order.column), order) >= self._bounds[codes]
        return None if chosen.all() else np.flatnonzero(chosen)

    def _note_bounds(self, groups: Int64s, after: _Ranked) -> None:
        if self._bounded:
            order = self._spec.order[0]
            last = after.places == self._spec.limit - 1
            values = self._rows.take(after.rows[last], [order.column])
            self._bounds[groups[after.groups[last]]] = ranks(values.column(0), order)

    def _ranked(self, groups: Int64s) -> _Ranked:
        """All rows of these keys in their order."""
        of, rows = self._rows.follow(groups)
        order = self._order(self._rows.take(rows, self._ordering), of)
        of = of[order]
        return _Ranked(rows[order], of, _places(of, len(groups)))

    def _order(self, values: pa.RecordBatch, of: Int64s) -> Int64s:
        """The order of rows by key, then as the spec says, then by arrival; those of a key are in this last order."""
        columns = [~ranks(values.column(order.column), order) for order in reversed(self._spec.order)]
        if self._spec.last_wins:
            columns.insert(0, -np.arange(len(of)))
        first = np.lexsort(columns) if columns else np.arange(len(of))
        order, starts = np.empty(len(of), np.int64), np.empty(int(of.max(initial=-1)) + 2, np.int64)
        order_by_code(of[first], starts, order)
        return first[order]

    def _changes(self, before: _Ranked, after: _Ranked) -> tuple[pa.RecordBatch | None, Int64s]:
        """The changes, and which of the keys each of them is of."""
        if self._spec.rank is not None:
            return self._changed_places(before, after)
        limit = self._spec.limit
        if limit == 1:
            return self._changed_places(before, after)
        gone = np.isin(before.rows, after.rows, assume_unique=True, invert=True)
        come = np.isin(after.rows, before.rows, assume_unique=True, invert=True)
        parts = [
            (self._rows.take(side.rows[chosen]), side.groups[chosen], np.full(int(chosen.sum()), kind, np.int8))
            for side, chosen, kind in ((before, gone, DELETE), (after, come, INSERT))
        ]
        if not any(part[0].num_rows for part in parts):
            return None, np.empty(0, np.int64)
        return together(parts), np.sort(np.concatenate([part[1] for part in parts]))

    def _changed_places(self, before: _Ranked, after: _Ranked) -> tuple[pa.RecordBatch, Int64s]:
        limit, rank = self._spec.limit, self._spec.rank
        old, new = (side.groups * limit + side.places for side in (before, after))
        places = np.sort(np.concatenate([old, new]), kind="stable")  # of two ascending parts
        places = places[np.append(places[1:] != places[:-1], True)] if len(places) else places
        rows = np.full((2, len(places)), -1)
        rows[0, np.searchsorted(places, old)] = before.rows
        rows[1, np.searchsorted(places, new)] = after.rows
        changed = rows[0] != rows[1]
        places, rows = places[changed], rows[:, changed]
        had, has = rows >= 0
        sides = [self._rows.take(some[there]) for some, there in zip(rows, (had, has), strict=True)]
        if rank is not None:
            sides = [
                side.append_column(pa.field(rank, pa.int64()), pa.array(places[there] % limit + 1))
                for side, there in zip(sides, (had, has), strict=True)
            ]
        changes, chosen = replaced(sides[0], sides[1], had, has)
        return changes, places[chosen] // limit

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return cast("Snapshot", {"rows": self._rows.saved()})

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        batch, _ = owned_rows_of(snapshots, "rows", self._spec.keys, self._input, self._context)
        if len(batch):
            self._rows.add(batch, self._index.codes(batch))


def _places(groups: Int64s, count: int) -> Int64s:
    """Shape (n,): the place of each row, from 0 within its group; groups are ascending."""
    first = np.searchsorted(groups, np.arange(count))
    return np.arange(len(groups)) - first[groups]
