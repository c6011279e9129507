"""Sorts messages into records and dead letters, and delivers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from workbench.connectors.contract.base import Fetched
from workbench.elements import Records, event_times
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext
from workbench.operators.functions.dead_letters import DeadLetter, OnError, as_records, of_bytes
from workbench.raised import fact_of

_QUOTED_MAX = 120


class MessageSource(Protocol):
    """The parts of a message source's description that sorting needs."""

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def event_time(self) -> str | None: ...
    @property
    def on_error(self) -> OnError: ...


class FormattedSource(MessageSource, Protocol):
    """A message source whose messages have a format."""

    @property
    def format(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Sorted:
    """Messages as records.

    Attributes:
        batch: the records.
        kept: the index of the message of each record; None: one record for every message.
        letters: the dead letters of the other messages.
    """

    batch: pa.RecordBatch
    kept: Sequence[int] | None
    letters: Sequence[DeadLetter]

    def fetched(
        self, source: MessageSource, split: str, place: Callable[[int], str], context: OperatorContext
    ) -> Fetched:
        """Convert them to the result of a reader's poll.

        Args:
            source: of the messages.
            split: their split.
            place: returns the position of the message at an index.
            context: the reader's context.
        """
        column, kept = source.event_time, self.kept
        dead = as_records(self.letters, context, with_times=column is not None) if self.letters else None
        where = place if kept is None else lambda row: place(kept[row])
        return Fetched(Records.timed(self.batch, column), split, dead, where=where)


def sorted_out(
    count: int,
    decode: Callable[[int, int], pa.RecordBatch],
    letter: Callable[[int, Exception], DeadLetter],
    source: MessageSource,
) -> Sorted:
    """Decode messages to records, and make dead letters of the messages that are not records.

    If messages cannot be decoded together, they are split in halves, down to single messages.

    Args:
        count: the number of messages.
        decode: decodes the messages of an index range to one record each.
        letter: makes the dead letter of the message at an index, given the error of `decode`.
        source: of the messages.
    """
    good: list[pa.RecordBatch] = []
    kept: list[int] = []
    letters: list[DeadLetter] = []

    parts = [(0, count)]
    while parts:  # a recursive closure would keep the messages until Python collects cycles
        begin, end = parts.pop()
        try:
            batch = decode(begin, end)
            if source.event_time is not None:
                event_times(batch.column(source.event_time), source.event_time)
        except Exception as error:  # noqa: BLE001  whatever is raised, the message is no record
            if end - begin > 1:
                middle = (begin + end) // 2
                parts += [(middle, end), (begin, middle)]
            else:
                letters.append(letter(begin, error))
            continue
        good.append(batch)
        kept.extend(range(begin, end))
    if len(good) == 1 and good[0].num_rows == count:
        return Sorted(good[0], None, ())
    batch = pa.concat_batches(good) if good else pa.RecordBatch.from_pylist([], schema=source.schema)
    return Sorted(batch, kept, letters)


def letters_of(
    values: Sequence[bytes], place: Callable[[int], str], source: FormattedSource
) -> Callable[[int, Exception], DeadLetter]:
    """Makes the dead letters of some messages, for `sorted_out`.

    Args:
        values: the values of the messages.
        place: the position of the message of an index.
        source: of the messages.
    """
    return lambda at, error: refused(of_bytes(fact_of(error), values[at], source.format, place(at)), error, source)


def refused(letter: DeadLetter, error: Exception, source: MessageSource, *, called: str = "messages") -> DeadLetter:
    """The dead letter of a message that is not a record, if its source keeps them.

    Args:
        letter: the dead letter.
        error: the reason.
        source: the source of the message.
        called: the source's word for messages.

    Raises:
        SourceError: the source fails the task on such messages.
    """
    if source.on_error != "dead_letter":
        raise SourceError(
            f"{letter.position} is not a record of these columns: {letter.error}, in {letter.record[:_QUOTED_MAX]!r}; "
            f"fix the writer, declare other types, or keep such {called} with on_error='dead_letter'"
        ) from error
    return letter
