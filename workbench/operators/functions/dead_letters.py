"""Poison records: records that a user's function cannot process.

By default such a record fails the task with an error that shows it. With ``on_error="dead_letter"`` it goes to the
side output ``"dead_letters"`` instead, is counted in ``numRecordsInErrors``, and processing continues. Dead letters
are ordinary records behind barriers, so a sink has each of them as often as any other row.

Both include the position of the record in its source, if known (see ``positions.py``): the operator must be chained to
the source, with only operators in between whose rows can be traced (``filter``, ``select``, ``with_columns``, ``map``,
``flat_map``, ``assign_timestamps``). Behind an exchange it is not known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, time
from functools import partial
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import PlanError, RecordError, unknown
from workbench.operators.contract.base import Counters, OperatorContext, Output
from workbench.operators.contract.conforming import conforms
from workbench.operators.contract.positions import Parts
from workbench.operators.functions.record_loop import LoopError
from workbench.operators.functions.user_function import (
    FailedRowError,
    UnfitRowError,
    UserFunction,
    on_record,
    record_at,
)
from workbench.origin import Origin
from workbench.traces import Trace

OnError = Literal["fail", "dead_letter"]
POLICIES: tuple[OnError, ...] = ("fail", "dead_letter")

TAG = "dead_letters"
BASE64 = {b"workbench:text": b"base64"}
"""Metadata of a field of bytes that formats of text write as base64; they refuse other bytes."""
SCHEMA = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int32(), nullable=False),
        pa.field("key", pa.string()),
        pa.field("position", pa.string()),
        pa.field("error", pa.string(), nullable=False),
        pa.field("record", pa.string(), nullable=False),
        pa.field("event_time", pa.timestamp("us", "UTC")),
        pa.field("traceback", pa.string()),
        pa.field("source", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("id", pa.string()),
        pa.field("path", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("format", pa.string(), nullable=False),
        pa.field("raw", pa.binary(), nullable=False, metadata=BASE64),
        pa.field("raw_bytes", pa.int64(), nullable=False),
    ]
)
"""Columns of dead letters; `Stream.dead_letters` describes them."""

ROW = "row"
"""The format of a dead letter that was a row: an Arrow IPC stream with this row."""
RAW_BYTES_MAX = 1 << 20
"""The number of bytes of a record that a dead letter keeps."""
SHOWN_MAX = 10_000
"""The number of bytes of a message or line that a dead letter shows as text."""

T = TypeVar("T")
KeyOf = Callable[[int], object]


@runtime_checkable
class KeepsDeadLetters(Protocol):
    """A source that can continue after input that is not a record."""

    @property
    def on_error(self) -> OnError:
        """What happens to such input."""


def keeps_dead_letters(source: object) -> TypeGuard[KeepsDeadLetters]:
    """Whether a source can do that."""
    return conforms(source, KeepsDeadLetters)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter.

    Attributes:
        error: the error message.
        record: as JSON text, or the text of its bytes.
        raw: its bytes.
        format: of these bytes: that of its source, or `ROW`.
        key: as text.
        position: in its source, such as ``data.csv, line 17``; None: not known.
        time_us: its event time; NO_TIME: none.
        traceback: the user's lines that the error has passed; None: none.
        size: how many bytes it had, if `raw` is not all of them.
    """

    error: str
    record: str
    raw: bytes
    format: str
    key: str | None = None
    position: str | None = None
    time_us: int = NO_TIME
    traceback: str | None = None
    size: int | None = None


def check_on_error(on_error: str, origin: Origin | None) -> None:
    """Reject an unknown policy.

    Raises:
        PlanError: lists the valid ones.
    """
    if on_error not in POLICIES:
        raise PlanError(unknown("on_error", on_error, POLICIES), origin=origin)


def side_schemas(on_error: OnError) -> dict[str, pa.Schema]:
    """The side output of an operator with this policy."""
    return {TAG: SCHEMA} if on_error == "dead_letter" else {}


def as_records(letters: Sequence[DeadLetter], context: OperatorContext, *, with_times: bool) -> Records:
    """Dead letters as a batch of `SCHEMA`.

    Args:
        letters: at least one.
        context: of the operator.
        with_times: the stream has event times.
    """
    times = np.array([letter.time_us for letter in letters], np.int64)
    columns = [
        pa.array([context.uid] * len(letters)),
        pa.array([context.subtask] * len(letters), pa.int32()),
        *(_texts(letters, name) for name in ("key", "position", "error", "record")),
        pa.array(times, pa.int64(), mask=times == NO_TIME).cast(SCHEMA.field("event_time").type),
        pa.array([letter.traceback for letter in letters], pa.string()),
        *(_parts(letters, SCHEMA.field(part.name)) for part in fields(Parts)),
        pa.array([letter.format for letter in letters]),
        pa.array([letter.raw[:RAW_BYTES_MAX] for letter in letters], pa.binary()),
        pa.array([len(letter.raw) if letter.size is None else letter.size for letter in letters], pa.int64()),
    ]
    return Records(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), times if with_times else None)


