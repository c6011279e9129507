"""Aggregates over the records before each record: OVER (ORDER BY event time ROWS or RANGE ... PRECEDING).

A record waits until the watermark has passed it, because then all records before it are there. It is emitted with the
aggregates of its frame: the records of its key from a number of rows, or a duration, before it up to itself. With a
duration, records with the same time are in the frame as well. Records stay as long as a later frame can reach them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.durations import MAX_TIME, NO_TIME, format_duration
from workbench.elements import Int64s, Records
from workbench.errors import PlanError, RecordError
from workbench.operators.aggregates.aggregations import Aggregation, is_time
from workbench.operators.aggregates.window_functions import aggregate_types
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.operators.snapshots.pieces import numbers_in
from workbench.operators.snapshots.saved_rows import owned_rows_of, saved_rows, together
from workbench.state.key_columns import check_keys
from workbench.state.key_index import KeyIndex

Unit = Literal["rows", "range"]


@dataclass(frozen=True)
class Over:
    """Adds aggregates of the records before each record.

    Attributes:
        keys: the key columns; none: all records have one key.
        aggregates: (name, function) of each column that is added.
        unit: whether `preceding` counts records or microseconds.
        preceding: how far a frame reaches back; None: to the first record.
    """

    kind: ClassVar[str] = "over"
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregation], ...]
    unit: Unit = "range"
    preceding: int | None = None

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The columns of the input, then the aggregates.

        Raises:
            PlanError: a column that cannot be a key or be aggregated, or a taken name.
            ExpressionError: an aggregate over an unknown column.
        """
        schema = inputs[0]
        check_keys(self.keys, schema)
        added = aggregate_types(self.aggregates, schema)
        if taken := [field.name for field in added if field.name in schema.names]:
            raise PlanError(f"the input has a column {taken[0]!r} already: give the aggregate another name")
        return pa.schema([*schema, *added])

    def describe(self) -> str:
        names = ", ".join(aggregation.describe() for _, aggregation in self.aggregates)
        by = f" by {', '.join(self.keys)}" if self.keys else ""
        if self.preceding is None:
            return f"{names} of all before{by}"
        back = f"{self.preceding} rows" if self.unit == "rows" else format_duration(self.preceding)
        return f"{names} of {back} before{by}"

    def growing(self) -> str | None:
        """What frames that count records, or begin with the first one, reach back to; None: bounded by event time."""
        of = f" of each {', '.join(self.keys)}" if self.keys else ""
        if self.preceding is None:
            return f"all rows{of}"
        return f"the last {self.preceding} rows{of}" if self.unit == "rows" and self.keys else None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _Over(self, inputs[0])


@dataclass(frozen=True, slots=True)
class _Rows:
    """Records with the codes of their keys and their event times."""

    batch: pa.RecordBatch
    codes: Int64s
    times: Int64s

    def where(self, rows: Int64s) -> _Rows:
        return _Rows(self.batch.take(pa.array(rows)), self.codes[rows], self.times[rows])


class _Over(Operator):
    """State: the records that wait for the watermark, and those that later frames reach."""

    def __init__(self, spec: Over, schema: pa.Schema) -> None:
        self._spec = spec
        self._input = schema
        self._schema = spec.output_schema([schema])
        read = dict.fromkeys((*spec.keys, *(item.column for _, item in spec.aggregates if item.column is not None)))
        self._read = list(read) or schema.names[:1]
        self._index = KeyIndex(spec.keys, schema)
        self._waiting: list[_Rows] = []
        self._kept = self._none(pa.schema([schema.field(name) for name in self._read]))
        self._first_us = MAX_TIME  # of the waiting records
        self._watermark = NO_TIME

    @staticmethod
    def _none(schema: pa.Schema) -> _Rows:
        nothing = np.empty(0, np.int64)
        return _Rows(together([], schema), nothing, nothing)

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._past = PastWatermarks(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            raise RecordError(
                "records without event times reached OVER: name the event-time column at the source (event_time=)"
            )
        for part, watermark_us in self._past.parts(records, self._spec.keys, self._watermark):
            usable = self._context.counters.on_time(part, watermark_us, self._spec.keys)
            if len(usable):
                assert usable.timestamps is not None
                self._waiting.append(_Rows(usable.batch, self._index.codes(usable.batch), usable.timestamps))
                self._first_us = min(self._first_us, int(usable.timestamps.min()))

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us <= self._watermark:
            return
        self._watermark = watermark_us
        if not self._waiting or self._first_us > watermark_us:
            return
        waiting = _together(self._waiting)
        ripe = waiting.times <= watermark_us
        rest = waiting.where(np.flatnonzero(~ripe))
        self._waiting = [rest] if len(rest.times) else []
        self._first_us = int(rest.times.min(initial=MAX_TIME))
        self._emit(waiting.where(np.flatnonzero(ripe)), out)

    def _emit(self, new: _Rows, out: Output) -> None:
        held = len(self._kept.times)
        narrow = _together([self._kept, _Rows(new.batch.select(self._read), new.codes, new.times)])
        order = np.lexsort((narrow.times, narrow.codes))  # stable: records of one time stay in the order of arrival
        rows = narrow.where(order)
        begins = np.searchsorted(rows.codes, rows.codes)
        at = np.arange(len(order))
        first, last = self._frames(rows, begins, at)
        fresh = order >= held
        first, last = first[fresh], last[fresh]
        columns = [aggregated(item, rows.batch, first, last) for _, item in self._spec.aggregates]
        emitted = new.where(order[fresh] - held)
        arrays = [
            column.cast(field.type) if column.type != field.type else column
            for column, field in zip([*emitted.batch.columns, *columns], self._schema, strict=True)
        ]
        self._kept = rows.where(self._reachable(rows, at))
        out.emit(Records(pa.RecordBatch.from_arrays(arrays, schema=self._schema), emitted.times))

    def _frames(self, rows: _Rows, begins: Int64s, at: Int64s) -> tuple[Int64s, Int64s]:
        """The first and the last row of each row's frame."""
        back = self._spec.preceding
        if self._spec.unit == "rows":
            return (begins if back is None else np.maximum(begins, at - back)), at
        same = np.empty(len(at), np.bool_)
        same[-1:] = False
        same[:-1] = (rows.codes[1:] == rows.codes[:-1]) & (rows.times[1:] == rows.times[:-1])
        ends = np.flatnonzero(~same)
        last = ends[np.searchsorted(ends, at)]
        if back is None:
            return begins, last
        first = begins.copy()
        bounds = np.flatnonzero(begins == at).tolist()
        for begin, end in zip(bounds, [*bounds[1:], len(at)], strict=True):
            times = rows.times[begin:end]
            first[begin:end] = begin + np.searchsorted(times, times - back)
        return first, last

    def _reachable(self, rows: _Rows, at: Int64s) -> Int64s:
        """The rows that frames of later records reach."""
        back = self._spec.preceding
        if back is None:
            return at
        if self._spec.unit == "range":
            return np.flatnonzero(rows.times > self._watermark - back)
        ends = np.searchsorted(rows.codes, rows.codes, "right")
        return np.flatnonzero(ends - at <= back)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        waiting = _together(self._waiting) if self._waiting else self._none(self._input)
        return cast(
            "Snapshot",
            {
                "watermarks": self._past.snapshot(self._watermark),
                "waiting": saved_rows(waiting.batch, {"time": pa.array(waiting.times)}),
                "kept": saved_rows(self._kept.batch, {"time": pa.array(self._kept.times)}),
            },
        )

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        for piece, schema in (("waiting", self._input), ("kept", self._kept.batch.schema)):
            batch, table = owned_rows_of(snapshots, piece, self._spec.keys, schema, self._context)
            rows = _Rows(batch, self._index.codes(batch), numbers_in(table, "time"))
            if piece == "kept":
                self._kept = rows
            elif len(batch):
                self._waiting = [rows]
                self._first_us = int(rows.times.min())


def _together(parts: Sequence[_Rows]) -> _Rows:
    if len(parts) == 1:
        return parts[0]
    codes, times = (np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "times"))
    return _Rows(pa.concat_batches([part.batch for part in parts]), codes, times)


