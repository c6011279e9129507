"""Assigns new event times to the records of a stream, and generates new watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import pyarrow as pa

from workbench.durations import LAST_WATERMARK, MAX_TIME, NO_TIME
from workbench.elements import Records, event_times, holds_times
from workbench.errors import ExpressionError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.operators.contract.base import EventTimeOutput, Json, Operator, OperatorContext, Output, Snapshot
from workbench.operators.event_time.punctuated import exactly
from workbench.operators.event_time.watermarks import (
    WATERMARK_INTERVAL_US,
    Ingestion,
    IngestionGenerator,
    WatermarkGenerator,
    Watermarks,
    note_times,
)
from workbench.operators.snapshots.pieces import value_in
from workbench.origin import Origin


@dataclass(frozen=True, eq=False)
class AssignTimestamps:
    """Computes event times with an expression; watermarks of the input are replaced, except the one at its end.

    Args:
        event_time: yields a timestamp, a date or int64 microseconds since 1970; None with `Ingestion`.
        watermarks: the watermark strategy.
        idle_after_us: without records for this long, the subtask stops holding event time back; None: never.
        origin: the user's line, for errors.

    Example:
        >>> from workbench.operators.event_time.watermarks import Bounded
        >>> from workbench.expressions import col
        >>> AssignTimestamps(col("landed"), Bounded(5_000_000)).describe()
        'by landed, at most 5s out of order'
    """

    event_time: Expression | None
    watermarks: Watermarks
    idle_after_us: int | None = None
    origin: Origin | None = field(default=None, repr=False)
    kind: ClassVar[str] = "assign_timestamps"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        self._compile(inputs[0])
        self.watermarks.create(inputs[0])
        return inputs[0]

    def exactly(self) -> AssignTimestamps:
        """The same, with every watermark directly behind its own record."""
        return replace(self, watermarks=exactly(self.watermarks))

    def describe(self) -> str:
        how = self.watermarks.describe()
        return how if self.event_time is None else f"by {self.event_time.sql}, {how}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        generator = self.watermarks.create(inputs[0])
        return AssignTimestampsLogic(self._compile(inputs[0]), generator, self.idle_after_us, self.origin)

    def _compile(self, schema: pa.Schema) -> Compiled | None:
        if self.event_time is None:
            assert isinstance(self.watermarks, Ingestion)
            return None
        compiled = compile_expression(self.event_time, schema, self.origin)
        kind = compiled.type
        if not holds_times(kind):
            raise ExpressionError(
                f"the event time {self.event_time.sql!r} has type {kind}: it must be a timestamp, a date, or int64 "
                "microseconds since 1970",
                origin=self.origin,
            )
        return compiled


class AssignTimestampsLogic(Operator):
    """Keeps the progress of one generator, like a source's split."""

    tells_event_time = True

    def __init__(
        self,
        event_time: Compiled | None,
        generator: WatermarkGenerator,
        idle_after_us: int | None,
        origin: Origin | None = None,
    ) -> None:
        self._event_time = event_time
        self._generator = generator
        self._idle_after_us = idle_after_us
        self._origin = origin
        self._told_us = NO_TIME
        self._ask_us: int | None = None  # when the generator is called next
        self._rested_us = NO_TIME  # and not before this
        self._idle = False
        self._first = 0  # the first row that is being emitted

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._seen = context.counters.event_times
        self._active_us = context.clock.now_us()
        if self._generator.asks_clock:
            self._ask_us = self._active_us

    def process(self, records: Records, port: int, out: Output) -> None:
        onward = cast("EventTimeOutput", out)
        now_us = self._active_us = self._clock.now_us()
        if self._idle:
            self._idle = False
            onward.emit_idle(False)
        if self._event_time is None:
            assert isinstance(self._generator, IngestionGenerator)
            timed = self._generator.stamp(records.batch, now_us)
        else:
            times = event_times(self._event_time(records.batch), self._event_time.sql, self._origin)
            timed = Records(records.batch, times)
        note_times(self._generator, timed, self._seen, now_us)
        done = self._first = 0
        for place, watermark_us in self._generator.observe(timed):
            onward.emit(timed.slice(done, place - done))
            done = self._first = place
            self._tell(min(watermark_us, LAST_WATERMARK), onward)
        if done < len(timed):
            onward.emit(timed.slice(done, len(timed) - done) if done else timed)
        if self._ask_us is None:
            self._ask_us = max(now_us, self._rested_us)

    def parent_of(self, row: int) -> int | None:
        return self._first + row

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us == MAX_TIME:
            self._ask_us = self._idle_after_us = None
            self._tell(MAX_TIME, cast("EventTimeOutput", out))

    def next_time_us(self) -> int | None:
        if self._idle_after_us is None or self._idle:
            return self._ask_us
        silent_us = self._active_us + self._idle_after_us
        return silent_us if self._ask_us is None else min(silent_us, self._ask_us)

    def on_time(self, now_us: int, out: Output) -> None:
        onward = cast("EventTimeOutput", out)
        if self._ask_us is not None and now_us >= self._ask_us:
            told_us = self._generator.ask(now_us)
            self._rested_us = now_us + WATERMARK_INTERVAL_US
            # A generator that only reads records has nothing new to report before the next record.
            self._ask_us = self._rested_us if self._generator.asks_clock else None
            if told_us is not None:
                self._tell(min(told_us, LAST_WATERMARK), onward)
        if not self._idle and self._idle_after_us is not None and now_us - self._active_us >= self._idle_after_us:
            self._idle = True
            onward.emit_idle(True)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        reached_us = self._generator.ask(self._clock.now_us())
        known_us = self._told_us if reached_us is None else max(self._told_us, reached_us)
        return {"watermark": known_us, "generator": self._generator.snapshot()}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Resume from the former subtask that was furthest behind: no record that would have been on time becomes
        late."""
        slowest = min(snapshots, key=lambda snapshot: value_in(snapshot, "watermark", int))
        if slowest["watermark"] != NO_TIME and slowest["generator"] is not None:
            self._generator.go_on(cast("Json", value_in(slowest, "generator", Any)))
            self._ask_us = self._clock.now_us()

    def _tell(self, watermark_us: int, out: EventTimeOutput) -> None:
        if watermark_us > self._told_us:
            self._told_us = watermark_us
            out.emit_watermark(watermark_us)
