"""Reads dead letters with the reader of their files or table, and decodes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.letters.decoding import Letters
from workbench.connectors.messages.sorting import refused, sorted_out
from workbench.elements import Records
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.functions.dead_letters import DeadLetter, as_records
from workbench.raised import fact_of

if TYPE_CHECKING:
    from workbench.connectors.letters.source import DeadLetterSource


class LetterReader(SourceReader):
    """A position is one of the letters.

    A letter that was an Arrow message can hold several rows. They are delivered together, so such letters are read one
    at a time.

    Args:
        inner: of the letters.
        source: of the records.
    """

    def __init__(self, inner: SourceReader, source: DeadLetterSource) -> None:
        self._inner = inner
        self._source = source
        self._several = source.format in (None, "arrow")
        self.shares_event_time = inner.shares_event_time

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._inner.open(context)

    def splits(self) -> Sequence[str]:
        return self._inner.splits()

    def progress(self) -> Mapping[str, SplitProgress]:
        return self._inner.progress()

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        fetched = self._inner.poll(1 if self._several else max_records)
        if not isinstance(fetched, Fetched):
            return fetched
        found = self._decoded(fetched)
        if len(found.records) or found.dead_letters is not None:
            return found
        return WaitUntil(self._context.clock.now_us() + 1)  # letters of other operators, or messages without rows

    def snapshot(self) -> Snapshot:
        return self._inner.snapshot()

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._inner.restore(snapshots)

    def close(self) -> None:
        self._inner.close()

    def _decoded(self, fetched: Fetched) -> Fetched:
        source, batch = self._source, fetched.records.batch
        if source.operator is not None:
            chosen = [at for at, name in enumerate(batch.column("operator").to_pylist()) if name == source.operator]
            batch = batch.take(pa.array(chosen, pa.int64()))
        # In CSV, a null of text cannot be told from an empty one.
        told = {
            name: [None if value == "" and name != "raw" else value for value in batch.column(name).to_pylist()]
            for name in batch.schema.names
        }
        letters = Letters(told["raw"], told["raw_bytes"], told["format"], told["operator"])
        self._several = "arrow" in ((source.format,) if source.format is not None else letters.formats)
        owners: dict[int, list[int]] = {}  # by the first letter that was decoded: that of each row

        def decode(begin: int, end: int) -> pa.RecordBatch:
            if begin == end:
                return pa.RecordBatch.from_pylist([], schema=source.schema)
            rows, owners[begin] = source.decoding.decode(letters, begin, end)
            columns = []
            for item in source.schema:
                if (part := source.parts.get(item.name)) is None:
                    columns.append(rows.column(item.name))
                else:
                    columns.append(batch.column(part).take(pa.array(owners[begin], pa.int64())).cast(item.type))
            return pa.RecordBatch.from_arrays(columns, schema=source.schema)

        def place(at: int) -> Position:
            parts = Parts(*(told[name][at] for name in Parts.__slots__))
            return Position(told["position"][at] or f"a dead letter of {told['operator'][at]}", parts)

        def letter(at: int, error: Exception) -> DeadLetter:
            owners.pop(at, None)
            again = DeadLetter(
                fact_of(error),
                told["record"][at] or "",
                letters.kept_of(at),
                letters.formats[at] or "raw",
                told["key"][at],
                place(at),
                size=letters.sizes[at],
            )
            return refused(again, error, source, called="letters")

        found = sorted_out(batch.num_rows, decode, letter, source)
        kept = [owner for begin in sorted(owners) for owner in owners[begin]]
        timed = source.event_time is not None
        dead = as_records(found.letters, self._context, with_times=timed) if found.letters else None
        records = Records.timed(found.batch, source.event_time)
        return replace(fetched, records=records, dead_letters=dead, where=lambda row: place(kept[row]))