def aggregated(item: Aggregation, batch: pa.RecordBatch, first: Int64s, last: Int64s) -> pa.Array:
    """The aggregate of rows ``first[i]`` to ``last[i]``, for each i."""
    if item.column is None:
        return pa.array(last - first + 1)
    column = batch.column(item.column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    counts = _sums(valid.astype(np.int64), first, last)
    if item.function == "count":
        return pa.array(counts)
    kind = column.type
    whole = not pa.types.is_floating(kind)
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif is_time(kind):
        column = column.view(pa.int64())
    numbers = column.cast(pa.int64() if whole else pa.float64()).fill_null(0).to_numpy()
    if item.function in ("sum", "mean"):
        if not whole:
            sums = _reduced(np.add, numbers, 0.0, first, last)
        elif item.function == "sum":
            sums = _checked_sums(item, numbers, first, last)
        else:
            high, low = _halves(numbers, first, last)
            sums = high * float(_HALF) + low
        values = sums if item.function == "sum" else sums / np.maximum(counts, 1)
        return pa.array(values, mask=counts == 0)
    largest = item.function == "max"
    limits: tuple[float, float] = (-(2**63), 2**63 - 1) if whole else (-np.inf, np.nan)
    neutral = limits[0] if largest else limits[1]
    numbers = np.where(valid, numbers, neutral)
    extremes = _reduced(np.maximum if largest else np.fmin, numbers, neutral, first, last)
    made = pa.array(extremes, mask=counts == 0)
    if pa.types.is_date32(kind):
        return made.cast(pa.int32()).view(kind)
    return made.view(kind) if is_time(kind) else made


def _sums(numbers: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Sums of whole numbers, by differences of running sums."""
    running = np.concatenate([[0], np.cumsum(numbers)])
    found: Int64s = running[last + 1] - running[first]
    return found


_HALF = 2**32


def _halves(numbers: Int64s, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
    """The sums of the upper and of the lower 32 bits, which do not overflow."""
    return _sums(numbers >> 32, first, last), _sums(numbers & (_HALF - 1), first, last)


def _checked_sums(item: Aggregation, numbers: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """Sums of whole numbers.

    Raises:
        RecordError: a sum is beyond int64.
    """
    longest = int((last - first).max(initial=0)) + 1
    if max(-int(numbers.min(initial=0)), int(numbers.max(initial=0))) * longest >= 2**63:
        high, low = _halves(numbers, first, last)
        whole = high + (low >> 32)
        if ((whole < -(2**31)) | (whole >= 2**31)).any():
            raise RecordError(
                f"sum({item.column}) exceeded the range of int64: cast the column {item.column!r} to float64 before "
                "aggregating"
            )
    return _sums(numbers, first, last)


def _reduced(
    function: np.ufunc, numbers: npt.NDArray[np.generic], neutral: float, first: Int64s, last: Int64s
) -> npt.NDArray[np.generic]:
    padded = np.append(numbers, np.array([neutral], numbers.dtype))
    bounds = np.empty(2 * len(first), np.int64)
    bounds[::2], bounds[1::2] = first, last + 1
    reduced: npt.NDArray[np.generic] = function.reduceat(padded, bounds)[::2]
    return reduced
