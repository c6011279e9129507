"""Values as JSON can carry them to a page, whose numbers are doubles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from workbench.durations import NO_TIME, format_instant

Instant = int | str | None
"""Microseconds since 1970 in UTC, or a text such as ``"end"``; None: there is none."""
WHOLE_MAX = 2**53 - 1
"""The largest whole number that a page cannot confuse with another."""


def plain(value: Any) -> Any:
    """A value of the wire's dataclasses as dictionaries, lists, texts and numbers.

    Halves of surrogate pairs, which no message can carry, become question marks.

    Raises:
        ValueError: a number that a page cannot read: NaN, an infinity, or one of 2**53 or more.

    Example:
        >>> plain({"a": (1, None, "\\ud800")})
        {'a': [1, None, '?']}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int | float):
        if not math.isfinite(value) or abs(value) > WHOLE_MAX:
            raise ValueError(f"{value!r} is a number that a page cannot read")
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _names(value.__class__)}
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(each) for key, each in value.items()}
    return [plain(each) for each in value]


def readable(value: object) -> float | None:
    """A number, or None if a page could not read it, or it is none.

    Example:
        >>> readable(7), readable(float("nan")), readable(True), readable(2**63 - 1)
        (7, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) <= WHOLE_MAX else None


def whole(value: object) -> int | None:
    """A whole number; see `readable`.

    Example:
        >>> whole(41.0)
        41
    """
    number = readable(value)
    return None if number is None else int(number)


def instant(us: object) -> Instant:
    """An instant for a page: microseconds since 1970 in UTC; a text if that is no number that it can read.

    Example:
        >>> instant(1_372_658_400_000_000), instant(2**63 - 1), instant(253_402_300_799_000_000), instant(None)
        (1372658400000000, 'end', '9999-12-31 23:59:59', None)
    """
    if not isinstance(us, int) or us == NO_TIME:
        return None
    return us if abs(us) <= WHOLE_MAX else format_instant(us)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
