"""The common part of event-time joins of two streams: keys, late records and the parts of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

import pyarrow as pa

from workbench.durable.delayed_encoding import DelayedEncoding
from workbench.durations import NO_TIME
from workbench.elements import Records
from workbench.errors import RecordError
from workbench.operators.contract.base import Json, Operator, OperatorContext, Output, Snapshot
from workbench.operators.joins.columns import JoinColumns, JoinRows, without_null_keys
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.operators.snapshots.saved_rows import owned_rows_of

LEFT, RIGHT = 0, 1
SIDES = ("left", "right")


class TwoSidedJoin(Operator):
    """Keeps records of both sides until the watermark passes them.

    Args:
        columns: the columns compared and emitted.
        inputs: schemas of both sides.
    """

    _called: ClassVar[str]
    """The operator's name in errors."""

    def __init__(self, columns: JoinColumns, inputs: Sequence[pa.Schema]) -> None:
        self._columns = columns
        self._inputs = inputs
        self._keys = (columns.left_keys, columns.right_keys)
        self._keeps = (columns.keeps_left, columns.keeps_right)
        self._rows = JoinRows(columns, inputs[LEFT], inputs[RIGHT])
        self._watermark = NO_TIME

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._past = PastWatermarks(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            raise RecordError(
                f"records without event times reached {self._called}: name the event-time column at the source "
                "(event_time=)"
            )
        for part, watermark_us in self._past.parts(records, self._keys[port], self._watermark):
            self._take(part, port, watermark_us, out)

    def _take(self, records: Records, port: int, watermark_us: int, out: Output) -> None:
        """Accept records of one side; those up to the watermark are late."""
        raise NotImplementedError(type(self).__name__)  # abstract

    def _usable(self, records: Records, port: int, watermark_us: int) -> Records:
        """The records on time that can have a partner, or are emitted without one; late ones are counted."""
        kept = self._context.counters.which_on_time(records, watermark_us, self._keys[port])
        if port == RIGHT or not self._keeps[LEFT]:
            complete = without_null_keys(records.batch, self._keys[port])
            if complete is not None:
                kept = complete if kept is None else kept & complete
        return records if kept is None else records.where(kept)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        pieces: dict[str, Json | DelayedEncoding] = {"watermarks": self._past.snapshot(self._watermark)}
        pieces |= {side: self._saved(port) for port, side in enumerate(SIDES)}
        return cast("Snapshot", pieces)

    def _saved(self, port: int) -> DelayedEncoding:
        """The records of one side, to be copied off the data path: none of them changes."""
        raise NotImplementedError(type(self).__name__)  # abstract

    def _restored(self, snapshots: Sequence[Snapshot]) -> Iterator[tuple[int, pa.RecordBatch, pa.Table]]:
        """Each side's records that belong to this subtask now, and the table that they are from."""
        for port, side in enumerate(SIDES):
            yield port, *owned_rows_of(snapshots, side, self._keys[port], self._inputs[port], self._context)
