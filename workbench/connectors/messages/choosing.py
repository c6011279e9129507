"""Selects a message format by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from workbench.connectors.messages.avro import AvroMessages
from workbench.connectors.messages.message_format import (
    ArrowMessages,
    CsvMessages,
    JsonMessages,
    MessageFormat,
    RawMessages,
)
from workbench.errors import SettingError, unknown

MessageFormatName = Literal["json", "csv", "avro", "arrow", "raw"]
FORMAT_NAMES: tuple[MessageFormatName, ...] = ("json", "csv", "avro", "arrow", "raw")


def message_format(name: object, avro_schema: str | None) -> MessageFormat:
    """The message format with this name.

    Args:
        name: one of `FORMAT_NAMES`.
        avro_schema: the Avro schema, as JSON; None for other formats.

    Raises:
        SettingError: the format is unknown, or the schema is missing, unexpected or invalid.

    Example:
        >>> message_format("raw", None)
        RawMessages()
    """
    if not isinstance(name, str) or name not in FORMAT_NAMES:
        raise SettingError(unknown("message format", name, FORMAT_NAMES))
    if (name == "avro") != (avro_schema is not None):
        raise SettingError(
            "avro messages do not name their columns: pass the writer's schema as avro_schema='{...}'"
            if name == "avro"
            else f"avro_schema is given, but the format is {name!r}: remove one of them"
        )
    if avro_schema is not None:
        return AvroMessages(avro_schema)
    return _PLAIN[name]


_PLAIN: Mapping[str, MessageFormat] = {
    "json": JsonMessages(),
    "csv": CsvMessages(),
    "arrow": ArrowMessages(),
    "raw": RawMessages(),
}
