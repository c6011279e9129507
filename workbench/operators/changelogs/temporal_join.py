"""Join each record with the version of its key that was valid at its event time: Flink's temporal join.

The right side is a table in versions: a record is the row of its key from its event time on, until the next one. A left
record waits until the watermark has passed it, because then all versions up to it are there. It is emitted with its own
event time. Of each key only the latest version behind the watermark is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import MAX_TIME
from workbench.elements import Int64s, Records
from workbench.errors import SettingError
from workbench.operators.changelogs.expiring import Sweeps
from workbench.operators.changelogs.linked_rows import LinkedRows
from workbench.operators.contract.base import Operator, Output, Snapshot
from workbench.operators.joins.columns import JoinColumns, key_batch
from workbench.operators.joins.two_sides import LEFT, RIGHT, TwoSidedJoin
from workbench.operators.snapshots.pieces import numbers_in
from workbench.operators.snapshots.saved_rows import saved_rows, together
from workbench.state.key_index import KeyIndex


@dataclass(frozen=True)
class TemporalJoin:
    """Joins left records with versions (see the module).

    Attributes:
        columns: the columns compared and emitted; ``inner`` or ``left``.
        ttl_us: how long a version is valid without a new one, in microseconds of event time; None: for ever.

    Raises:
        SettingError: an outer join.
    """

    kind: ClassVar[str] = "join"
    columns: JoinColumns
    ttl_us: int | None = None

    def __post_init__(self) -> None:
        if self.columns.how == "outer":
            raise SettingError("a join with the latest version can be 'inner' or 'left', not 'outer'")

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """See `JoinColumns`."""
        return self.columns.output_schema(inputs[LEFT], inputs[RIGHT])

    def growing(self) -> str | None:
        """One version of each key."""
        return f"the latest row of each {', '.join(self.columns.right_keys)}" if self.ttl_us is None else None

    def describe(self) -> str:
        return f"{self.columns.describe()}, the latest"

    def sees_watermarks(self) -> bool:
        """It does if a watermark makes it forget."""
        return self.ttl_us is not None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _TemporalJoin(self, inputs)


class _Waiting:
    """Records that wait for the watermark, in the order of arrival."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._times: list[Int64s] = []
        self._first_us = MAX_TIME

    def add(self, batch: pa.RecordBatch, times: Int64s) -> None:
        if len(times):
            self._batches.append(batch)
            self._times.append(times)
            self._first_us = min(self._first_us, int(times.min()))

    def all(self) -> tuple[pa.RecordBatch, Int64s]:
        return together(self._batches, self._schema), np.concatenate([np.empty(0, np.int64), *self._times])

    def ripe(self, watermark_us: int) -> tuple[pa.RecordBatch, Int64s] | None:
        """The records up to the watermark by time, equal ones as they arrived; they wait no longer. None: no record."""
        if self._first_us > watermark_us:
            return None
        batch, times = self.all()
        order = np.argsort(times, kind="stable")
        count = int(np.searchsorted(times[order], watermark_us, "right"))
        rest = np.sort(order[count:])
        self._batches, self._times, self._first_us = [], [], MAX_TIME
        self.add(batch.take(pa.array(rest)), times[rest])
        return batch.take(pa.array(order[:count])), times[order[:count]]


class _TemporalJoin(TwoSidedJoin):
    """State: the records of both sides in front of the watermark, and one version of each key behind it."""

    _called = "a join with the latest version"

    def __init__(self, spec: TemporalJoin, inputs: Sequence[pa.Schema]) -> None:
        super().__init__(spec.columns, inputs)
        self._names = spec.columns.left_keys
        self._index = KeyIndex(spec.columns.left_keys, inputs[LEFT])
        self._waiting = (_Waiting(inputs[LEFT]), _Waiting(inputs[RIGHT]))
        self._versions = LinkedRows(inputs[RIGHT])
        self._sweeps = None if spec.ttl_us is None else Sweeps(spec.ttl_us)

    def _take(self, records: Records, port: int, watermark_us: int, out: Output) -> None:
        usable = self._usable(records, port, watermark_us)
        if usable:
            assert usable.timestamps is not None
            self._waiting[port].add(usable.batch, usable.timestamps)

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us <= self._watermark:
            return
        self._watermark = watermark_us
        until_us = None if self._sweeps is None else self._sweeps.due(watermark_us)
        if until_us is not None:
            self._versions.expire(until_us)
        renewed = self._renew(watermark_us)
        left = self._waiting[LEFT].ripe(watermark_us)
        if left is not None:
            self._emit(*left, out)
        self._forget_former(renewed)

    def _renew(self, watermark_us: int) -> Int64s:
        """Take in the versions up to the watermark; returns the codes of their keys."""
        versions = self._waiting[RIGHT].ripe(watermark_us)
        if versions is None:
            return np.empty(0, np.int64)
        batch, times = versions
        codes = self._index.codes(key_batch(batch, self._keys[RIGHT], self._names))
        self._versions.add(batch, codes, times=times)
        return np.unique(codes)

    def _emit(self, batch: pa.RecordBatch, times: Int64s, out: Output) -> None:
        codes = self._index.find(key_batch(batch, self._keys[LEFT], self._names))
        self._versions.grow(len(self._index))
        wanted, rows = self._versions.follow(codes)  # the versions of a key are in the order of their times
        valid = self._versions.times[rows] <= times[wanted]
        wanted, rows = wanted[valid], rows[valid]
        last = np.append(wanted[1:] != wanted[:-1], True)[: len(wanted)]
        wanted, rows = wanted[last], rows[last]
        if len(wanted):
            pairs = self._rows.assemble(batch.take(pa.array(wanted)), self._versions.take(rows))
            out.emit(Records(pairs, times[wanted]))
        if self._keeps[LEFT] and len(wanted) < len(times):
            alone = np.ones(len(times), np.bool_)
            alone[wanted] = False
            out.emit(Records(self._rows.assemble(batch.filter(pa.array(alone)), None), times[alone]))

    def _forget_former(self, codes: Int64s) -> None:
        """Of these keys, only the latest version can be asked for from now on."""
        if len(codes):
            of, rows = self._versions.follow(codes)
            self._versions.remove(rows[:-1][of[1:] == of[:-1]])
            self._versions.tidy()

    def _saved(self, port: int) -> DelayedEncoding:
        batch, times = self._waiting[port].all()
        versions = self._versions.saved() if port == RIGHT else None

        def table() -> pa.Table:
            waiting = saved_rows(batch, {"time": pa.array(times)})
            if versions is None:
                return waiting
            former = versions()
            assert isinstance(former, pa.Table)
            return pa.concat_tables([former.drop_columns(["mark"]), waiting])

        return table

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        for port, batch, table in self._restored(snapshots):  # versions are those that waiting rows become
            self._waiting[port].add(batch, numbers_in(table, "time"))
        self._forget_former(self._renew(self._watermark))
