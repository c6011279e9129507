"""Selects a message format by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from workbench.connectors.files.json_times import TimeUnit, check_unit
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


def message_format(name: object, avro_schema: str | None, unit: TimeUnit | None = None) -> MessageFormat:
    """The message format with this name.

    Args:
        name: one of `FORMAT_NAMES`.
        avro_schema: the Avro schema, as JSON; None for other formats.
        unit: what numbers in columns of timestamps count, in JSON; None: they are refused.

    Raises:
        SettingError: the format or the unit is unknown, or the schema or the unit is missing, unexpected or invalid.

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
    check_unit(unit, name)
    if avro_schema is not None:
        return AvroMessages(avro_schema)
    if unit is not None:
        return JsonMessages(unit)
    return _PLAIN[name]


_PLAIN: Mapping[str, MessageFormat] = {
    "json": JsonMessages(),
    "csv": CsvMessages(),
    "arrow": ArrowMessages(),
    "raw": RawMessages(),
}
