"""Rejects columns that no operator could use: two of one name, and times in an unknown time zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from workbench.errors import PlanError
from workbench.origin import Origin


def check_usable(schema: pa.Schema, place: str, origin: Origin | None) -> None:
    """Check the columns that enter a pipeline.

    Args:
        schema: the columns.
        place: what has them, for errors, such as ``the source``.
        origin: the user's line.

    Raises:
        PlanError: two columns have the same name, or a time zone is unknown; names the column.
    """
    _check_names(schema.names, place, origin)
    for field in schema:
        for kind in _within(field.type):
            if pa.types.is_struct(kind):
                names = [kind.field(at).name for at in range(kind.num_fields)]
                _check_names(names, f"the values of the column {field.name!r} of {place}", origin)
            elif pa.types.is_timestamp(kind) and kind.tz and not _is_zone(kind.tz):
                raise PlanError(
                    f"the column {field.name!r} of {place} is {field.type}, and {kind.tz!r} is no time zone: cast it "
                    "to pa.timestamp('us', 'UTC'), which are the same instants, or name a zone such as 'Europe/Berlin' "
                    "or '+02:00'",
                    origin=origin,
                )


def _check_names(names: Sequence[str], place: str, origin: Origin | None) -> None:
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise PlanError(f"{count} columns of {place} are named {name!r}: give each a different name", origin=origin)


def _within(kind: pa.DataType) -> Iterator[pa.DataType]:
    """A type and the types within it."""
    yield kind
    if pa.types.is_dictionary(kind):
        yield from _within(kind.value_type)
    for at in range(kind.num_fields):
        yield from _within(kind.field(at).type)


@lru_cache(maxsize=256)
def _is_zone(zone: str) -> bool:
    """Whether Python and Arrow, which have a list of zones each, know it."""
    if zone == "UTC":
        return True
    instant = pa.scalar(0, pa.timestamp("us", zone))
    try:
        instant.as_py()
        instant.cast(pa.string())
    except (pa.ArrowInvalid, ValueError, LookupError, OSError):
        return False
    return True
