"""Records of messages, and dead letters of messages that are not records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.base import Fetched
from workbench.connectors.kafka.run import Run
from workbench.connectors.messages.sorting import Sorted, letters_of, sorted_out
from workbench.elements import event_times
from workbench.operators.contract.base import OperatorContext
from workbench.operators.contract.positions import Parts, Position

if TYPE_CHECKING:
    from workbench.connectors.kafka.source import KafkaSource


class Delivery:
    """Decodes the messages of a source.

    Args:
        source: the description of the source.
        context: the reader's context.
    """

    def __init__(self, source: KafkaSource, context: OperatorContext) -> None:
        self._source = source
        self._context = context

    def records(self, run: Run) -> Fetched:
        """Messages that hold one record each."""
        source, rows = self._source, self._source.rows
        place = self._place_in(run)
        letters = letters_of(run.values, place, source)
        result = sorted_out(len(run), lambda begin, end: rows.decode(run.part(begin, end)), letters, source)
        return result.fetched(source, str(run.partition), place, self._context)

    def part(self, message: Run, begin: int, count: int) -> tuple[Fetched | None, int | None]:
        """Some records of a message that holds several.

        Args:
            message: the message.
            begin: how many of its records are delivered.
            count: records at most.

        Returns:
            The records, None if there are none; and how many are delivered with them, None if these are all.
        """
        source, split, place = self._source, str(message.partition), self._place_in(message)
        try:
            batch = source.rows.decode(message)
            if source.event_time is not None:
                event_times(batch.column(source.event_time), source.event_time)
        except Exception as error:  # noqa: BLE001  whatever is raised, the message is no record
            dead = letters_of(message.values, place, source)(0, error)
            nothing = pa.RecordBatch.from_pylist([], schema=source.schema)
            return Sorted(nothing, [], [dead]).fetched(source, split, place, self._context), None
        part = batch.slice(begin, count)
        end = begin + part.num_rows
        fetched = Sorted(part, [0] * part.num_rows, ()).fetched(source, split, place, self._context)
        return (fetched if part.num_rows else None), (end if end < batch.num_rows else None)

    def _place_in(self, run: Run) -> Callable[[int], str]:
        topic, number = run.partition.topic, run.partition.number
        where = f"{topic} of {self._source.cluster}, partition {number}, offset"

        def place(at: int) -> Position:
            offset = run.offsets[at]
            return Position(f"{where} {offset}", Parts("kafka", topic, number, offset))

        return place
