"""Durations, replay speeds and instants as users write them, and as the runtime counts them.

The runtime counts time in whole microseconds (names end in ``_us``): of the clock for processing time, since 1970 in
UTC for event time.

Times and the results of computing with them have 64 bits: a window ends its size after a time, and accepts records for
its lateness longer. Event times and durations therefore have 61 bits, so that no such sum exceeds 64. No record has a
time after `LATEST_TIME`: `MAX_TIME` is the watermark at the end of the input, and later timers wait for it.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from numbers import Real

from workbench.errors import SettingError

_UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_NAMES = {
    "us": ("µs", "microsecond"),
    "ms": ("millisecond",),
    "s": ("sec", "second"),
    "min": ("m", "minute"),
    "h": ("hr", "hour"),
    "d": ("day",),
}
_WRITTEN_US = {
    name: _UNITS_US[unit]
    for unit, names in _NAMES.items()
    for name in (unit, *names, *(f"{long}s" for long in names if len(long) > 2))
}
"""Units as users write them: ``h``, ``hour`` and ``hours``."""
_PATTERN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµ]+)\s*")
Duration = str | timedelta
"""A duration as users write it; see `parse_duration`."""
LONGEST_US = 2**61
"""The longest duration, 73,000 years."""

EARLIEST_TIME, LATEST_TIME = -LONGEST_US, LONGEST_US
"""The first and the last event time that a record may have, 73,000 years before and after 1970."""

_CYCLE_US = 146_097 * _UNITS_US["d"]  # 400 years, in which the calendar repeats

NO_TIME = -(2**63)
"""The event timestamp of a record that has none (its event-time column is null)."""

MAX_TIME = 2**63 - 1
"""The watermark at the end of the input: no more records will arrive."""

LAST_WATERMARK = LATEST_TIME - 1
"""The largest watermark before the end, so that a record at `LATEST_TIME` is not late."""


def time_of_timer(us: int) -> int:
    """The time for which a timer is set: the requested one, or the nearest valid one.

    A timer after `LATEST_TIME` waits for the end of the input.

    Args:
        us: microseconds since 1970, of any size.

    Example:
        >>> time_of_timer(2**64) == MAX_TIME, time_of_timer(-(2**64)) == EARLIEST_TIME, time_of_timer(60)
        (True, True, 60)
    """
    return min(max(us, EARLIEST_TIME), MAX_TIME)


def parse_duration(value: Duration, name: str) -> int:
    """Microseconds in a duration such as ``"50ms"``, ``"90 s"``, ``"1 hour"``, ``"1d"`` or a timedelta.

    Args:
        value: the duration; not negative.
        name: what the duration is for; errors name it.

    Raises:
        SettingError: not a duration, negative, longer than LONGEST_US, or without a unit.

    Example:
        >>> parse_duration("50ms", "buffer_timeout")
        50000
        >>> [parse_duration(same, "size") for same in ("1h", "1 hour", "60 minutes", timedelta(hours=1))]
        [3600000000, 3600000000, 3600000000, 3600000000]
    """
    if isinstance(value, timedelta):
        us = value // timedelta(microseconds=1)
        if us < 0:
            raise SettingError(f"{name} is {value}: a duration cannot be negative")
        if us > LONGEST_US:
            raise SettingError(f"{name} is {value}: more than the maximum of 73,000 years")
        return us
    if not isinstance(value, str):
        if not isinstance(value, Real) or isinstance(value, bool):
            raise SettingError(f"{name} is {value!r}, which is not a duration: write for example '50ms' or '5s'")
        raise SettingError(f"{name} is {value!r}, which has no unit: write for example '{value}ms' or '{value}s'")
    if value.strip() == "0":
        return 0
    match = _PATTERN.fullmatch(value)
    unit_us = None if match is None else _WRITTEN_US.get(match[2])
    if match is None or unit_us is None:
        if value.strip().startswith("-"):
            raise SettingError(f"{name} is {value!r}: a duration cannot be negative")
        raise SettingError(
            f"{name} is {value!r}: write a number with a unit (us, ms, s, min, h, d), for example '50ms'"
        )
    counted = float(match[1]) * unit_us  # infinite if a float cannot represent so many digits
    if counted > LONGEST_US:
        raise SettingError(f"{name} is {value!r}: more than the maximum of 73,000 years")
    return round(counted)


def format_duration(us: int) -> str:
    """The shortest exact text of a duration.

    Example:
        >>> format_duration(50_000), format_duration(90_000_000)
        ('50ms', '90s')
    """
    if us == 0:
        return "0ms"
    for unit in ("d", "h", "min", "s", "ms"):
        if us % _UNITS_US[unit] == 0:
            return f"{us // _UNITS_US[unit]}{unit}"
    return f"{us}us"


def parse_speed(value: str | float, name: str = "speed") -> float:
    """Seconds of history per second of replay: ``"600x"`` is 600.0, ``"max"`` is infinity (no pacing).

    Raises:
        SettingError: not a speed, or not above zero.
    """
    if isinstance(value, str):
        text = value.strip().lower()
        if text == "max":
            return math.inf
        try:
            speed = float(text.removesuffix("x"))
        except ValueError:
            raise SettingError(
                f"{name} is {value!r}: write a multiple of recorded time such as '600x', or 'max'"
            ) from None
    elif isinstance(value, Real) and not isinstance(value, bool):
        speed = float(value)
    else:
        raise SettingError(f"{name} is {value!r}: write a multiple of recorded time such as '600x', or 'max'")
    if math.isnan(speed) or speed <= 0:
        raise SettingError(f"{name} is {value!r}: a replay speed must be above zero; use pause to stop a replay")
    return speed


def format_speed(speed: float) -> str:
    """A speed as users write it: ``"600x"`` or ``"max"``."""
    return "max" if math.isinf(speed) else f"{speed:g}x" if speed < 1e6 else f"{speed:.0f}x"


def parse_instant(value: str | datetime, name: str) -> int:
    """Microseconds since 1970 (UTC) of an ISO date, an ISO time or a datetime; without a zone it is taken as UTC.

    Raises:
        SettingError: not a date or time.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise SettingError(
                f"{name} is {value!r}: write an ISO time such as '2013-07-01' or '2013-07-01T06:00'"
            ) from None
    if not isinstance(value, datetime):
        raise SettingError(f"{name} is {value!r}: write an ISO time such as '2013-07-01T06:00', or a datetime")
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def format_instant(us: int | None) -> str:
    """An event time in UTC as ``2013-07-01 06:00:00``, ``"-"`` for none and ``"end"`` for MAX_TIME.

    Years beyond 1 to 9999 are written out, the year 0 being that before 1 (ISO 8601).

    Example:
        >>> format_instant(1_372_658_400_000_000), format_instant(LATEST_TIME)
        ('2013-07-01 06:00:00', '75039-04-04 19:00:13.693952')
    """
    if us is None or us == NO_TIME:
        return "-"
    if us == MAX_TIME:
        return "end"
    cycles, rest_us = divmod(us, _CYCLE_US)
    moment = datetime(1970, 1, 1) + timedelta(microseconds=rest_us)
    year = moment.year + 400 * cycles
    text = moment.isoformat(" ", "microseconds" if us % 1_000_000 else "seconds")
    return f"{year:0{4 if year >= 0 else 5}d}{text[4:]}"
