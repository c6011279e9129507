"""A source over an Arrow table in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.arguments import table_of, whole_number
from workbench.connectors.contract.base import Source, SourceReader
from workbench.connectors.contract.block_reader import (
    BlockReader,
    Blocks,
    check_event_time,
    check_microseconds,
    check_rate,
)
from workbench.connectors.contract.plain_types import plain_table

_BLOCK_ROWS = 8_192
"""Small, so that subtasks read rows that are close to each other: a table's rows are in the order of their times."""


@dataclass(frozen=True)
class TableSource(Source):
    """The rows of an Arrow table, in their order.

    Args:
        table: the rows.
        event_time: column that carries event time (timestamp, date, or int64 microseconds), or None.
        rate: records per second over the whole source; None for full speed.
        splits: how many subtasks can share the reading.

    Raises:
        PlanError: no such event-time column, not of a time type, or of numbers that seem to be no microseconds.
        SettingError: not a table, or a rate or number of splits that is not above zero.

    Example:
        >>> TableSource(pa.table({"t": [1, 2]}), event_time="t").describe()
        '2 rows by t'
    """

    table: pa.Table = field(repr=False)
    event_time: str | None = None
    rate: float | None = None
    splits: int = 4
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", plain_table(table_of(self.table, "table")))
        check_event_time(self.table.schema, self.event_time)
        if self.event_time is not None:
            check_microseconds(self.table.column(self.event_time), self.event_time)
        check_rate(self.rate)
        whole_number(self.splits, "splits")

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def describe(self) -> str:
        rows = f"{self.table.num_rows:,} rows"
        return f"{rows} by {self.event_time}" if self.event_time else rows

    def create(self) -> SourceReader:
        blocks = Blocks.dealt(self.splits, self.table.num_rows, self.rate, _BLOCK_ROWS)
        batches = self.table.to_batches()
        fetch = batches[0].slice if len(batches) == 1 else self._fetch
        return BlockReader(blocks, fetch, self.event_time, self.rate, self.kind)

    def _fetch(self, first: int, count: int) -> pa.RecordBatch:
        batches = self.table.slice(first, count).to_batches()
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
