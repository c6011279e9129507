"""Kafka messages as rows: columns of their values and their metadata (key, timestamp, offset)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from workbench.connectors.contract.text_check import check_text
from workbench.connectors.kafka.run import Run
from workbench.connectors.messages.message_format import MessageFormat
from workbench.connectors.messages.metadata import metadata_of

Part = Literal["key", "timestamp", "topic", "partition", "offset"]
_KINDS: Mapping[Part, pa.DataType] = {
    "key": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
}


def kafka_metadata(given: Mapping[str, str] | None, schema: pa.Schema) -> dict[str, Part]:
    """`metadata_of` for messages of Kafka."""
    return metadata_of(given, schema, _KINDS, system="Kafka", example="{'sent': 'timestamp'}")


@dataclass(frozen=True)
class Rows:
    """The conversion of messages to rows.

    Attributes:
        schema: the schema of the rows.
        format: the format of the values.
        metadata: the part of a message that each metadata column holds.

    Raises:
        PlanError: the format does not support a column's type.
    """

    schema: pa.Schema
    format: MessageFormat
    metadata: Mapping[str, Part]

    def __post_init__(self) -> None:
        if len(self.values):
            self.format.check(self.values)

    @property
    def values(self) -> pa.Schema:
        """The columns of the values."""
        return pa.schema([field for field in self.schema if field.name not in self.metadata])

    def decode(self, run: Run) -> pa.RecordBatch:
        """Decode messages to rows; see `MessageFormat.decode`.

        Args:
            run: the messages, with the parts in `metadata`, and without tombstones.
        """
        schema = self.values
        if not self.metadata:
            return self.format.decode(run.values, schema)
        batch = self.format.decode(run.values, schema) if len(schema) else None
        count = len(run) if batch is None else batch.num_rows
        columns = []
        for field in self.schema:
            if (part := self.metadata.get(field.name)) is None:
                assert batch is not None
                columns.append(batch.column(field.name))
            else:
                columns.append(_column(run, part, count).cast(field.type))
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        check_text(rows)
        return rows


def _column(run: Run, part: Part, count: int) -> pa.Array:
    """A part of each message, or of a single message with `count` rows."""
    if part == "topic":
        return pa.repeat(run.partition.topic, count)
    if part == "partition":
        return pa.repeat(pa.scalar(run.partition.number, _KINDS[part]), count)
    values = {"key": run.keys, "timestamp": run.timestamps_ms, "offset": run.offsets}[part]
    return pa.array(values if count == len(run) else [values[0]] * count, _KINDS[part])
