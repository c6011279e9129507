"""How the dashboard writes quantities: short, with their unit, and safe to put into HTML."""

from __future__ import annotations

from html import escape

from workbench.durations import MAX_TIME, NO_TIME, format_instant

NOTHING = "–"


def html_text(text: object) -> str:
    """Text from data or users, escaped for HTML (also in attributes)."""
    return escape(str(text), quote=True)


def count(value: float | None) -> str:
    """A whole number with thousands separators: ``336,776``."""
    return NOTHING if value is None else f"{round(value):,}"


def short(value: float | None) -> str:
    """Three significant digits: ``0``, ``7.5``, ``950``, ``12.3k``, ``1.2M``."""
    if value is None:
        return NOTHING
    for limit, factor, unit in ((1e3, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M"), (float("inf"), 1e9, "G")):
        if abs(value) < limit * 0.9995:
            scaled = value / factor
            digits = 0 if abs(scaled) >= 99.95 else 1
            return f"{scaled:.{digits}f}".removesuffix(".0") + unit
    raise AssertionError("every number is below infinity")


def number(value: float) -> str:
    """A number from data: at least six digits, and no exponent unless there must be one: ``1,234,567.25``."""
    if abs(value) < 999_999.5:
        return f"{value:,.6g}"
    return f"{value:,.2f}".removesuffix(".00") if abs(value) < 1e15 else f"{value:g}"


def size(value: float | None) -> str:
    """Bytes in powers of 1000: ``950 B``, ``12.3 kB``."""
    if value is None:
        return NOTHING
    text = short(value)
    return f"{text[:-1]} {text[-1]}B" if text[-1:] in "kMG" else f"{text} B"


def milliseconds(value: float | None) -> str:
    """A short duration: ``0.4 ms``, ``120 ms``, ``1.5 s``, ``2 min 3 s``."""
    if value is None:
        return NOTHING
    if value < 999.5:
        return f"{value:.1f} ms" if value < 9.95 else f"{value:.0f} ms"
    if value < 59_950:
        return f"{value / 1000:.1f} s"
    return span(round(value) * 1000)


def span(us: int | None) -> str:
    """A long duration in its two largest units: ``45 s``, ``2 h 10 min``, ``3 d 4 h``."""
    if us is None:
        return NOTHING
    seconds = round(us / 1_000_000)
    if seconds < 1:
        return f"{us / 1000:.0f} ms" if us >= 1000 else "0 s"
    parts: list[tuple[int, str]] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        whole, seconds = divmod(seconds, length)
        if whole or parts:
            parts.append((whole, unit))
    return " ".join(f"{whole} {unit}" for whole, unit in parts[:2] if whole)


def instant(us: int | None) -> str:
    """An event time in UTC to the second: ``2013-07-01 06:00:00``; ``end`` after the last, ``–`` for none."""
    if us is None or us == NO_TIME:
        return NOTHING
    return format_instant(us if us == MAX_TIME else us - us % 1_000_000)


def clock(us: int) -> str:
    """The time of day in UTC: ``06:00:00``."""
    return instant(us).partition(" ")[2]


def moment(us: int | None) -> str:
    """The time of day in UTC to the millisecond: ``06:00:00.125``."""
    return NOTHING if us is None else f"{clock(us)}.{us // 1_000 % 1_000:03d}"


def percent(fraction: float) -> str:
    """A share: 0.344 is ``34 %``."""
    return f"{fraction * 100:.0f} %"


def fit(text: str, pixels: float, font_px: float) -> str:
    """The text, cut with an ellipsis if it would be wider than `pixels` in a proportional font."""
    letters = max(4, int(pixels / (font_px * 0.55)))
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def plain(value: object, letters: int) -> str:
    """A value from data, limited to a number of characters: ``null`` for None, text unchanged, else Python's repr."""
    text = "null" if value is None else value if isinstance(value, str) else repr(value)
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= letters else f"{text[: letters - 1]}…"
