"""The IDs of entries of a Redis stream, which are positions in it."""

from __future__ import annotations

import re

Id = tuple[int, int]
"""Milliseconds, and a sequence number within the millisecond."""

BEGINNING: Id = (0, 0)
_ID = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")
_MAX = 2**64


def parsed_id(text: str) -> Id:
    """Parse an ID: milliseconds, and a sequence number within the millisecond.

    Raises:
        ValueError: it is not an ID.

    Example:
        >>> parsed_id("1526919030474-55"), parsed_id("7")
        ((1526919030474, 55), (7, 0))
    """
    found = _ID.fullmatch(text)
    if found is None or max(number := (int(found[1]), int(found[2] or 0))) >= _MAX:
        raise ValueError(f"{text[:60]!r} is not the ID of an entry, such as '1526919030474-0'")
    return number


def written_id(position: Id) -> str:
    """The ID as Redis writes it.

    Example:
        >>> written_id((7, 0))
        '7-0'
    """
    return f"{position[0]}-{position[1]}"


def before(position: Id) -> Id:
    """The greatest ID that is less than another one.

    Example:
        >>> before((7, 3)), before((7, 0)) == (6, 2**64 - 1)
        ((7, 2), True)
    """
    time, number = position
    return (time, number - 1) if number else (time - 1, _MAX - 1)
