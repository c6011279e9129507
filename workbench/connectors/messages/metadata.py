"""The columns that hold metadata of a message: its key, subject, timestamp or number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

from workbench.arguments import as_given
from workbench.errors import PlanError, SettingError, unknown

Part = TypeVar("Part", bound=str)


def metadata_of(
    given: Mapping[str, str] | None, schema: pa.Schema, kinds: Mapping[Part, pa.DataType], *, system: str, example: str
) -> dict[str, Part]:
    """Check a user's metadata: by column of the schema, the part of a message that it holds.

    Args:
        given: the user's value.
        schema: the schema of the rows.
        kinds: the parts of a message, with their types.
        system: the system of the messages, for errors.
        example: an example dictionary, for errors.

    Raises:
        SettingError: it is not a dictionary, or a part is unknown.
        PlanError: a column does not exist, or its type cannot hold the part.

    Example:
        >>> kinds = {"sent": pa.timestamp("ms"), "key": pa.binary()}
        >>> metadata_of({"at": "sent"}, pa.schema({"at": "int64"}), kinds, system="Kafka", example="{}")
        {'at': 'sent'}
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SettingError(f"metadata is {as_given(given)}: write a dictionary, such as {example}")
    found: dict[str, Part] = {}
    for column, name in given.items():
        if column not in schema.names:
            raise PlanError(unknown("column", column, schema.names))
        part = next((part for part in kinds if part == name), None)
        if part is None:
            raise SettingError(unknown(f"part of a {system} message", name, kinds))
        kind = schema.field(column).type
        try:
            pa.nulls(0, kinds[part]).cast(kind)
        except pa.ArrowNotImplementedError:
            raise PlanError(
                f"the column {column!r} is {kind}, and the {part} of a message is {kinds[part]}: declare this type"
            ) from None
        found[column] = part
    return found
