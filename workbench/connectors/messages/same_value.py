"""Whether a value is still the same after a library has converted it to another type."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from math import isfinite
from typing import Any


def is_same(given: Any, made: Any) -> bool:
    """Whether a conversion has kept a value: rounding of a float to a shorter one does, truncation does not.

    Args:
        given: a value as Python object; of records, the fields that `made` lacks are ignored.
        made: what became of it.

    Example:
        >>> is_same(1.0, 1), is_same(1.5, 1), is_same([2**53 + 1], [2.0**53])
        (True, False, False)
    """
    if isinstance(given, dict):
        pairs = dict(made)  # also of the pairs of a map
        return isinstance(made, dict | list) and all(is_same(given.get(name), pairs[name]) for name in pairs)
    if isinstance(given, list | tuple):
        made = list(made.items()) if isinstance(made, dict) else made
        same_length = isinstance(made, list | tuple) and len(given) == len(made)
        return same_length and all(is_same(one, other) for one, other in zip(given, made, strict=True))
    if isinstance(given, float) and isinstance(made, float):
        return given == made or not isfinite(given) or isfinite(made)
    if isinstance(made, bool):
        return given is made
    if isinstance(given, int) and isinstance(made, date | time | timedelta):  # counted in the unit of the column
        return True
    if isinstance(given, datetime):
        return _instant(given) == _instant(made) and not getattr(given, "nanosecond", 0)
    if isinstance(made, datetime) and isinstance(given, date):
        return _instant(made) == datetime(given.year, given.month, given.day, tzinfo=UTC)
    if isinstance(given, bytes) and isinstance(made, str):
        return given == made.encode()
    return bool((str(given) if is_uuid(given) else given) == made)


def is_uuid(value: Any) -> bool:
    """Whether a value is a ``uuid.UUID``, whose module also makes random ones, so that it is not imported here."""
    return type(value).__module__ == "uuid"


def _instant(value: Any) -> datetime | None:
    """A time in UTC, which is also meant by one without a zone, and the first instant of a day."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return datetime(value.year, value.month, value.day, tzinfo=UTC) if isinstance(value, date) else None