def _texts(letters: Sequence[DeadLetter], name: str) -> pa.Array:
    """Texts of dead letters, without the NULs that texts of PostgreSQL cannot hold."""
    texts: list[str | None] = [getattr(letter, name) for letter in letters]
    return pa.array([text if text is None else text.replace("\0", "\ufffd") for text in texts], pa.string())


def _parts(letters: Sequence[DeadLetter], item: pa.Field) -> pa.Array:
    """A part of the positions; null where a position has none, or is plain text, as of a user's own source."""
    found = [getattr(letter.position, "parts", None) for letter in letters]
    return pa.array([getattr(parts, item.name, None) for parts in found], item.type)


def of_bytes(error: str, raw: bytes, form: str, position: str | None) -> DeadLetter:
    """The dead letter of a message or line.

    Example:
        >>> of_bytes("it is empty", b"", "csv", "data.csv, line 17").position
        'data.csv, line 17'
    """
    return DeadLetter(error, raw[:SHOWN_MAX].decode("utf-8", "replace"), raw, form, position=position)


def of_row(
    error: str, batch: pa.RecordBatch, at: int, key: str | None, position: str | None, *, time_us: int, trace: str = ""
) -> DeadLetter:
    """The dead letter of a row.

    Args:
        error: the error message.
        batch: that has the row.
        at: its index.
        key: as text.
        position: of the row in its source, if known.
        time_us: its event time; NO_TIME: none.
        trace: the user's lines that the error has passed.
    """
    record = as_json(record_at(batch, at))
    return DeadLetter(error, record, row_bytes(batch, at), ROW, key, position, time_us, trace or None)


def row_bytes(batch: pa.RecordBatch, at: int) -> bytes:
    """Row `at` as an Arrow IPC stream; columns of codes hold their values instead.

    Example:
        >>> pa.ipc.open_stream(row_bytes(pa.record_batch({"n": [7, 8]}), 1)).read_all().to_pylist()
        [{'n': 8}]
    """
    row = pa.Table.from_batches([batch.slice(at, 1)])
    for place, item in enumerate(row.schema):
        if pa.types.is_dictionary(item.type):
            row = row.set_column(place, item.name, row.column(place).cast(item.type.value_type))
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, row.schema) as writer:
        writer.write_table(row)
    made: bytes = buffer.getvalue().to_pybytes()
    return made


