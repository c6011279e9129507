"""Join two streams on keys and on event times that are close to each other.

A left record at time l is joined with every right record of its key at time r when ``l + before <= r <= l + after``. A
pair is emitted as soon as both records have arrived; its event time is the later of the two. A left join emits a left
record without a partner when the watermark shows that none can arrive any more, with the event time
``l + max(after, 0)``. Neither result is late downstream, unless the input was late.

With `until`, the latest time of a partner is in a column of each left record instead of being ``l + after``: a bid
counts until its auction expires. A left record is then kept until the watermark has passed that time.

Each side keeps the records that may still find a partner, as determined by the watermark. A record at or behind the
watermark is late: it is counted and dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import LATEST_TIME, LONGEST_US, MAX_TIME, NO_TIME, format_duration
from workbench.elements import Int64s, Mask, Records, event_times
from workbench.errors import PlanError, SettingError, unknown
from workbench.operators.contract.base import Operator, Output, Snapshot
from workbench.operators.joins.columns import (
    JoinColumns,
    key_batch,
)
from workbench.operators.joins.rows import Found, TimedRows
from workbench.operators.joins.two_sides import LEFT, RIGHT, TwoSidedJoin
from workbench.operators.snapshots.pieces import column_in, numbers_in
from workbench.state.key_index import KeyIndex

_PAIRS_AT_ONCE = 65_536  # a limit, so that a hot key does not produce one huge batch
_FEW_KEYS = 1_024  # not worth packing


@dataclass(frozen=True)
class IntervalJoin:
    """Joins records of equal keys whose event times differ by a limited amount (see the module).

    Attributes:
        columns: the columns compared and emitted; ``inner`` or ``left``.
        before_us, after_us: the minimum and maximum of the right record's time minus the left one's.
        until: the left column of the right record's latest time, in place of `after_us`; where it is null, a left
            record has no partner.

    Raises:
        SettingError: bounds in the wrong order, an outer join, or a left one with `until`.
    """

    kind: ClassVar[str] = "join"
    columns: JoinColumns
    before_us: int
    after_us: int = LONGEST_US
    until: str | None = None

    def __post_init__(self) -> None:
        if self.before_us > self.after_us:
            raise SettingError(
                f"between goes from {_signed(self.before_us)} to {_signed(self.after_us)}, so no time lies between: "
                "write the smaller bound first"
            )
        if self.columns.how == "outer":
            raise SettingError("an interval join can be 'inner' or 'left', not 'outer': swap the sides, or use window=")
        if self.until is not None and self.columns.keeps_left:
            raise SettingError(f"a join until {self.until} is 'inner': join without bounds, or with two durations")

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """See `JoinColumns`.

        Raises:
            PlanError: `until` is not a column of the left side, or holds no times.
        """
        if self.until is not None:
            if self.until not in inputs[LEFT].names:
                raise PlanError(unknown("column", self.until, inputs[LEFT].names))
            kind = inputs[LEFT].field(self.until).type
            if not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind)):
                raise PlanError(f"a join until {self.until!r} needs a timestamp there, not {kind}: cast it")
        return self.columns.output_schema(inputs[LEFT], inputs[RIGHT])

    def describe(self) -> str:
        after = _signed(self.after_us) if self.until is None else self.until
        return f"{self.columns.describe()}, {_signed(self.before_us)} to {after}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _IntervalJoin(self, inputs)


def _signed(us: int) -> str:
    return f"-{format_duration(-us)}" if us < 0 else format_duration(us)


class _IntervalJoin(TwoSidedJoin):
    """State: the records of each side that may still find a partner."""

    _called = "an interval join"

    def __init__(self, spec: IntervalJoin, inputs: Sequence[pa.Schema]) -> None:
        columns = spec.columns
        super().__init__(columns, inputs)
        self._names = columns.left_keys
        self._index = KeyIndex(columns.left_keys, inputs[LEFT])
        self._sides = (TimedRows(inputs[LEFT]), TimedRows(inputs[RIGHT]))
        # Seen from a record on either side: the times of its partners.
        self._reach = ((spec.before_us, spec.after_us), (-spec.after_us, -spec.before_us))
        self._keeps_left = columns.keeps_left
        self._wait_us = max(spec.after_us, 0)
        self._left_kept_us = self._wait_us if columns.keeps_left else spec.after_us
        self._right_kept_us = -spec.before_us
        self._until = spec.until

    def _take(self, records: Records, port: int, watermark_us: int, out: Output) -> None:
        usable = self._usable(records, port, watermark_us)
        if not usable:
            return
        batch, times = usable.batch, usable.timestamps
        assert times is not None
        codes = self._index.codes(key_batch(batch, self._keys[port], self._names))
        matched = np.zeros(len(batch), np.bool_)
        ends = self._ends(batch) if port == LEFT else None
        for pairs in self._sides[1 - port].find(codes, times, *self._reach[port]):
            found = pairs if self._until is None else _timely(pairs, times, ends)
            matched[found.wanted] = True
            found.run.matched[found.partners] = True
            later = np.maximum(times[found.wanted], found.run.times[found.partners])
            for at in range(0, len(later), _PAIRS_AT_ONCE):
                some = slice(at, at + _PAIRS_AT_ONCE)
                own = batch.take(pa.array(found.wanted[some]))
                other = found.run.take(found.partners[some])
                pair = self._rows.assemble(own, other) if port == LEFT else self._rows.assemble(other, own)
                out.emit(Records(pair, later[some]))
        self._sides[port].add(batch, codes, times, matched, ends)

    def _ends(self, batch: pa.RecordBatch) -> Int64s | None:
        """Until when left records find partners, if they say it themselves."""
        return None if self._until is None else event_times(batch.column(self._until), self._until)

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us <= self._watermark:
            return
        self._watermark = watermark_us
        if self._keeps_left:
            for batch, times in self._sides[LEFT].take_unmatched(_time(watermark_us - self._wait_us)):
                ends = np.minimum(times + self._wait_us, LATEST_TIME)
                out.emit(Records(self._rows.assemble(batch, None), ends))
        self._forget()

    def _forget(self) -> None:
        left, right = self._sides
        left.forget(self._watermark if self._until is not None else _time(self._watermark - self._left_kept_us))
        right.forget(_time(self._watermark - self._right_kept_us))
        if len(self._index) > _FEW_KEYS + 2 * (len(left) + len(right)):
            used = np.zeros(len(self._index), np.bool_)
            left.mark_codes(used)
            right.mark_codes(used)
            new_codes = self._index.retain(np.flatnonzero(used))
            left.renumber(new_codes)
            right.renumber(new_codes)

    def _saved(self, port: int) -> DelayedEncoding:
        return self._sides[port].saved()

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        self._forget()
        for port, batch, table in self._restored(snapshots):
            if len(batch):
                codes = self._index.codes(key_batch(batch, self._keys[port], self._names))
                matched: Mask = column_in(table, "matched", pa.bool_())
                ends = self._ends(batch) if port == LEFT else None
                self._sides[port].add(batch, codes, numbers_in(table, "time"), matched, ends)


def _timely(pairs: Found, times: Int64s, ends: Int64s | None) -> Found:
    """The pairs whose right record is not later than its left one says."""
    if ends is None:  # right records look for left ones
        timely = times[pairs.wanted] <= pairs.run.ends[pairs.partners]
    else:
        timely = pairs.run.times[pairs.partners] <= ends[pairs.wanted]
    return pairs if timely.all() else Found(pairs.run, pairs.wanted[timely], pairs.partners[timely])


def _time(us: int) -> int:
    """An event time after arithmetic, clamped to the valid range."""
    return min(max(us, NO_TIME), MAX_TIME)
