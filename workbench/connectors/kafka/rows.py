"""Kafka messages as rows: columns of their values, and of what surrounds them (key, timestamp, offset)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from workbench.connectors.contract.text_check import check_text
from workbench.connectors.messages.message_format import MessageFormat
from workbench.connectors.messages.metadata import metadata_of
from workbench.errors import PlanError

Part = Literal["key", "timestamp", "topic", "partition", "offset"]
PARTS: tuple[Part, ...] = get_args(Part)
_NO_TIMESTAMP = 0  # the kind of timestamp of a message without one


def kafka_metadata(given: Mapping[str, str] | None, schema: pa.Schema) -> dict[str, Part]:
    """`metadata_of` for messages of Kafka."""
    return metadata_of(given, schema, PARTS, system="Kafka", example="{'sent': 'timestamp'}")


@dataclass(frozen=True)
class Rows:
    """How messages become rows.

    Attributes:
        schema: of the rows.
        format: of the values.
        metadata: by column: the part of a message that it holds.

    Raises:
        PlanError: columns that the format, or a part, cannot have.
    """

    schema: pa.Schema
    format: MessageFormat
    metadata: Mapping[str, Part]

    def __post_init__(self) -> None:
        if len(self.values):
            self.format.check(self.values)
        for column, part in self.metadata.items():
            kind = self.schema.field(column).type
            try:
                pa.nulls(0, _KINDS[part]).cast(kind)
            except pa.ArrowNotImplementedError:
                raise PlanError(
                    f"the column {column!r} is {kind}, and the {part} of a message is {_KINDS[part]}: declare that"
                ) from None

    @property
    def values(self) -> pa.Schema:
        """The columns of the values."""
        return pa.schema([field for field in self.schema if field.name not in self.metadata])

    def decode(self, messages: Sequence[Any], values: Sequence[bytes]) -> pa.RecordBatch:
        """The rows of some messages; see `MessageFormat.decode`.

        Args:
            messages: of the client.
            values: of these messages.
        """
        schema = self.values
        if not self.metadata:
            return self.format.decode(values, schema)
        batch = self.format.decode(values, schema) if len(schema) else None
        count = len(messages) if batch is None else batch.num_rows
        repeated = messages if count == len(messages) else [messages[0]] * count
        columns = []
        for field in self.schema:
            if (part := self.metadata.get(field.name)) is None:
                assert batch is not None
                columns.append(batch.column(field.name))
            else:
                columns.append(pa.array(_parts(repeated, part), _KINDS[part]).cast(field.type))
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        check_text(rows)
        return rows


def _parts(messages: Sequence[Any], part: Part) -> list[Any]:
    if part == "timestamp":
        stamps = [message.timestamp() for message in messages]
        return [ms if kind != _NO_TIMESTAMP else None for kind, ms in stamps]
    return [getattr(message, part)() for message in messages]


_KINDS: Mapping[Part, pa.DataType] = {
    "key": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
}
