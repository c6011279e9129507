"""In-flight records between two tasks at an unaligned checkpoint, and how they are stored.

An unaligned barrier overtakes records. They belong to no task's state, so the checkpoint stores them: on each channel
the buffers that the sender had sent before the barrier and that the receiver had not taken before its snapshot, and
what the sender had not shipped yet. The watermarks between them are stored, too, because timers fire and records are
late at their places; but not the one at the end of the input, which may be continued.

They are in the task's file as tables of a pseudo-operator, next to other state that belongs to the task and to no
operator; watermarks are beside the tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import groupby
from typing import cast

import numpy as np
import pyarrow as pa

from workbench.durations import MAX_TIME
from workbench.elements import Element, Records, Watermark
from workbench.operators.aggregates.preaggregated import is_preaggregated
from workbench.operators.contract.base import Json, Snapshot
from workbench.operators.snapshots.pieces import table_in, value_in

TASK = "$task"
"""The name of the task itself among the operators of a checkpoint."""
TIMES = "$event_time"
"""The column of the event times of in-flight records."""
_PIECES = "in_flight"
_MARKS = "in_flight_watermarks"
_EARLY = "early"
_Piece = tuple[str, str | None, str, int, int, int, int, bool]
_Marked = tuple[str, str | None, str, int, int, int, int, bool, tuple[tuple[int, int], ...]]
Marks = tuple[tuple[int, int], ...]
"""The watermarks between records: the number of records before each one, and its value."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What one channel carries, in terms that stay valid when the plan changes: operators keep their uids when
    rescaled.

    Attributes:
        producer: uid of the operator that emits it; `tag` names a side output.
        consumer: uid of the operator that reads it, on its input `port`.
        sender, receiver: the two subtasks.
        receivers: number of receiving subtasks at that time.
    """

    producer: str
    tag: str | None
    consumer: str
    port: int
    sender: int
    receiver: int
    receivers: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """In-flight buffers, oldest first; the batches are shared with the running tasks, not copied.

    Attributes:
        flow: the channel they were on.
        buffers: the records.
        held: the sender had not shipped them yet.
        marks: the watermarks between and behind them.
    """

    flow: Flow
    buffers: tuple[Records, ...]
    held: bool = False
    marks: Marks = ()

    @property
    def rows(self) -> int:
        """Records in them."""
        return sum(map(len, self.buffers))

    @property
    def size_bytes(self) -> int:
        """Bytes in them."""
        return sum(buffer.nbytes for buffer in self.buffers)

    def in_order(self) -> Iterator[Records | int]:
        """The records, cut at the watermarks, and the watermarks between them."""
        marks = deque(self.marks)
        passed = 0
        for buffer in self.buffers:
            done, rows = 0, len(buffer)
            while marks and marks[0][0] < passed + rows:
                place, watermark_us = marks.popleft()
                if place > passed + done:
                    yield buffer.slice(done, place - passed - done)
                    done = place - passed
                yield watermark_us
            yield buffer.slice(done, rows - done) if done else buffer
            passed += rows
        for _, watermark_us in marks:
            yield watermark_us


def between(flow: Flow, elements: Sequence[Element]) -> InFlight | None:
    """The records and watermarks among the elements of a channel; None if there are none."""
    buffers: list[Records] = []
    marks: list[tuple[int, int]] = []
    rows = 0
    for element in elements:
        if type(element) is Records:
            buffers.append(element)
            rows += len(element)
        elif type(element) is Watermark:
            marks.append((rows, element.timestamp_us))
    kept = lasting(marks)
    return InFlight(flow, tuple(buffers), marks=kept) if buffers or kept else None


def lasting(marks: Iterable[tuple[int, int]]) -> Marks:
    """The watermarks except the one at the end of the input, behind which a later run may read more."""
    return tuple(mark for mark in marks if mark[1] != MAX_TIME)


def saved(task: str, pieces: Sequence[InFlight], early: int) -> Snapshot:
    """What is stored of the task itself; usually nothing.

    Args:
        task: its name.
        pieces: the data that was in flight to it, and its unsent output.
        early: records in its state that arrived behind the barrier.
    """
    snapshot: Snapshot = {}
    if marked := [piece for piece in pieces if piece.marks]:
        snapshot[_MARKS] = [
            [*astuple(piece.flow), piece.held, [list(mark) for mark in piece.marks]] for piece in marked
        ]
    pieces = [alike for piece in pieces for alike in _of_one_kind(piece)]
    if pieces:
        snapshot[_PIECES] = cast(Json, [[*astuple(piece.flow), piece.held] for piece in pieces])
        for number, piece in enumerate(pieces):
            snapshot[f"{_PIECES}-{number}"] = cast(Json, partial(as_table, piece.buffers))
    if early:
        snapshot[_EARLY] = [task, early]
    return snapshot


def _of_one_kind(piece: InFlight) -> Iterable[InFlight]:
    """Cut where records change to preaggregated rows or back: a table holds one kind or the other."""
    for _, buffers in groupby(piece.buffers, lambda buffer: is_preaggregated(buffer.batch)):
        yield replace(piece, buffers=tuple(buffers))


def restored(snapshots: Iterable[Snapshot]) -> list[InFlight]:
    """In-flight records, in the order in which each sender has to send them again.

    What had been sent comes before what its sender still held, whichever task stored it.
    """
    found: dict[tuple[Flow, bool], InFlight] = {}
    for snapshot in snapshots:
        for place, table in pieces_in(snapshot):
            flow, held = key = _key(place)
            before = found[key].buffers if key in found else ()
            found[key] = InFlight(flow, (*before, *as_buffers(table)), held)
        for place, marks in _marks_in(snapshot):
            flow, held = key = _key(place)
            found[key] = InFlight(flow, found[key].buffers if key in found else (), held, marks)
    return sorted(found.values(), key=lambda piece: piece.held)


def _key(place: _Piece) -> tuple[Flow, bool]:
    producer, tag, consumer, port, sender, receiver, receivers, held = place
    return Flow(producer, tag, consumer, port, sender, receiver, receivers), held


def _marks_in(snapshot: Snapshot) -> Iterator[tuple[_Piece, Marks]]:
    """The watermarks of one task as they are written; versions before this one wrote none."""
    if _MARKS not in snapshot:
        return
    for *piece, marks in value_in(snapshot, _MARKS, tuple[_Marked, ...]):
        places = [place for place, _ in marks]
        if min(places, default=0) < 0 or places != sorted(places):
            raise ValueError(f"{_MARKS} has the places {places}: they must grow")
        yield cast(_Piece, tuple(piece)), marks


def pieces_in(snapshot: Snapshot) -> Iterator[tuple[_Piece, pa.Table]]:
    """The pieces of one task as they are written: the place, in the terms of ``Flow`` and ``InFlight``, and a table.

    Raises:
        ValueError: the snapshot has another form; a KeyError if a table is missing.
    """
    pieces = value_in(snapshot, _PIECES, tuple[_Piece, ...]) if _PIECES in snapshot else ()
    for number, piece in enumerate(pieces):
        _, _, _, port, sender, receiver, receivers, _ = piece
        if min(port, sender, receiver) < 0 or receiver >= receivers:
            raise ValueError(f"{_PIECES}[{number}] has impossible subtask numbers")
        yield piece, table_in(snapshot, f"{_PIECES}-{number}")


def early_records(snapshots: Iterable[Snapshot]) -> dict[str, int]:
    """By task: the records that a restored state already holds and that will be sent again."""
    return dict([value_in(snapshot, _EARLY, tuple[str, int]) for snapshot in snapshots if _EARLY in snapshot])


def as_table(buffers: Sequence[Records]) -> pa.Table:
    """Buffers of one schema, each a batch, as a table; event times are a further column."""
    if all(buffer.timestamps is None for buffer in buffers):
        return pa.Table.from_batches([buffer.batch for buffer in buffers])
    return pa.Table.from_batches([_with_times(buffer) for buffer in buffers])


def _with_times(buffer: Records) -> pa.RecordBatch:
    times = buffer.timestamps
    column = pa.nulls(len(buffer), pa.int64()) if times is None else pa.array(np.ascontiguousarray(times))
    schema = buffer.batch.schema.append(pa.field(TIMES, pa.int64()))
    return pa.RecordBatch.from_arrays([*buffer.batch.columns, column], schema=schema)


def as_buffers(table: pa.Table) -> Iterable[Records]:
    """The buffers of a table that `as_table` has made.

    Raises:
        ValueError: event times are of another type.
    """
    for batch in table.to_batches():
        at = batch.schema.get_field_index(TIMES)
        if at < 0:
            yield Records(batch)
            continue
        column = batch.column(at)
        if column.type != pa.int64():
            raise ValueError(f"{TIMES} is of the type {column.type}")
        kept = pa.RecordBatch.from_arrays(batch.columns[:at], schema=batch.schema.remove(at))
        yield Records(kept, None if column.null_count else column.to_numpy())
