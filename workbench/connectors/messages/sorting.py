"""Sorts messages into records and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from workbench.elements import event_times
from workbench.errors import RecordError, SourceError
from workbench.operators.functions.dead_letters import DeadLetter
from workbench.raised import first_line_of

SHOWN_MAX = 10_000
"""Bytes of a message that a dead letter keeps."""
_QUOTED_MAX = 80
REFUSED = (ValueError, pa.ArrowNotImplementedError, RecordError, SourceError)
"""What a format raises for a message that is no record; ``pa.ArrowInvalid`` is a ``ValueError``."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Messages as records.

    Attributes:
        batch: the records.
        kept: the index of the message of each record; None: all messages, one record each.
        letters: of the other messages.
    """

    batch: pa.RecordBatch
    kept: Sequence[int] | None
    letters: Sequence[DeadLetter]


def sorted_out(
    values: Sequence[bytes],
    decode: Callable[[int, int], pa.RecordBatch],
    place: Callable[[int], str],
    schema: pa.Schema,
    event_time: str | None,
    *,
    lenient: bool,
) -> Sorted:
    """The records of messages, and dead letters of those that are none.

    Messages that cannot be decoded together are halved, down to single ones.

    Args:
        values: of the messages.
        decode: the records of the messages from one index up to another, one of each.
        place: the position of a message.
        schema: of the records.
        event_time: the column with event times, or None.
        lenient: whether messages that are no records become dead letters.

    Raises:
        SourceError: a message is no record; names its position and shows it.
    """
    good: list[pa.RecordBatch] = []
    kept: list[int] = []
    letters: list[DeadLetter] = []

    def sort_out(begin: int, end: int) -> None:
        try:
            batch = decode(begin, end)
            if event_time is not None:
                event_times(batch.column(event_time), event_time)
            good.append(batch)
            kept.extend(range(begin, end))
        except REFUSED as error:
            if end - begin > 1:
                middle = (begin + end) // 2
                sort_out(begin, middle)
                sort_out(middle, end)
                return
            letters.append(letter(values[begin], place(begin), error, lenient=lenient))

    sort_out(0, len(values))
    if len(good) == 1 and not letters:
        return Sorted(good[0], None, ())
    batch = pa.concat_batches(good) if good else pa.RecordBatch.from_pylist([], schema=schema)
    return Sorted(batch, kept, letters)


def letter(value: bytes, place: str, error: Exception, *, lenient: bool) -> DeadLetter:
    """The dead letter of a message that is no record.

    Raises:
        SourceError: such messages fail the task.
    """
    fact = first_line_of(error)
    if not lenient:
        raise SourceError(
            f"{place} is no record of these columns: {fact}, in {value[:_QUOTED_MAX]!r}; mend the writer, declare "
            "other types, or keep such messages with on_error='dead_letter'"
        ) from error
    return DeadLetter(fact, value[:SHOWN_MAX].decode("utf-8", "replace"), position=place)