def as_json(record: Mapping[str, Any] | list[Any]) -> str:
    """A record, or a value in one, as JSON; values that JSON cannot represent become text.

    Example:
        >>> from datetime import datetime
        >>> as_json({"at": datetime(2026, 1, 2), "share": float("nan"), "who": None})
        '{"at": "2026-01-02T00:00:00", "share": "nan", "who": null}'
    """
    return json.dumps(_plain(record), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


class PoisonRecords:
    """Runs code that may fail on a record, and handles such records by an operator's policy.

    Args:
        on_error: the policy.
        user: the user's function.
    """

    def __init__(self, on_error: OnError, user: UserFunction) -> None:
        self._kept = on_error == "dead_letter"
        self._user = user
        self._letters: list[tuple[int, DeadLetter]] = []  # with their index in the batch
        self._context = OperatorContext(counters=Counters())

    @property
    def kept(self) -> bool:
        """Whether they become dead letters."""
        return self._kept

    def open(self, context: OperatorContext) -> None:
        """Receive name and counters from the operator's context."""
        self._context = context

    def send(self, out: Output, *, with_times: bool) -> None:
        """Emit the dead letters collected so far."""
        if self._letters:
            letters = [letter for _, letter in sorted(self._letters, key=itemgetter(0))]
            self._letters = []
            out.emit_side(TAG, as_records(letters, self._context, with_times=with_times))

    def loop(
        self,
        records: Records,
        columns: Sequence[list[Any]],
        call: Callable[[Sequence[list[Any]]], None],
        made: Sequence[list[Any]],
        rows_before: Callable[[int, int], int],
        explain: Callable[[LoopError], RecordError],
        first: int,
        key_of: KeyOf | None = None,
    ) -> list[int]:
        """Run a loop over records, resuming behind each record that fails.

        Args:
            records: the input.
            columns: their values, one list per column that `call` takes.
            call: the loop over such columns; it appends to `made`.
            made: rows, one list per column; rows of a failing record are removed.
            rows_before: maps (index of the failing record, number of earlier failures) to the number of rows of earlier
                records.
            explain: creates the error of a failure.
            first: the index of the first record in the batch that is processed.
            key_of: returns the key of the record at an index.

        Returns:
            The indices of those that failed.

        Raises:
            RecordError: the first failure, if the policy is to fail.
        """
        failed: list[int] = []
        begin = 0
        while True:
            try:
                call([column[begin:] for column in columns] if begin else columns)
            except LoopError as failure:
                error = explain(failure)
                at = begin + failure.at
                if not self._kept:
                    raise self._located(error, first + at) from failure.cause
                rows = rows_before(at, len(failed))
                for column in made:
                    del column[rows:]
                failed.append(at)
                self._keep(error, records, at, first, key_of)
                begin = at + 1
            else:
                return failed

    def batch(
        self,
        records: Records,
        made: Sequence[list[Any]],
        schema: pa.Schema,
        parents: Int64s | None,
        first: int,
        key_of: KeyOf | None = None,
    ) -> tuple[pa.RecordBatch, Int64s | None]:
        """The rows that a function returned as a batch of `schema`, without all rows of records of which one does not
        fit.

        Args:
            records: the input.
            made: rows, one list per column.
            schema: the declared one.
            parents: shape (rows,), the index of the record that each row came from; None: row i came from record i.
            first: the index of the first record in the batch that is processed.
            key_of: returns the key of the record at an index.

        Returns:
            The batch, and the parents of its rows.

        Raises:
            RecordError: the first row that does not fit, if the policy is to fail.
        """
        while True:
            places = parents
            where = partial(_where, records.batch, places)
            try:
                return self._user.batch(made, schema, where), parents
            except UnfitRowError as error:
                owners = np.arange(len(records)) if places is None else places
                at = int(owners[error.row])
                if not self._kept:
                    raise self._located(error, first + at) from None
                self._keep(error, records, at, first, key_of)
                kept = np.flatnonzero(owners != at)
                parents = owners[kept]
                made = [[column[row] for row in kept] for column in made]

    def parts(
        self,
        records: Records,
        compute: Callable[[Records], T],
        key_of: Callable[[Records], object] | None = None,
        first: int = 0,
    ) -> Iterator[tuple[int, T]]:
        """The result of a function for a whole batch; where it fails the batch is halved, down to single records.

        Each part is yielded with the index of its first record, before the next one is computed.

        Args:
            records: the input; the function is called again for halves of it.
            compute: raises a RecordError if it cannot process them, and has changed nothing then.
            key_of: returns the key of a single record.
            first: the index of the first record in the batch that is processed.

        Raises:
            RecordError: if the policy is to fail.
        """
        try:
            made = compute(records)
        except RecordError as error:
            if not self._kept:
                if isinstance(error, FailedRowError):
                    raise self._located(error, first + error.at) from error.__cause__
                raise
            if len(records) == 1:
                self._keep(error, records, 0, first, None if key_of is None else lambda at: key_of(records))
                return
        else:
            yield first, made
            return
        half = len(records) // 2
        yield from self.parts(records.slice(0, half), compute, key_of, first)
        yield from self.parts(records.slice(half, len(records) - half), compute, key_of, first + half)

    def _located(self, error: RecordError, row: int) -> RecordError:
        """The error for a row of the batch that is processed, with its position in the source if known."""
        position = self._context.position(row)
        return error if position is None else RecordError(f"{error.message}, at {position}", origin=error.origin)

    def _keep(self, error: RecordError, records: Records, at: int, first: int, key_of: KeyOf | None) -> None:
        times = records.timestamps
        letter = of_row(
            error.message,
            records.batch,
            at,
            None if key_of is None else key_text(key_of(at)),
            self._context.position(first + at),
            time_us=NO_TIME if times is None else int(times[at]),
            trace=Trace.of(error).text,
        )
        self._letters.append((first + at, letter))
        self._context.counters.numRecordsInErrors += 1


def key_text(key: object) -> str:
    """A key as text: a single value as it is, several as a JSON list."""
    return as_json({"key": key})[8:-1] if isinstance(key, tuple) else str(_plain(key))


def _where(batch: pa.RecordBatch, parents: Int64s | None, row: int) -> str:
    return on_record(batch, row if parents is None else int(parents[row]))
