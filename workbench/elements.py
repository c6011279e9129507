"""The elements of a channel: buffers of records and control elements, in one FIFO.

Only the barrier of an unaligned checkpoint overtakes others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.durations import EARLIEST_TIME, LATEST_TIME, NO_TIME
from workbench.errors import RecordError
from workbench.origin import Origin

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_INT64 = pa.int64()


@dataclass(frozen=True, slots=True)
class Records:
    """An immutable batch of records and their event times.

    Attributes:
        batch: the columns, `n` rows.
        timestamps: shape (n,), event times in microseconds since 1970, NO_TIME where a record has none; None when
            no record of the stream has an event time.
        latest_us: the largest of `timestamps`, if it is known.
    """

    batch: pa.RecordBatch
    timestamps: Int64s | None = None
    latest_us: int | None = None

    @staticmethod
    def timed(batch: pa.RecordBatch, column: str | None) -> Records:
        """The rows of `batch`, whose event times are in `column`; None: they have none.

        Raises:
            RecordError: a time before `EARLIEST_TIME` or after `LATEST_TIME`.
        """
        if column is None:
            return Records(batch)
        times = instants(batch.column(column), column)
        latest_us = _checked(times, column)
        return Records(batch, times, latest_us)

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of its rows and their event times."""
        return int(self.batch.nbytes + (0 if self.timestamps is None else self.timestamps.nbytes))

    def slice(self, offset: int, length: int) -> Records:
        """Rows [offset, offset + length), without copying."""
        times = self.timestamps
        return Records(self.batch.slice(offset, length), None if times is None else times[offset : offset + length])

    def where(self, chosen: Mask) -> Records:
        """The rows for which `chosen`, shape (n,), is true."""
        times = self.timestamps
        return Records(self.batch.filter(pa.array(chosen)), None if times is None else times[chosen])

    @staticmethod
    def concat(parts: Sequence[Records]) -> Records:
        """The rows of all parts, of one schema, in order; if only some have timestamps the others get NO_TIME."""
        if len(parts) == 1:
            return parts[0]
        batches, given = [], []
        for part in parts:
            batches.append(part.batch)
            if part.timestamps is not None:
                given.append(part.timestamps)
        batch = pa.concat_batches(batches)
        if not given:
            return Records(batch)
        if len(given) == len(parts):
            return Records(batch, np.concatenate(given))
        times = [np.full(len(part), NO_TIME) if part.timestamps is None else part.timestamps for part in parts]
        return Records(batch, np.concatenate(times))


@dataclass(frozen=True, slots=True)
class Watermark:
    """No record with an event time at or below `timestamp_us` is expected any more on this channel (F2-5, F2-6)."""

    timestamp_us: int


@dataclass(frozen=True, slots=True)
class WatermarkStatus:
    """Whether a channel takes part in the minimum over channels: an idle one does not hold the watermark back."""

    idle: bool


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """Separates the records of one checkpoint from those of the next (F2-9).

    Attributes:
        checkpoint_id: from 1, increasing.
        triggered_us: processing time at which the coordinator triggered the checkpoint.
        mode: name of the fault-tolerance policy, which determines what a task does with it.
        overtakes_at_us: processing time from which it overtakes records; None: never.
        behind: the number of buffers of records sent on its channel before it, if it has overtaken in-flight records;
            None: it has overtaken nothing.
        watermark_us: the last watermark sent on its channel before it, if it has overtaken in-flight records.
        offsets: the sources save new positions (True) or those that they saved before (False) with it; None: positions
            have no clock of their own.
        outputs_only: it asks for the positions of sources and for what sinks write, not for the state of operators.
        savepoint: the checkpoint is a savepoint, which is kept until a user deletes it.
    """

    checkpoint_id: int
    triggered_us: int
    mode: str = "exactly-once"
    overtakes_at_us: int | None = None
    behind: int | None = None
    offsets: bool | None = None
    outputs_only: bool = False
    savepoint: bool = False
    watermark_us: int = NO_TIME


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Travels with the records, never overtakes them and bypasses operator logic.

    Attributes:
        marked_us: processing time at the source.
        source: name of the source task.
        rested_us: how long the source had rested before: the records that became due meanwhile were read with it, and
            travel longer than the marker by up to this time.
        covers_us: the time of the source for which it stands, in percentiles over several markers.
    """

    marked_us: int
    source: str
    rested_us: int = 0
    covers_us: int = 20_000


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """Nothing follows on this channel."""


@dataclass(frozen=True, slots=True)
class EndOfInFlight:
    """The in-flight records of the checkpoint from which this attempt resumes have all been resent; new records
    follow."""


Element = Records | Watermark | WatermarkStatus | CheckpointBarrier | LatencyMarker | EndOfInFlight | EndOfStream


def event_times(column: pa.Array, name: str, origin: Origin | None = None) -> Int64s:
    """The event times in an Arrow timestamp, date or int64 (microseconds) column; nulls become NO_TIME.

    Event times enter here, so later code can add and subtract durations without leaving int64.

    Args:
        column: n values; for int64 the smallest, -2**63, is treated as null.
        name: of the column, for errors.
        origin: the user's line, for errors.

    Raises:
        RecordError: a time before `EARLIEST_TIME` or after `LATEST_TIME`.
    """
    times = instants(column, name, origin)
    _checked(times, name, origin)
    return times


def _checked(times: Int64s, name: str, origin: Origin | None = None) -> int | None:
    """Check that no time is too far from 1970; returns the largest one, or None if it is not known after one pass.

    One pass suffices for times from 1970 on: as an unsigned number, an earlier time is larger than all of them.
    """
    if not len(times):
        return None
    latest_us = int(np.maximum.reduce(times.view(np.uint64)))
    if latest_us <= LATEST_TIME:
        return latest_us
    outside = times[((times < EARLIEST_TIME) & (times != NO_TIME)) | (times > LATEST_TIME)]
    if len(outside):
        raise _far(name, str(outside[0]), "microseconds", origin)
    return None


def holds_times(kind: pa.DataType) -> bool:
    """Whether a column of this type can be an event-time column: `instants` takes it.

    Example:
        >>> holds_times(pa.date32()), holds_times(pa.int64()), holds_times(pa.string())
        (True, True, False)
    """
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_int64(kind))


def instants(column: pa.Array, name: str, origin: Origin | None = None) -> Int64s:
    """The times in an Arrow timestamp, date or int64 (microseconds) column; nulls become NO_TIME.

    Args:
        column: n values.
        name: of the column, for errors.
        origin: the user's line, for errors.

    Raises:
        RecordError: a time beyond int64 microseconds.
    """
    kind = column.type
    if kind == _INT64:
        pass
    elif pa.types.is_timestamp(kind) and kind.unit == "us":
        column = column.view(_INT64)
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        cuts = pa.types.is_timestamp(kind) and kind.unit == "ns"  # truncate to microseconds
        try:
            column = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=not cuts).view(pa.int64())
        except pa.ArrowInvalid as error:
            raise _far(name, str(error).rpartition(" ")[2], str(kind), origin) from None
    if column.null_count:
        column = column.fill_null(NO_TIME)
    times: Int64s = column.to_numpy(zero_copy_only=False)
    return times


def _far(name: str, value: str, kind: str, origin: Origin | None) -> RecordError:
    return RecordError(
        f"a time of {name!r} is {value} as {kind}, more than 73,000 years from 1970: is it in another unit? If it "
        "stands for 'never' or 'forever', replace it with null, for example with assign_timestamps",
        origin=origin,
    )
