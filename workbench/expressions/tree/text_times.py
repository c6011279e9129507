"""Text as Spark reads it as a date or a timestamp: ``2024-1-5``, ``2024``, nine decimals of a second, zones."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_DAY = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_MOMENT = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})"
    r"(?:\.([0-9]*))?((?<=[0-9.])[^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
TIME_ALONE = re.compile(r"T?[0-9]{1,2}:.*|T[0-9]{1,2}", re.DOTALL)
"""Text without a day, which Spark reads as a time of the day on which the query runs."""
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_LONGEST_OFFSET = 18 * 3600
_SHORT = {
    **{"ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires"},
    **{"ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka"},
    **{"CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai"},
    **{"EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis"},
    **{"IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan"},
    **{"NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico"},
    **{"PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh"},
    **{"EST": "-05:00", "MST": "-07:00", "HST": "-10:00"},
}
"""Java's short names of zones."""


def days_of_text(text: str) -> int | None:
    """The days since 1970 of a date; None for text that is not one.

    Args:
        text: without blanks around it.

    Example:
        >>> days_of_text("1970-1-2"), days_of_text("1970-01-02T10:00"), days_of_text("1970-13-01")
        (1, 1, None)
    """
    found = _DAY.fullmatch(text)
    return None if found is None else _days(found[1], found[2], found[3], found[4])


def micros_of_text(text: str, *, zoned: bool) -> int | None:
    """The microseconds since 1970 of an instant; digits beyond them are cut off. None for text that is not one.

    Args:
        text: without blanks around it; without a zone, it is in UTC.
        zoned: whether a zone shifts it; otherwise it only has to be one.

    Example:
        >>> micros_of_text("1970-1-1 0:0:1.000000999 UTC+1", zoned=True)
        -3599000000
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    days, clock = _days(sign, year, month, day), [int(part or 0) for part in (hour, minute, second)]
    if days is None or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    micros = int((fraction or "").ljust(6, "0")[:6])
    local = ((days * 24 + clock[0]) * 60 + clock[1]) * 60 + clock[2]
    if zone is not None:
        where = _zone(zone.strip())
        if where is None:
            return None
        local -= _offset_s(local, where) if zoned else 0
    result = local * 1_000_000 + micros
    return result if -(2**63) <= result < 2**63 else None


def _days(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    number = -int(year) if sign == "-" else int(year)
    within = number % 400 or 400  # the calendar repeats after 400 years
    try:
        days = date(within, int(month or 1), int(day or 1)).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    days += (number - within) // 400 * 146_097
    return days if -(2**31) <= days < 2**31 else None


def _offset_s(local: int, zone: tzinfo) -> int:
    """The offset of a zone at a local time: the earlier instant where it occurs twice, moved on where it is skipped."""
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=local)
    except OverflowError:
        moment = datetime(9999 if local > 0 else 1, 1, 1)
    offset = moment.replace(tzinfo=zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo | None:
    """A zone by the names that Java takes; None for another one."""
    name = _SHORT.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    two = re.sub(r"([+-])([0-9]):", r"\g<1>0\2:", name, count=1)
    two = re.sub(r"([+-])([0-9]{2}):([0-9])$", r"\g<1>\2:0\3", two, count=1)
    found = _OFFSET.fullmatch(two)
    if found is not None:
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        length = hours * 3600 + minutes * 60 + seconds
        if minutes > 59 or seconds > 59 or length > _LONGEST_OFFSET:
            return None
        return timezone(timedelta(seconds=-length if found[1] == "-" else length))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9~/._+-]+", name):
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None
