"""Punctuated watermarks: marked records determine event time, exactly at their place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from workbench.arguments import as_given
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Int64s, Records, holds_times, instants
from workbench.errors import ExpressionError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.from_json import made
from workbench.operators.contract.base import Json
from workbench.operators.event_time.watermarks import Marks, WatermarkGenerator, Watermarks, no_times


@dataclass(frozen=True, slots=True)
class Punctuated:
    """Marked records carry the watermarks.

    Args:
        mark: of a boolean type, it marks records behind which no record at or before their own event time follows; of a
            time type (or int64 microseconds), its value is the watermark, null where a record carries none.
        exact: every watermark takes effect directly behind its own record.
    """

    mark: str | Expression
    exact: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mark, str | Expression):
            raise ExpressionError(f"punctuated got {as_given(self.mark)}: write an expression, such as 'kind = 1'")

    def describe(self) -> str:
        return f"marked by {self.mark if isinstance(self.mark, str) else self.mark.sql}"

    def create(self, schema: pa.Schema) -> WatermarkGenerator:
        return PunctuatedGenerator(compile_expression(self.mark, schema), exact=self.exact)


class PunctuatedGenerator(WatermarkGenerator):
    """Finds the marked records.

    A watermark that makes a later record of the same batch late takes effect directly behind its own record, so that
    the way records are cut into batches does not decide which are late; others may wait for the end of the batch,
    unless an operator downstream can see which records came before them.
    """

    asks_clock = False

    def __init__(self, mark: Compiled, *, exact: bool = False) -> None:
        kind = mark.type
        self._boolean = pa.types.is_boolean(kind)
        if not (self._boolean or holds_times(kind)):
            raise ExpressionError(
                f"the watermarks' mark {mark.sql!r} has type {kind}: it must be a condition, or the watermark itself "
                "as a timestamp, a date or int64 microseconds"
            )
        self._mark = mark
        self._exact = exact
        self._reached_us = NO_TIME

    def observe(self, records: Records) -> Marks:
        times = no_times(records) if records.timestamps is None else records.timestamps
        told = self._told(records.batch, times)
        places = np.flatnonzero(told != NO_TIME)
        if not len(places):
            return ()
        reached = np.maximum.accumulate(np.append(self._reached_us, told[places]))
        grown = reached[1:] > reached[:-1]
        if not grown.any():
            return ()
        places, reached = places[grown], reached[1:][grown]
        self._reached_us = int(reached[-1])
        if self._exact:
            return list(zip((places + 1).tolist(), reached.tolist(), strict=True))
        known = np.where(times == NO_TIME, MAX_TIME, times)
        lowest_after = np.append(np.minimum.accumulate(known[::-1])[::-1], MAX_TIME)[places + 1]
        needed = lowest_after <= reached
        marks = [(int(place) + 1, int(time)) for place, time in zip(places[needed], reached[needed], strict=True)]
        if not needed[-1]:
            marks.append((len(records), self._reached_us))
        return marks

    def _told(self, batch: pa.RecordBatch, times: Int64s) -> Int64s:
        marks = self._mark(batch)
        if not self._boolean:
            return instants(marks, self._mark.sql)
        marked = marks.fill_null(False).to_numpy(zero_copy_only=False)
        told: Int64s = np.where(marked, times, NO_TIME)
        return told

    def snapshot(self) -> Json:
        return None if self._reached_us == NO_TIME else self._reached_us

    def restore(self, state: Json) -> None:
        self._reached_us = max(self._reached_us, made(int, state, "the watermark"))

    go_on = restore


def exactly(watermarks: Watermarks) -> Watermarks:
    """The same policy, with every watermark directly behind its own record.

    Example:
        >>> exactly(punctuated("true"))
        Punctuated(mark='true', exact=True)
    """
    return replace(watermarks, exact=True) if isinstance(watermarks, Punctuated) else watermarks


def punctuated(mark: str | Expression) -> Watermarks:
    """Watermarks that records carry.

    Each takes effect directly behind its record wherever an operator can see that: the timers of a process function
    and the triggers of windows fire there, with every buffer timeout and buffer size.

    Source: F2-5; punctuations (Tucker et al., 2003).

    Args:
        mark: a column or expression. A condition marks the records behind which no record at or before their own event
            time follows; a timestamp, date or int64 (microseconds) is the watermark itself, null if there is none.

    Raises:
        ExpressionError: when the stream is built: the mark does not fit the columns, or is neither a condition nor a
        time.

    Example:
        >>> punctuated("kind = 'heartbeat'").describe()
        "marked by kind = 'heartbeat'"
    """
    return Punctuated(mark)
