"""Kafka messages as rows: columns of their values, and of what surrounds them (key, timestamp, offset)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from workbench.arguments import as_given
from workbench.connectors.contract.text_check import check_text
from workbench.connectors.messages.message_format import MessageFormat
from workbench.errors import PlanError, SettingError, unknown

Part = Literal["key", "timestamp", "topic", "partition", "offset"]
PARTS: tuple[Part, ...] = get_args(Part)
_NO_TIMESTAMP = 0  # the kind of timestamp of a message without one


def metadata_of(given: Mapping[str, str] | None, schema: pa.Schema) -> dict[str, Part]:
    """By column of the schema: the part of a message that it holds.

    Raises:
        SettingError: not a dictionary, or an unknown part.
        PlanError: no such column.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SettingError(f"metadata is {as_given(given)}: write a dictionary, such as {{'sent': 'timestamp'}}")
    found: dict[str, Part] = {}
    for column, name in given.items():
        if column not in schema.names:
            raise PlanError(unknown("column", column, schema.names))
        part = next((part for part in PARTS if part == name), None)
        if part is None:
            raise SettingError(unknown("part of a Kafka message", name, PARTS))
        found[column] = part
    return found


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
